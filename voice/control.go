package voice

import (
	"time"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/voice/group"
	"github.com/earshot-mc/earshot/voice/hub"
	"github.com/earshot-mc/earshot/voice/mute"
	"github.com/earshot-mc/earshot/voice/relation"
	"github.com/earshot-mc/earshot/voice/route"
	"github.com/earshot-mc/earshot/voice/speaker"
	"github.com/earshot-mc/earshot/voice/talk"
	"github.com/earshot-mc/earshot/voice/why"
)

// Bits are the permissions of one player that voice asks for.
type Bits = hub.Bits

// The permissions, each of the node that its name says.
const (
	Speak        = hub.Speak        // socketsvc.speak
	Listen       = hub.Listen       // socketsvc.listen
	Soundboard   = hub.Soundboard   // socketsvc.soundboard
	UseGroups    = hub.UseGroups    // socketsvc.groups
	CreateGroups = hub.CreateGroups // socketsvc.groups.create
	Invite       = hub.Invite       // socketsvc.groups.invite
	AdminGroups  = hub.AdminGroups  // socketsvc.groups.admin
	KeepGroups   = hub.KeepGroups   // socketsvc.groups.persistent
	MuteExempt   = hub.MuteExempt   // socketsvc.mute.exempt

	// Open holds the permissions of a player who has not been evaluated yet.
	Open = hub.Open
)

// Changes is state that lasts: mutes, persistent groups, and what was declared.
type Changes = hub.Changes

// Store keeps state that lasts.
type Store = hub.Store

// Counts counts groups, members and mutes.
type Counts = hub.Counts

// Why explains what one player hears of another one; its Clauses are a sentence.
type Why = why.Answer

// Offers returns what the gateway can negotiate at this moment: groups only while they are switched on.
func (g *Gateway) Offers() caps.Set {
	c := Offers()
	if g.hub.GroupsEnabled() {
		c.Groups, c.GroupEdit = 2, 1
	}
	return c
}

// Earshot tells how far an ordinary voice carries where a player is, in blocks, and how many with a voice are within
// that.
func (g *Gateway) Earshot(player uuid.UUID) (near int, reach float64) { return g.hub.Earshot(player) }

// ToggleMic asks a player's page to open or close its microphone. It is false where they have none open.
func (g *Gateway) ToggleMic(player uuid.UUID) bool { return g.hub.ToggleMic(player) }

// Mute silences a player until it is lifted or, with a time, lapses. When Mute returns, the mute is in force for the
// next frame, and stored as far as it can be; that holds for every method that changes lasting state. The error is
// about the record, or the gateway has been closed.
func (g *Gateway) Mute(r mute.Record) error {
	if r.Since.IsZero() {
		r.Since = time.Now()
	}
	return g.hub.Mute(r)
}

// MuteAll mutes everybody who is not exempt.
func (g *Gateway) MuteAll(r mute.Record) error {
	r.Player, r.Name = mute.Everybody, ""
	return g.Mute(r)
}

// Unmute lifts a player's own mute, or that of everybody for [mute.Everybody]. It tells whether there was one.
func (g *Gateway) Unmute(player uuid.UUID) (was bool, err error) { return g.hub.Unmute(player) }

// Mutes lists the mutes in force, that of everybody first.
func (g *Gateway) Mutes() ([]mute.Record, error) { return g.hub.Mutes() }

// MuteOf returns the mute on a player who is on the network, as the last turn knew it. It does not wait.
func (g *Gateway) MuteOf(player uuid.UUID) mute.State { return g.hub.MuteOf(player) }

// ListGroups lists every group, as staff see them.
func (g *Gateway) ListGroups() ([]group.Info, error) { return g.hub.Groups() }

// GroupNames returns the names of all groups, as of the last turn. It does not wait.
func (g *Gateway) GroupNames() []string { return g.hub.GroupNames() }

// RuleGroup carries out an order of staff about a group: RENAME, KICK or DELETE.
func (g *Gateway) RuleGroup(r talk.GroupRequest) (talk.Code, error) { return g.hub.RuleGroup(r) }

// SetGroups changes the settings of groups. While groups are switched off, requests close with 1003 and groups mean
// nothing, but are kept.
func (g *Gateway) SetGroups(l group.Limits) error { return g.hub.SetGroups(l) }

// SetPolicy changes how far voices carry, who hears spectators, and whether hidden players are heard.
func (g *Gateway) SetPolicy(p route.Policy) error { return g.hub.SetPolicy(p) }

// Declare has change alter who is given whose voice outright: domains, listens and edges. It runs in the voice turn and
// must not block. Its changes are in force when Declare returns, for those listeners who know of the talker.
func (g *Gateway) Declare(change func(b *relation.Book) error) error { return g.hub.Declare(change) }

// Declared has read look at what Declare changes. It runs in the voice turn, must not block and must change nothing.
func (g *Gateway) Declared(read func(b *relation.Book) error) error { return g.hub.Declared(read) }

// SetDeclared takes the declarations of the configuration, in place of its former ones. They add to those of
// [Gateway.Declare], are not stored, and nothing else can withdraw them. With an error nothing has changed.
func (g *Gateway) SetDeclared(d relation.Declarations) error {
	return g.hub.Declare(func(b *relation.Book) error { return b.Fix(d) })
}

// SetSounds sets the directory of the files that administrators' speakers play.
func (g *Gateway) SetSounds(dir string) { g.book.SetSounds(speaker.Sounds(dir)) }

// Domains returns the names of all declared domains, sorted. It does not wait for a turn. Do not write to them.
func (g *Gateway) Domains() []string { return g.hub.Domains() }

// Apply takes in state that is not to be stored. The error names the parts that it could not take.
func (g *Gateway) Apply(c Changes) error { return g.hub.Apply(c) }

// Why walks the checks for a talker's microphone and a listener, in their order, and returns the first that silences
// it, or how loudly it is heard. It is the same decision as the one about frames.
func (g *Gateway) Why(from, to uuid.UUID) (Why, error) {
	return g.hub.Explain(from, to)
}
