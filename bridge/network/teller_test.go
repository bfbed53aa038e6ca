package network

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/talk"
)

// barred is a player who keeps what the action bar and the chat show.
type barred struct {
	session.Player
	locale     string
	bar, lines []string
}

func (b *barred) Locale() string               { return b.locale }
func (b *barred) Protocol() int32              { return 775 }
func (b *barred) ActionBar(text string) error  { b.bar = append(b.bar, text); return nil }
func (b *barred) SendChat(t packet.Text) error { b.lines = append(b.lines, t.String()); return nil }

func (b *barred) take() (bar, lines string) {
	bar, lines = strings.Join(b.bar, "; "), strings.Join(b.lines, "; ")
	b.bar, b.lines = nil, nil
	return bar, lines
}

func telling(t *testing.T, p *barred, id uuid.UUID, state *mute.State) teller {
	texts, err := commands.NewTexts(map[string]map[string]string{"de": {"notice-speak": "Du darfst hier nicht sprechen", "mute-ends": "Du bist wieder zu hören."}})
	if err != nil {
		t.Fatal(err)
	}
	return teller{
		func(who uuid.UUID) session.Player {
			if who == id {
				return p
			}
			return nil
		}, func() *commands.Texts { return texts }, func(uuid.UUID) mute.State { return *state },
	}
}

func TestNotice(t *testing.T) {
	id, p, state := uuid.New(), &barred{locale: "de_at"}, mute.State{}
	tell := telling(t, p, id, &state)
	tell.notice(uuid.New(), voice.ServerMuted) // has left
	tell.notice(id, voice.ServerMuted)
	tell.notice(id, voice.SpeakRefused)
	if got, _ := p.take(); got != "Your voice is muted by the server; Du darfst hier nicht sprechen" {
		t.Error(got)
	}
	for why, key := range notices {
		if got := tell.texts().Say("", key).String(); got != why.String() {
			t.Errorf("%v is told as %q", why, got)
		}
	}
}

// A muted player who speaks is reminded of the mute, with the time that is left and the reason.
func TestMutedPlayersAreReminded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, p, state := uuid.New(), &barred{}, mute.State{}
		tell := telling(t, p, id, &state)
		in := time.Now().Add(10 * time.Minute)
		for want, s := range map[string]mute.State{
			"Your voice is muted by the server":           {Kind: talk.MutedPlayer},
			"Your voice is muted for 10m more: <red>spam": {Kind: talk.MutedPlayer, Until: in, Reason: "<red>spam"},
			"Everybody is muted: event":                   {Kind: talk.MutedServer, Reason: "event"},
			"Everybody is muted for 10m more":             {Kind: talk.MutedServer, Until: in},
		} {
			state = s
			tell.notice(id, voice.ServerMuted)
			if got, _ := p.take(); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		}
	})
}

// The beginning and the end of a mute are told in the chat, in the player's language.
func TestMutesAreToldInTheChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none, in := mute.State{}, time.Now().Add(90*time.Minute)
		one, all := mute.State{Kind: talk.MutedPlayer, Until: in, Reason: "spam"}, mute.State{Kind: talk.MutedServer}
		for _, c := range []struct {
			was, is      mute.State
			locale, want string
		}{
			{none, one, "", "Your voice is muted for 1h30m. Nobody hears you. Reason: spam"},
			{none, mute.State{Kind: talk.MutedPlayer}, "", "Your voice is muted until the staff lifts it. Nobody hears you."},
			{one, all, "", "Everybody is muted until the staff lifts it. Nobody hears you."},
			{none, mute.State{Kind: talk.MutedServer, Until: in}, "", "Everybody is muted for 1h30m. Nobody hears you."},
			{all, none, "", "The mute of everybody is over."},
			{one, none, "", "Your voice is no longer muted."},
			{one, none, "de_de", "Du bist wieder zu hören."},
		} {
			id, p, state := uuid.New(), &barred{locale: c.locale}, c.is
			tell := telling(t, p, id, &state)
			tell.muted(uuid.New(), c.was, c.is) // has left
			tell.muted(id, c.was, c.is)
			if bar, got := p.take(); got != c.want || bar != "" {
				t.Errorf("told %q %q, want %q", bar, got, c.want)
			}
		}
	})
}
