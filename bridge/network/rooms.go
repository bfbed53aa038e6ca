package network

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/rooms"
	"github.com/earshot-mc/earshot/bridge/rooms/relay"
	"github.com/earshot-mc/earshot/bridge/rooms/serve"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/handshake/front"
	"github.com/earshot-mc/earshot/handshake/socket"
)

// play has the rooms and the door to them.
type play struct {
	door   *serve.Handler
	relays *relay.Rooms
	stats  *rooms.Stats
}

// newPlay makes the door and no rooms. failures counts the failures of addresses, and is shared with the voice door.
func newPlay(sweeper *socket.Sweeper, failures *front.Failures, t *turned, log *slog.Logger) *play {
	p := &play{stats: rooms.NewStats()}
	p.relays = relay.NewRooms(rooms.Config{Stats: p.stats, Log: log})
	p.door = serve.New(serve.Config{Sweeper: sweeper, Enter: p.relays.Enter, Count: t.rooms, Failures: failures, Log: log})
	return p
}

// set opens and closes rooms as a configuration says.
func (p *play) set(c configs.Rooms) {
	want := map[string]relay.Room{}
	for key, r := range c.Declared {
		want[key] = relay.Room{Capacity: r.Peers(), Token: string(r.Token)}
	}
	p.relays.Set(want)
}

// Stop lets in nobody else.
func (p *play) Stop() { p.door.Stop() }

// close sends everybody away.
func (p *play) close() { p.relays.Close() }

// Wait waits until all are gone.
func (p *play) Wait() { p.door.Wait() }

// serves reports whether a path is a room's, below the path of voice.public-url or not, and answers it.
func (p *play) serves(prefix string, w http.ResponseWriter, q *http.Request) bool {
	rest, ok := strings.CutPrefix(q.URL.Path, prefix)
	if !ok || prefix == "" || !strings.HasPrefix(rest, serve.Path) {
		return false
	}
	http.StripPrefix(prefix, p.door).ServeHTTP(w, q)
	return true
}

// exportRooms adds the counts of rooms to /metrics.
func exportRooms(a *admin.Admin, s *rooms.Stats) {
	a.Gauge("earshot_rooms", "Rooms that are open.", func() float64 { return float64(s.Rooms.Load()) })
	a.Gauge("earshot_rooms_peers", "Transports in rooms, those included that have not joined yet.", func() float64 { return float64(s.Peers.Load()) })
	a.Gauge("earshot_rooms_blocked", "Peers of rooms that do not say what they have shown, and are sent the whole state once a second.", func() float64 { return float64(s.Blocked.Load()) })
	a.Counter("earshot_rooms_clamped_seconds_total", "Simulated time that rooms have lost because they were late.", func() float64 { return float64(s.Clamped.Load()) / 1e9 })
	count := func(name, help, label string, c rooms.Count) {
		a.Counters(name, help, label, func(emit func(string, float64)) {
			for _, w := range c.Words() {
				emit(w, float64(c.Of(w)))
			}
		})
	}
	count("earshot_rooms_frames_in_total", "Frames of rooms' peers, by type; game: those of a game.", "type", s.In)
	count("earshot_rooms_frames_out_total", "Frames to rooms' peers, by type.", "type", s.Out)
	count("earshot_rooms_bytes_total", "Bytes of frames to rooms' peers, by lane and codec.", "what", s.Bytes)
	count("earshot_rooms_refused_total", "Joins that rooms have refused, by reason.", "reason", s.Refused)
	count("earshot_rooms_closed_total", "Transports of rooms that have ended, by reason.", "reason", s.Closed)
	count("earshot_rooms_dropped_total", "Frames that rooms did nothing with, by reason.", "reason", s.Dropped)
	a.Counters("earshot_rooms_late_total", "Times that rooms were woken up, by how late that was at most, in seconds.", "within", func(emit func(string, float64)) {
		for i := range s.Late {
			within := "more"
			if i < len(rooms.LateBounds) {
				within = rooms.LateBounds[i].String()
			}
			emit(within, float64(s.Late[i].Load()))
		}
	})
}
