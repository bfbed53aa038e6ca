package network

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/bridge/perm"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
)

// players keeps permissions, and what each player may know of others. Commands, plugins of servers and voice go
// by it.
type players struct {
	perms  *perm.Perm
	world  *world.Registry
	server *proxy.Server // from start on
}

func newPlayers(reg *world.Registry) *players {
	p := &players{world: reg}
	p.perms, _ = perm.New(perm.Config{}) // an empty one has no faults
	return p
}

// named finds a player on the network, without regard to case.
func (p *players) named(name string) (session.Player, bool) {
	for _, q := range p.server.Players() {
		if strings.EqualFold(q.Name(), name) {
			return q, true
		}
	}
	return nil, false
}

// level returns a player's operator level on their server.
func (p *players) level(id uuid.UUID) uint8 {
	if q := p.world.Get(id); q != nil {
		return q.Facts().OpLevel
	}
	return 0
}

// account is what permissions need to know of a player.
type account interface {
	ID() uuid.UUID
	Name() string
}

// allowed tells whether a player has a permission.
func (p *players) allowed(who account, permission string) bool {
	return p.perms.Of(who.ID(), who.Name(), p.level(who.ID())).Allows(permission)
}

// admit implements session.Config's Admit.
func (p *players) admit(who session.Player, server string) bool {
	return p.allowed(who, commands.Enter(server))
}

// grants keeps one player's permissions, as long as neither the rules nor their operator level change.
type grants struct{ last atomic.Pointer[grant] }

type grant struct {
	version uint64
	level   uint8
	set     perm.Set
}

// granted does as allowed, for a player who is asked about again and again.
func (p *players) granted(known *grants, who account, permission string) bool {
	version, level := p.perms.Version(), p.level(who.ID())
	g := known.last.Load()
	if g == nil || g.version != version || g.level != level {
		g = &grant{version, level, p.perms.Of(who.ID(), who.Name(), level)}
		known.last.Store(g)
	}
	return g.set.Allows(permission)
}

// shown returns the players that to may know about. It is the rule that voice goes by.
func (p *players) shown(to account) (all []session.Player) {
	return slices.DeleteFunc(p.server.Players(), func(q session.Player) bool { return !p.world.Knows(to.ID(), q.ID()) })
}

// listed tells whether a player may be named to strangers, in the server list.
func (p *players) listed(id uuid.UUID) bool {
	q := p.world.Get(id)
	return q == nil || q.Sight.Public()
}

// nodes are the permissions of voice.
var nodes = []struct {
	node string
	bit  voice.Bits
}{
	{perm.Speak, voice.Speak}, {perm.Listen, voice.Listen}, {perm.Soundboard, voice.Soundboard}, {perm.Groups, voice.UseGroups},
	{perm.GroupsCreate, voice.CreateGroups}, {perm.GroupsInvite, voice.Invite}, {perm.GroupsAdmin, voice.AdminGroups},
	{perm.GroupsKeep, voice.KeepGroups}, {perm.MuteExempt, voice.MuteExempt},
}

// rights returns a function that tells voice what a player may do. Until the backend has said where a player is, their
// operator level is not known either, and they may do what everybody may. The function serves one goroutine.
func rights(reg *world.Registry, perms *perm.Perm) func(player uuid.UUID) voice.Bits {
	type answer struct {
		player  *world.Player
		level   uint8
		version uint64
		bits    voice.Bits
	}
	known := make(map[uuid.UUID]answer) // it is called again and again
	return func(id uuid.UUID) voice.Bits {
		p := reg.Get(id)
		if p == nil || p.Facts().Place == nil {
			return voice.Open
		}
		a := answer{player: p, level: p.Facts().OpLevel, version: perms.Version()}
		if k := known[id]; k.player == p && k.level == a.level && k.version == a.version {
			return k.bits
		}
		set := perms.Of(id, p.Name, a.level)
		for _, n := range nodes {
			if set.Allows(n.node) {
				a.bits |= n.bit
			}
		}
		if len(known) > 4096 { // most of them have left
			clear(known)
		}
		known[id] = a
		return a.bits
	}
}
