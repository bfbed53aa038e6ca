package network

import (
	"time"

	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
)

// watch joins the proxy's sessions to the world that voice reads: one entry and one tracker for each player, for as
// long as the session lasts.
type watch struct {
	world    *world.Registry
	names    *voice.Names
	failures *track.Failures
	page     *voicePage
}

func (w watch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return track.Wants(v, s, d)
}

func (w watch) Watch(p session.Player) session.Observer {
	w.page.joined(p, w.names.Seen(p.ID(), p.Name(), time.Now()))
	player := w.world.Add(p.ID(), p.Name())
	t := track.New(player, w.world, proto.Closest(p.Protocol()))
	t.Failures = w.failures
	return tracked{t, w.world, player, w.page}
}

type tracked struct {
	*track.Track
	world  *world.Registry
	player *world.Player
	page   *voicePage
}

func (t tracked) Close() {
	t.Track.Close()
	t.world.Remove(t.player)
	if t.world.Get(t.player.ID) == nil { // else they have come back by another connection
		t.page.left(t.player.ID)
	}
}
