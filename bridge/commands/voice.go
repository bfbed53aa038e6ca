package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/why"
)

// Voice rules voices: mutes, declarations, groups. A [voice.Gateway] on a network is one. Its methods may wait for a
// moment, except those for suggestions. Errors are for the person who typed. A change is in force and stored when its
// method returns, or cannot be stored for now. A method that only reads waits for no disk.
type Voice interface {
	// Mute puts a mute into force, in place of a former one of the same player.
	Mute(mute.Record) error
	// Unmute lifts a mute, with [mute.Everybody] that of everybody. It tells whether there was one.
	Unmute(player uuid.UUID) (was bool, err error)
	// Mutes returns those in force in the order in which to show them.
	Mutes() ([]mute.Record, error)
	// Why says why a listener hears a talker or does not.
	Why(talker, listener uuid.UUID) (why.Answer, error)
	// Declare has change alter who is given whose voice outright. Declarations of the configuration are fixed: commands
	// add to them and cannot remove them. change must not wait.
	Declare(change func(b *relation.Book) error) error
	// Declared has read look at the same. read must not wait.
	Declared(read func(b *relation.Book) error) error
	// Domains returns the names of all domains. It does not wait.
	Domains() []string
	// ListGroups returns them in the order in which to show them.
	ListGroups() ([]group.Info, error)
	// GroupNames returns the names of all groups. It does not wait.
	GroupNames() []string
	// RuleGroup renames or ends a group, or takes a player out of it.
	RuleGroup(talk.GroupRequest) (talk.Code, error)
	SpeakerBook() SpeakerBook
	// SpeakersStored returns when earlier changes of the book of speakers are stored, or cannot be for now.
	SpeakersStored()
	// Where returns a player's place; nil: not known. It does not wait.
	Where(player uuid.UUID) *world.Pose
	// Unstored returns how many changes are in force but cannot be stored for now, and why. It does not wait.
	Unstored() (changes int, problem string)
}

// voicePart is one thing that /voice can do; it takes the permission of its node.
type voicePart struct {
	name, node, args string // the name is one word or two
	// run carries it out; args are the words of raw. understood is false when the arguments do not fit, so that the
	// usage is shown.
	run func(c *Commands, src Source, args []string, raw string) (understood bool, err error)
	// suggest completes the next argument; before are those already there. It must not wait. nil completes nothing.
	suggest func(c *Commands, src Source, before []string) []packet.Suggestion
}

var voiceParts = slices.Concat(pageParts, []voicePart{
	{"mute", "voice.mute", " <player> [duration] [reason]", (*Commands).mute, func(c *Commands, src Source, before []string) []packet.Suggestion {
		switch len(before) {
		case 0:
			return names{c}.Players(src)
		case 1:
			return suggest("10m", "1h", "1d", "7d")(src, before)
		}
		return nil
	}},
	{"unmute", "voice.mute", " <player>", (*Commands).unmute, only(players)},
	{"muteall", "voice.mute", " <on|off>", (*Commands).muteAll, only(words("on", "off"))},
	{"mutes", "voice.mute", "", (*Commands).mutes, nil},
	{"why", "voice.why", " <talker> <listener>", (*Commands).why, only(players, players)},
}, declareParts, speakerParts, groupParts)

// suggester completes one argument.
type suggester func(c *Commands, src Source) []packet.Suggestion

func players(c *Commands, src Source) []packet.Suggestion { return names{c}.Players(src) }

func words(all ...string) suggester {
	return func(c *Commands, src Source) []packet.Suggestion { return suggest(all...)(src, nil) }
}

// only completes so many arguments. many goes on with the last for ever.
func only(each ...suggester) func(*Commands, Source, []string) []packet.Suggestion {
	return func(c *Commands, src Source, before []string) []packet.Suggestion {
		if len(before) >= len(each) {
			return nil
		}
		return each[len(before)](c, src)
	}
}

func many(each ...suggester) func(*Commands, Source, []string) []packet.Suggestion {
	return func(c *Commands, src Source, before []string) []packet.Suggestion {
		return each[min(len(before), len(each)-1)](c, src)
	}
}

// parted returns the parts that there are.
func (c *Commands) parted() []voicePart {
	if c.cfg.Page == nil {
		return voiceParts[len(pageParts):]
	}
	return voiceParts
}

// voiceWords returns the words that may follow these, of the parts that allowed lets through.
func (c *Commands) voiceWords(before []string, allowed func(p *voicePart) bool) (out []string) {
	all := c.parted()
	for i := range all {
		p := &all[i]
		name := strings.Fields(p.name)
		if len(before) >= len(name) || !slices.EqualFunc(before, name[:len(before)], strings.EqualFold) || !allowed(p) {
			continue
		}
		if word := name[len(before)]; !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

func anyPart(*voicePart) bool { return true }

// partsFor returns whether a part is for a source: a page is for players only.
func partsFor(src Source) func(*voicePart) bool {
	return func(p *voicePart) bool { return p.node != pageNode || src.Player() != nil }
}

func (c *Commands) voiceCommand() command.Command[Source] {
	var nodes []string
	for _, p := range c.parted() {
		if n := Permission(p.node); !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return command.Command[Source]{
		Name: "voice", Parts: nodes,
		Args: []arg{
			{Name: strings.Join(c.voiceWords(nil, anyPart), "|"), Optional: true, Suggest: c.suggestVoice},
			{Name: "more", Kind: command.Greedy, Optional: true, Suggest: c.suggestVoice},
		},
		Run: func(_ context.Context, src Source, args []string) error {
			raw := strings.Join(args, " ")
			words := strings.Fields(raw)
			if len(words) == 0 && c.cfg.Page != nil && src.Player() != nil {
				words = pageWords
			}
			p := c.findVoicePart(words)
			if p == nil {
				known := words[:min(len(words), 1)]
				choice := c.voiceWords(known, partsFor(src))
				if len(choice) == 0 {
					known, choice = nil, c.voiceWords(nil, partsFor(src))
				}
				return &command.UsageError{Usage: strings.Join(append([]string{"/voice"}, known...), " ") + " <" + strings.Join(choice, "|") + ">"}
			}
			if !src.Allowed(Permission(p.node)) {
				return fail("not-allowed")
			}
			n := len(strings.Fields(p.name))
			understood, err := p.run(c, src, words[n:], behind(raw, n))
			if !understood {
				return &command.UsageError{Usage: "/voice " + p.name + p.args}
			}
			if n, problem := c.cfg.Voice.Unstored(); err == nil && n > 0 {
				c.answer(src, "voice-unstored", "count", strconv.Itoa(n), "problem", problem)
			}
			return err
		},
	}
}

// behind returns raw without its first n words, as it was typed.
func behind(raw string, n int) string {
	for range n {
		_, raw, _ = strings.Cut(strings.TrimLeft(raw, " "), " ")
	}
	return strings.TrimLeft(raw, " ")
}

// findVoicePart finds the part whose words come first.
func (c *Commands) findVoicePart(words []string) *voicePart {
	all := c.parted()
	for i := range all {
		name := strings.Fields(all[i].name)
		if len(words) >= len(name) && slices.EqualFunc(words[:len(name)], name, strings.EqualFold) {
			return &all[i]
		}
	}
	return nil
}

// suggestVoice completes the part and its arguments. It may not wait, and so does not ask Voice who is muted.
func (c *Commands) suggestVoice(src Source, before []string) (out []packet.Suggestion) {
	p := c.findVoicePart(before)
	if p == nil {
		return suggest(c.voiceWords(before, func(p *voicePart) bool { return partsFor(src)(p) && src.Allowed(Permission(p.node)) })...)(src, before)
	}
	if p.suggest == nil || !src.Allowed(Permission(p.node)) {
		return nil
	}
	return p.suggest(c, src, before[len(strings.Fields(p.name)):])
}

// muteName returns the name of the muted player.
func (c *Commands) muteName(m *mute.Record) string {
	return cmp.Or(m.Name, c.onceCalled(m.Player), m.Player.String())
}

// identify finds a player by name or UUID: on the proxy, or else among those who were here once. An unknown UUID has no
// name. For anything else, and for a name that several had, id is [uuid.Nil].
func (c *Commands) identify(word string) (id uuid.UUID, name string, online bool) {
	if p, ok := c.cfg.Network.Player(word); ok {
		return p.ID(), p.Name(), true
	}
	id, err := uuid.Parse(word)
	if err != nil {
		if all := c.once(word); len(all) == 1 {
			return all[0].ID, all[0].Name, false
		}
		return uuid.Nil, "", false
	}
	for _, p := range c.cfg.Network.Players() {
		if p.ID() == id {
			return id, p.Name(), true
		}
	}
	return id, c.onceCalled(id), false
}

// once returns the players of this name who were here.
func (c *Commands) once(name string) []Once {
	if c.cfg.Past == nil {
		return nil
	}
	return c.cfg.Past.Find(name)
}

func (c *Commands) onceCalled(id uuid.UUID) string {
	if c.cfg.Past == nil {
		return ""
	}
	return c.cfg.Past.Name(id)
}

// nobody returns the error for a word that is no player for [Commands.identify].
func (c *Commands) nobody(word string) error {
	var all []string
	for _, o := range c.once(word) {
		all = append(all, fmt.Sprintf("%s (%s)", o.ID, o.Seen.Format(time.DateOnly)))
	}
	if len(all) > 1 {
		return fail("voice-which-player", "player", word, "ids", strings.Join(all[:min(len(all), 5)], ", "))
	}
	return fail("voice-no-player", "player", word)
}

func (c *Commands) mute(src Source, args []string, raw string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	m := mute.Record{By: src.Name()}
	if m.Player, m.Name, _ = c.identify(args[0]); m.Player == uuid.Nil {
		return true, c.nobody(args[0])
	}
	args, raw = args[1:], behind(raw, 1)
	k, lasts := key("voice-muted"), ""
	d, words, err := duration(args)
	if err != nil {
		return true, err
	}
	if d > 0 {
		m.Until = time.Now().Add(d)
		k, lasts = "voice-muted-for", span(d)
	}
	m.Reason = behind(raw, words)
	if err := c.cfg.Voice.Mute(m); err != nil {
		return true, err
	}
	told := func(locale string, protocol int32, k key) packet.Text {
		line := []packet.Text{c.cfg.Texts.text(locale, k, "by", src.Name(), "player", c.muteName(&m), "duration", lasts)}
		if m.Reason != "" {
			line = append(line, c.cfg.Texts.text(locale, "voice-mute-reason", "reason", m.Reason))
		}
		return join(protocol, line...)
	}
	src.Send(told(src.Locale(), protocolOf(src), k))
	c.tellStaff(src, func(p Player) packet.Text { return told(p.Locale(), p.Protocol(), "staff-"+k[len("voice-"):]) })
	return true, nil
}

// muteForm shows how to type a mute.
const muteForm = "/voice mute <player> [duration] [reason]"

// lasting are words in place of a duration for a mute that does not end by itself.
var lasting = []string{"forever", "permanent", "permanently", "perm"}

// duration reads the duration at the beginning of a mute's words, and returns how many of them it is. 0 is until
// unmuted. A mistyped duration must not mute for good: anything that looks like one and is none, in digits or in words,
// at the beginning or the end, is an error.
func duration(args []string) (d time.Duration, words int, err error) {
	no := func(said ...string) error {
		return fail("voice-no-duration", "duration", strings.Join(said, " "), "form", muteForm)
	}
	if len(args) == 0 {
		return 0, 0, nil
	}
	if slices.Contains(lasting, strings.ToLower(args[0])) {
		return 0, 1, nil
	}
	if '0' <= args[0][0] && args[0][0] <= '9' {
		d, ok := parseSpan(args[0])
		if !ok {
			return 0, 0, no(args[:min(len(args), 1+unitsIn(args[1:]))]...)
		}
		return d, 1, nil
	}
	lead := 0
	switch strings.ToLower(args[0]) {
	case "until", "till":
		return 0, 0, no(args[:min(len(args), 2)]...)
	case "for", "about", "around":
		lead = 1
	}
	rest := args[lead:]
	amount := 0
	for amount < len(rest) && isAmount(rest[amount]) {
		amount++
	}
	if amount > 0 && unitsIn(rest[amount:]) > 0 {
		return 0, 0, no(args[:lead+amount+1]...)
	}
	if len(rest) > 0 && (looksTimed(rest[0]) || unitsIn(rest[:1]) > 0 && (len(rest) == 1 || isAmount(rest[1]))) {
		return 0, 0, no(args[:lead+1]...)
	}
	if last := args[len(args)-1]; looksTimed(last) {
		return 0, 0, no(last)
	}
	return 0, 0, nil
}

// unitsIn returns 1 when the first of words is a unit of time, else 0.
func unitsIn(words []string) int {
	if len(words) == 0 {
		return 0
	}
	switch strings.TrimSuffix(strings.TrimRight(strings.ToLower(words[0]), ".,;!"), "s") {
	case "s", "sec", "second", "m", "min", "minute", "h", "hr", "hour", "d", "day", "w", "wk", "week", "mon", "month", "y", "yr", "year":
		return 1
	}
	return 0
}

// amounts are words for numbers.
var amounts = strings.Fields("a an one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty " +
	"forty forty-five fifty sixty ninety hundred half couple few several")

func isAmount(word string) bool {
	if slices.Contains(amounts, strings.ToLower(word)) {
		return true
	}
	_, err := strconv.ParseFloat(strings.TrimLeft(word, "+-~"), 64)
	return err == nil
}

// looksTimed tells whether a word is a duration, or nearly: 10m, +10m, 10min, m10, 1.5h.
func looksTimed(word string) bool {
	if _, ok := parseSpan(strings.TrimLeft(word, "+-~")); ok {
		return true
	}
	digits := func(r rune) bool { return '0' <= r && r <= '9' || r == '.' || r == ',' }
	number := strings.TrimLeft(word, "+-~")
	if unit := strings.TrimLeftFunc(number, digits); unit != number && unitsIn([]string{unit}) > 0 {
		return true
	}
	unit := strings.TrimRightFunc(number, digits)
	return unit != number && unitsIn([]string{unit}) > 0
}

// tellStaff tells everybody who may mute, except src.
func (c *Commands) tellStaff(src Source, text func(p Player) packet.Text) {
	if c.cfg.Allowed == nil {
		return
	}
	for _, p := range c.cfg.Network.Players() {
		if who := src.Player(); (who == nil || who.ID() != p.ID()) && c.cfg.Allowed(p, Permission("voice.mute")) {
			p.SendChat(text(p))
		}
	}
}

func (c *Commands) tellStaffOf(src Source, k key, named ...string) {
	c.tellStaff(src, func(p Player) packet.Text {
		return c.cfg.Texts.text(p.Locale(), k, append(named, "by", src.Name())...)
	})
}

// Silence is the news to a muted player about their mute.
type Silence struct {
	All    bool          // everybody is muted
	Left   time.Duration // 0: until it is lifted
	Reason string        // empty: none was given
}

// Muted returns the text for players when they are muted.
func (t *Texts) Muted(locale string, protocol int32, s Silence) packet.Text {
	line := []packet.Text{t.silence(locale, "mute-begins", s)}
	if s.Reason != "" {
		line = append(line, t.text(locale, "voice-mute-reason", "reason", s.Reason))
	}
	return join(protocol, line...)
}

// StillMuted returns the text for players who speak and are muted, as it is shown above the hot bar.
func (t *Texts) StillMuted(locale string, s Silence) string {
	text := t.silence(locale, "notice-muted", s).String()
	if s.Reason != "" {
		text += t.text(locale, "notice-reason", "reason", s.Reason).String()
	}
	return text
}

// Unmuted returns the text for players when they are no longer muted.
func (t *Texts) Unmuted(locale string, all bool) packet.Text {
	if all {
		return t.text(locale, "mute-ends-all")
	}
	return t.text(locale, "mute-ends")
}

func (t *Texts) silence(locale string, k key, s Silence) packet.Text {
	if s.All {
		k += "-all"
	}
	if s.Left > 0 {
		k += "-for"
	}
	return t.text(locale, k, "duration", span(s.Left))
}

func (c *Commands) unmute(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	list, err := c.cfg.Voice.Mutes()
	if err != nil {
		return true, err
	}
	id, name, online := c.identify(args[0])
	find := func(fits func(m mute.Record) bool) bool {
		i := slices.IndexFunc(list, func(m mute.Record) bool { return m.Player != mute.Everybody && fits(m) })
		if i >= 0 {
			id, name = list[i].Player, c.muteName(&list[i])
		}
		return i >= 0
	}
	// A player who has left is known by the present name and by that of the mute. Of several with one name the muted
	// one is meant.
	if !find(func(m mute.Record) bool { return m.Player == id }) && !online {
		find(func(m mute.Record) bool {
			return strings.EqualFold(m.Name, args[0]) || slices.ContainsFunc(c.once(args[0]), func(o Once) bool { return o.ID == m.Player })
		})
	}
	if id == uuid.Nil {
		return true, c.nobody(args[0])
	}
	if name == "" {
		name = id.String()
	}
	was, err := c.cfg.Voice.Unmute(id)
	switch {
	case err != nil:
		return true, err
	case !was:
		return true, fail("voice-not-muted", "player", name)
	}
	c.answer(src, "voice-unmuted", "player", name)
	c.tellStaffOf(src, "staff-unmuted", "player", name)
	return true, nil
}

func (c *Commands) muteAll(src Source, args []string, _ string) (understood bool, err error) {
	switch {
	case len(args) == 1 && strings.EqualFold(args[0], "on"):
		if err := c.cfg.Voice.Mute(mute.Record{By: src.Name()}); err != nil {
			return true, err
		}
		c.answer(src, "voice-all-muted")
		c.tellStaffOf(src, "staff-all-muted")
	case len(args) == 1 && strings.EqualFold(args[0], "off"):
		was, err := c.cfg.Voice.Unmute(mute.Everybody)
		switch {
		case err != nil:
			return true, err
		case !was:
			return true, fail("voice-all-not-muted")
		}
		c.answer(src, "voice-all-unmuted")
		c.tellStaffOf(src, "staff-all-unmuted")
	default:
		return false, nil
	}
	return true, nil
}

func (c *Commands) mutes(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	list, err := c.cfg.Voice.Mutes()
	if err != nil {
		return true, err
	}
	if len(list) == 0 {
		c.answer(src, "voice-mutes-none")
		return true, nil
	}
	now := time.Now()
	for _, m := range list[:min(len(list), maxListed)] {
		line := []packet.Text{c.text(src, "voice-mute-all")}
		if m.Player != mute.Everybody {
			line[0] = c.text(src, "voice-mute-one", "player", c.muteName(&m))
		}
		if m.By != "" {
			line = append(line, c.text(src, "voice-mute-by", "by", m.By))
		}
		if !m.Until.IsZero() {
			line = append(line, c.text(src, "voice-mute-left", "duration", span(m.Until.Sub(now))))
		}
		if m.Reason != "" {
			line = append(line, c.text(src, "voice-mute-reason", "reason", m.Reason))
		}
		src.Send(join(protocolOf(src), line...))
	}
	if more := len(list) - maxListed; more > 0 {
		c.answer(src, "voice-mutes-more", "count", strconv.Itoa(more))
	}
	return true, nil
}

func (c *Commands) why(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	var ids [2]uuid.UUID
	for i, word := range args {
		id, _, online := c.identify(word)
		if !online {
			return true, fail("no-player", "player", word)
		}
		ids[i] = id
	}
	found, err := c.cfg.Voice.Why(ids[0], ids[1])
	if err != nil {
		return true, err
	}
	var answer strings.Builder
	for _, w := range found.Clauses() {
		answer.WriteString(c.text(src, key("voice-why-"+w.Text), w.Values...).String())
	}
	c.answer(src, "voice-why", "answer", answer.String())
	return true, nil
}

// units are the units of a duration, the longest first.
var units = []struct {
	letter byte
	long   time.Duration
}{{'w', 7 * 24 * time.Hour}, {'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// maxSpan is the longest duration.
const maxSpan = 10 * 365 * 24 * time.Hour

// parseSpan reads a duration such as 90s, 1h30m or 7d, of a second at least and [maxSpan] at most.
func parseSpan(s string) (d time.Duration, ok bool) {
	for s != "" {
		n := 0
		i := 0
		for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
			if n = n*10 + int(s[i]-'0'); n > int(maxSpan/time.Second) {
				return 0, false
			}
		}
		if i == 0 || i == len(s) {
			return 0, false
		}
		unit := time.Duration(0)
		for _, u := range units {
			if s[i]|0x20 == u.letter {
				unit = u.long
			}
		}
		if unit == 0 || time.Duration(n) > (maxSpan-d)/unit {
			return 0, false
		}
		d += time.Duration(n) * unit
		s = s[i+1:]
	}
	return d, d > 0
}

// span writes a duration as [parseSpan] reads it, in its two largest units, and never as less than it is.
func span(d time.Duration) string {
	i := 0
	for i < len(units)-1 && d < units[i].long {
		i++
	}
	u, last := units[i], units[min(i+1, len(units)-1)]
	d = max((d+last.long-1)/last.long, 1) * last.long
	if i > 0 && d >= units[i-1].long {
		return span(d)
	}
	s := fmt.Sprintf("%d%c", d/u.long, u.letter)
	if rest := d % u.long / last.long; rest > 0 {
		s += fmt.Sprintf("%d%c", rest, last.letter)
	}
	return s
}
