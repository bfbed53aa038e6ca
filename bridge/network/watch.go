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
}

func (w watch) Wants(v *proto.Version, s proto.State, d proto.Dir) []proto.Packet {
	return track.Wants(v, s, d)
}

func (w watch) Watch(p session.Player) session.Observer {
	w.names.Seen(p.ID(), p.Name(), time.Now())
	player := w.world.Add(p.ID(), p.Name())
	t := track.New(player, w.world, proto.Closest(p.Protocol()))
	t.Failures = w.failures
	return tracked{t, w.world, player}
}

type tracked struct {
	*track.Track
	world  *world.Registry
	player *world.Player
}

func (t tracked) Close() {
	t.Track.Close()
	t.world.Remove(t.player)
}
