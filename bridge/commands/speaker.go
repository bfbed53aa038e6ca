package commands

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/voice/speaker"
)

// SpeakerBook holds the speakers that administrators have set up, a [speaker.Book]: sound that comes from places. Case
// does not matter in their names.
type SpeakerBook interface {
	All() []speaker.State // in the order in which to show them
	// Put makes a speaker, or changes the one of that name, but not its sound.
	Put(speaker.Record) error
	Remove(name string) (was bool)
	// Play plays a file and returns its length; with loop over and over.
	Play(name, file string, loop bool) (time.Duration, error)
	// Relay plays a player's microphone.
	Relay(name string, player uuid.UUID) error
	Stop(name string) (was bool)
	Sounds() []string // files that can be played
}

// Values of a new speaker, and the bounds of what is typed.
const (
	speakerRange  = 16
	maxReach      = 1024 // blocks
	maxCoordinate = 3e7  // the world's end
)

var speakerParts = []voicePart{
	{"speaker create", "voice.speaker", " <speaker> [server world x y z]", (*Commands).speakerCreate, only(none, serverNames)},
	{"speaker remove", "voice.speaker", " <speaker>", (*Commands).speakerRemove, only(speakers)},
	{"speaker move", "voice.speaker", " <speaker> [[server world] x y z]", (*Commands).speakerMove, only(speakers, serverNames)},
	{"speaker volume", "voice.speaker", " <speaker> <percent>", (*Commands).speakerVolume, only(speakers, words("25", "50", "100"))},
	{"speaker range", "voice.speaker", " <speaker> <blocks>", (*Commands).speakerRange, only(speakers, words("16", "32", "64"))},
	{"speaker allow", "voice.speaker", " <speaker> <everybody|nobody|player …>", (*Commands).speakerAllow, func(c *Commands, src Source, before []string) []packet.Suggestion {
		switch len(before) {
		case 0:
			return speakers(c, src)
		case 1:
			return append(players(c, src), words("everybody", "nobody")(c, src)...)
		}
		return players(c, src)
	}},
	{"speaker list", "voice.speaker", "", (*Commands).speakerList, nil},
	{"speaker play", "voice.speaker", " <speaker> <file> [loop]", (*Commands).speakerPlay, only(speakers, sounds, words("loop"))},
	{"speaker relay", "voice.speaker", " <speaker> <player>", (*Commands).speakerRelay, only(speakers, players)},
	{"speaker stop", "voice.speaker", " <speaker>", (*Commands).speakerStop, only(speakers)},
}

func serverNames(c *Commands, src Source) []packet.Suggestion { return names{c}.Servers(src) }

func speakers(c *Commands, src Source) []packet.Suggestion {
	var all []string
	for _, s := range c.book().All() {
		all = append(all, s.Name)
	}
	return suggest(all...)(src, nil)
}

// sounds reads a directory, which is quick enough for the few who may, as often as they may complete.
func sounds(c *Commands, src Source) []packet.Suggestion {
	return suggest(slices.DeleteFunc(c.book().Sounds(), func(name string) bool { return strings.Contains(name, " ") })...)(src, nil)
}

// speaker finds one by the first argument.
func (c *Commands) speaker(args []string) (speaker.State, error) {
	for _, s := range c.book().All() {
		if strings.EqualFold(s.Name, args[0]) {
			return s, nil
		}
	}
	return speaker.State{}, fail("voice-speaker-none", "speaker", args[0])
}

// number reads a number from least to most.
func number(word string, least, most float64) (float64, error) {
	v, err := strconv.ParseFloat(word, 64)
	if err != nil || !(v >= least && v <= most) {
		f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		return 0, fail("voice-no-number", "number", word, "least", f(least), "most", f(most))
	}
	return v, nil
}

// place reads a speaker's place: no words for where src is, x y z for the world where it stands, server world x y z for
// anywhere.
func (c *Commands) place(src Source, s *speaker.Record, args []string) (understood bool, err error) {
	switch {
	case len(args) == 0:
		var at *world.Pose
		if p := src.Player(); p != nil {
			at = c.cfg.Voice.Where(p.ID())
		}
		if at == nil {
			return true, fail("voice-speaker-where")
		}
		round := func(v float64) float64 { return math.Round(v*100) / 100 }
		s.Server, s.World, s.X, s.Y, s.Z = at.Place.Backend, at.Place.World, round(at.X), round(at.Y), round(at.Z)
		return true, nil
	case len(args) == 5:
		server, err := c.anyServer(src, args[0])
		if err != nil {
			return true, err
		}
		s.Server, s.World = server.Name, world.WorldName(args[1])
		args = args[2:]
	case len(args) == 3 && s.World != "":
	default:
		return false, nil
	}
	for i, v := range []*float64{&s.X, &s.Y, &s.Z} {
		if *v, err = number(args[i], -maxCoordinate, maxCoordinate); err != nil {
			return true, err
		}
	}
	return true, nil
}

// show returns one speaker in a line.
func (c *Commands) show(src Source, s speaker.State) packet.Text {
	f := func(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
	allowed := c.calledAll(s.Allow)
	line := []packet.Text{c.text(src, "voice-speaker-entry", "speaker", s.Name, "server", s.Server, "world", s.World,
		"x", f(s.X), "y", f(s.Y), "z", f(s.Z), "volume", f(s.Volume*100), "range", f(s.Range))}
	switch {
	case s.Allow == nil:
	case allowed == "":
		line = append(line, c.text(src, "voice-speaker-for-nobody"))
	default:
		line = append(line, c.text(src, "voice-speaker-for", "names", allowed))
	}
	switch {
	case s.From != uuid.Nil:
		line = append(line, c.text(src, "voice-speaker-carries", "player", c.called(s.From)))
	case s.File != "" && s.Loop != "":
		line = append(line, c.text(src, "voice-speaker-repeats", "file", s.File))
	case s.File != "":
		line = append(line, c.text(src, "voice-speaker-sounds", "file", s.File))
	case s.Failed != "":
		line = append(line, c.text(src, "voice-speaker-failed", "problem", s.Failed))
	}
	return join(protocolOf(src), line...)
}

func (c *Commands) book() SpeakerBook { return c.cfg.Voice.SpeakerBook() }

// put changes a speaker and shows the result.
func (c *Commands) put(src Source, s speaker.State) error {
	err := c.book().Put(s.Record)
	c.cfg.Voice.SpeakersStored()
	if err != nil {
		return err
	}
	src.Send(c.show(src, s))
	return nil
}

func (c *Commands) speakerCreate(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	if s, err := c.speaker(args); err == nil {
		return true, fail("voice-speaker-taken", "speaker", s.Name)
	}
	s := speaker.State{Record: speaker.Record{Name: args[0], Volume: 1, Range: speakerRange}}
	if understood, err = c.place(src, &s.Record, args[1:]); !understood || err != nil {
		return understood, err
	}
	return true, c.put(src, s)
}

func (c *Commands) speakerRemove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	c.book().Remove(s.Name)
	c.cfg.Voice.SpeakersStored()
	c.answer(src, "voice-speaker-removed", "speaker", s.Name)
	return true, nil
}

func (c *Commands) speakerMove(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	if understood, err = c.place(src, &s.Record, args[1:]); !understood || err != nil {
		return understood, err
	}
	return true, c.put(src, s)
}

func (c *Commands) speakerVolume(src Source, args []string, _ string) (understood bool, err error) {
	return c.speakerNumber(src, args, 0, 100, func(s *speaker.Record, v float64) { s.Volume = v / 100 })
}

func (c *Commands) speakerRange(src Source, args []string, _ string) (understood bool, err error) {
	return c.speakerNumber(src, args, 1, maxReach, func(s *speaker.Record, v float64) { s.Range = v })
}

func (c *Commands) speakerNumber(src Source, args []string, least, most float64, set func(*speaker.Record, float64)) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	v, err := number(args[1], least, most)
	if err != nil {
		return true, err
	}
	set(&s.Record, v)
	return true, c.put(src, s)
}

func (c *Commands) speakerAllow(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	switch word := strings.ToLower(args[1]); {
	case len(args) == 2 && word == "everybody":
		s.Allow = nil
	case len(args) == 2 && word == "nobody":
		s.Allow = []uuid.UUID{}
	default:
		if s.Allow, err = c.whoAll(args[1:]); err != nil {
			return true, err
		}
	}
	return true, c.put(src, s)
}

func (c *Commands) speakerList(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) > 0 {
		return false, nil
	}
	all := c.book().All()
	return true, c.list(src, "voice-speakers-none", len(all), func(i int) packet.Text { return c.show(src, all[i]) })
}

func (c *Commands) speakerPlay(src Source, args []string, raw string) (understood bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	file, k := strings.TrimRight(behind(raw, 1), " "), key("voice-speaker-plays")
	loop := len(args) > 2 && strings.EqualFold(args[len(args)-1], "loop")
	if loop { // a file's name may have blanks
		file, k = strings.TrimRight(file[:len(file)-len("loop")], " "), "voice-speaker-loops"
	}
	length, err := c.book().Play(s.Name, file, loop)
	c.cfg.Voice.SpeakersStored()
	if err != nil {
		return true, err
	}
	if length == 0 { // known only once it has been played
		k += "-on"
	}
	c.answer(src, k, "speaker", s.Name, "file", file, "duration", span(length))
	return true, nil
}

func (c *Commands) speakerRelay(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	id, err := c.who(args[1])
	if err != nil {
		return true, err
	}
	err = c.book().Relay(s.Name, id)
	c.cfg.Voice.SpeakersStored()
	if err != nil {
		return true, err
	}
	c.answer(src, "voice-speaker-relays", "speaker", s.Name, "player", c.called(id))
	return true, nil
}

func (c *Commands) speakerStop(src Source, args []string, _ string) (understood bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	s, err := c.speaker(args)
	if err != nil {
		return true, err
	}
	was := c.book().Stop(s.Name)
	c.cfg.Voice.SpeakersStored()
	if !was {
		return true, fail("voice-speaker-silent", "speaker", s.Name)
	}
	c.answer(src, "voice-speaker-stopped", "speaker", s.Name)
	return true, nil
}
