package peer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// versions returns those that the peers are tried with against each other: without any proxy between them everything
// must work, or a failure elsewhere means nothing.
func versions() []Version {
	if os.Getenv("EARSHOT_LONG") != "" {
		return Versions
	}
	return Core
}

func each(t *testing.T, list []Version, f func(t *testing.T, v Version)) {
	for _, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}

func TestVersions(t *testing.T) {
	for _, v := range Versions {
		if proto.Lookup(v.Protocol) == nil {
			t.Errorf("%s: the proxy does not support protocol %d", v.Name, v.Protocol)
		}
	}
	for _, v := range Core {
		if !slices.Contains(Versions, v) {
			t.Errorf("%v is not among all versions", v)
		}
	}
	if Protocol("1.20.4") != 765 || Protocol("1.14.2") != 0 {
		t.Error("Protocol is wrong")
	}
}

// TestNewer: what the peers know of 26.2 and 26.3 and their packages do not, against bytes.
func TestNewer(t *testing.T) {
	if out, err := exec.Command("node", "--test", "../peers/newer.test.js").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPeers: bots and raw clients on the stub backend. One process of each kind per version does it all.
func TestPeers(t *testing.T) {
	each(t, versions(), func(t *testing.T, v Version) {
		s := Backend(t, v.Name, None, "", Threshold(64))
		bots, raws := NewBots(t, v.Name), NewRaw(t, v.Name)
		testBots(t, v, s, bots)
		testRaw(t, v, s, raws)
		testRefused(t, v, s, raws)
		if v.Protocol >= 764 {
			testConfiguration(t, v, s, bots)
		}
	})
}

// testBots: two mineflayer players.
func testBots(t *testing.T, v Version, s *Server, c *BotCrowd) {
	bots := []*Bot{c.Dial(s.Addr, "Ada"), c.Dial(s.Addr, "Bob")}
	ada, bob := bots[0], bots[1]
	ada.Spawned()
	bob.Spawned()
	for _, b := range bots {
		if j := s.Joined(b.Name); j.Protocol != v.Protocol || j.Host != "127.0.0.1" || j.UUID == "" {
			t.Errorf("joined as %s", j.Raw)
		}
	}

	// Everybody is in everybody's list; hiding and leaving take out.
	for _, b := range bots {
		for _, other := range bots {
			b.Await("listed", func(e Event) bool { return e.Text == other.Name })
		}
	}
	s.Hide("Ada", "Bob")
	ada.Await("unlisted", func(e Event) bool { return e.Text == "Bob" })
	if names := ada.Where().Names; slices.Contains(names, "Bob") {
		t.Errorf("Bob is hidden from Ada, whose list is %v", names)
	}
	s.Show("Ada", "Bob")
	ada.Await("listed", func(e Event) bool { return e.Text == "Bob" })

	// Walking, on both sides of the connection.
	at := ada.Goto(12, 3)
	if math.Hypot(at.X-12, at.Z-3) > 0.3 {
		t.Errorf("walked to %v, %v", at.X, at.Z)
	}
	s.At("Ada", at.X, at.Y, at.Z)
	ada.Look(90, 0)
	if to := ada.Walk(20); to.X > at.X-1 || math.Abs(to.Z-at.Z) > 0.2 {
		t.Errorf("looked west and walked from %v, %v to %v, %v", at.X, at.Z, to.X, to.Z)
	}

	// The server moves a player: absolutely, then relatively.
	bob.Skip("moved")
	s.Skip("pos", "Bob")
	s.Teleport("Bob", 10, 75, -4, 30, 10)
	if e := bob.Await("moved", nil); e.X != 10 || e.Y != 75 || e.Z != -4 || math.Abs(math.Mod(e.Yaw-30, 360)) > 0.1 && math.Abs(math.Mod(e.Yaw-30, 360)) < 359.9 {
		t.Errorf("moved to %s", e.Raw)
	}
	s.At("Bob", 10, 75, -4)
	bob.Goto(9, -4) // and falls down
	if e := s.await("pos", "Bob", func(e Event) bool { return e.Y == 70 }); e.Y != 70 {
		t.Error(e.Raw)
	}
	before := bob.Where()
	s.Teleport("Bob", 1, 0, -2, 0, 0, "x", "y", "z", "yaw", "pitch")
	after := bob.Await("moved", nil)
	if math.Abs(after.X-before.X-1) > 0.01 || math.Abs(after.Z-before.Z+2) > 0.01 {
		t.Errorf("moved by 1, -2 from %v, %v to %v, %v", before.X, before.Z, after.X, after.Z)
	}

	// Plugin messages both ways.
	ada.Register("socketsvc:hello", "socketsvc:offer")
	register := "minecraft:register"
	if v.Protocol < 393 {
		register = "REGISTER"
	}
	if e := s.Await("payload", "Ada", func(e Event) bool { return e.Channel == register }); string(e.Data) != "socketsvc:hello\x00socketsvc:offer" {
		t.Errorf("registered %q", e.Data)
	}
	ada.Payload("socketsvc:hello", []byte{1, 0, 255})
	if e := s.Await("payload", "Ada", func(e Event) bool { return e.Channel == "socketsvc:hello" }); string(e.Data) != "\x01\x00\xff" || e.State != "play" {
		t.Errorf("the server got %s", e.Raw)
	}
	s.Payload("Ada", "socketsvc:x", []byte("to you"))
	if e := ada.Await("payload", func(e Event) bool { return e.Channel == "socketsvc:x" }); string(e.Data) != "to you" {
		t.Errorf("the bot got %s", e.Raw)
	}

	// Chat.
	bob.Chat("hello")
	s.Await("chat", "Bob", func(e Event) bool { return e.Text == "hello" })
	bob.Chat("/help me")
	s.Await("chat", "Bob", func(e Event) bool { return e.Text == "/help me" })
	s.Say("Bob", "good day")
	bob.Await("chat", func(e Event) bool { return e.Text == "good day" })

	// Game mode, another world, death.
	s.GameMode("Ada", 3)
	ada.Await("game", func(e Event) bool { return e.Mode == "spectator" })
	s.GameMode("Ada", 0)
	ada.Await("game", func(e Event) bool { return e.Mode == "survival" })
	ada.Skip("spawn")
	ada.Skip("moved")
	s.Respawn("Ada", "minecraft:the_nether", 0, 4, 70, 5)
	ada.Await("spawn", nil)
	ada.Await("moved", func(e Event) bool { return e.X == 4 && e.Z == 5 })
	ada.Goto(6, 5)
	s.Kill("Ada", 1, 70, 2)
	ada.Await("death", nil)
	s.Await("respawned", "Ada", nil)
	ada.Await("moved", func(e Event) bool { return e.X == 1 && e.Z == 2 })
	ada.Goto(3, 2)

	// A ride: the bot stays where it sat down and the vehicle moves.
	kind := "boat"
	if v.Protocol%2 == 0 {
		kind = "minecart"
	}
	vehicle := s.Vehicle(kind, 5, 70, 5)
	s.Seat(vehicle, "Bob", "Ada")
	for _, b := range bots {
		if e := b.Await("mount", nil); e.Entity != vehicle {
			t.Errorf("%s mounted %d, want %d", b.Name, e.Entity, vehicle)
		}
	}
	if e := s.Drive(vehicle, Relative, 1.5, 0, -1); e.X != 6.5 || e.Z != 4 {
		t.Errorf("drove to %s", e.Raw)
	}
	s.Drive(vehicle, MoveLook, 1, 0, 0)
	s.Drive(vehicle, Teleport, -3, 1, 3)
	if v.Protocol >= 768 {
		s.Drive(vehicle, Sync, 1, 0, 1)
		s.Drive(vehicle, Minecart, 1, 0, 1)
	}
	s.Seat(vehicle)
	if v.Protocol < 107 {
		ada.Await("dismount", nil)
	}
	s.Destroy(vehicle)

	// Kicked, and gone.
	s.Kick("Bob", "enough")
	if e := bob.Await("kicked", nil); e.Text != "enough" || e.State != "play" {
		t.Errorf("kicked with %s", e.Raw)
	}
	bob.Await("end", nil)
	s.Await("leave", "Bob", nil)
	ada.Await("unlisted", func(e Event) bool { return e.Text == "Bob" })
	ada.Quit()
	s.Await("leave", "Ada", nil)
}

// testRaw: what only raw clients can do.
func testRaw(t *testing.T, v Version, s *Server, c *RawCrowd) {
	r := c.Join(s.Addr, "Rita")
	s.Joined("Rita")
	r.Move(3, 70, 4)
	s.At("Rita", 3, 70, 4)
	r.MoveLook(3.5, 71, 4.25, 45, -10)
	if e := s.Await("pos", "Rita", nil); e.X != 3.5 || e.Yaw != 45 || e.Pitch != -10 {
		t.Errorf("moved as %s", e.Raw)
	}
	r.Look(-90, 5)
	if e := s.Await("look", "Rita", nil); e.Yaw != -90 || e.Pitch != 5 {
		t.Errorf("looked as %s", e.Raw)
	}
	if tp := s.Teleport("Rita", 1, 0, 0, 0, 0, "x", "y", "z"); v.Protocol >= 107 {
		s.Await("confirmed", "Rita", func(e Event) bool { return e.Teleport == tp.Teleport })
	}
	s.At("Rita", 4.5, 71, 4.25)

	r.Watch("entity_status", "set_passengers", "attach_entity", "game_state_change", "player_info", "player_remove")
	s.Op("Rita", 4)
	r.Await("packet", func(e Event) bool {
		return e.Packet == "entity_status" && strings.Contains(string(e.Params), `"entityStatus":28`)
	})
	vehicle := s.Vehicle("boat", 5, 70, 5)
	s.Seat(vehicle, "Rita")
	s.Seat(vehicle)
	if v.Protocol >= 107 {
		for _, want := range []int{1, 0} {
			r.Await("packet", func(e Event) bool {
				var p struct{ Passengers []int32 }
				return e.Packet == "set_passengers" && json.Unmarshal(e.Params, &p) == nil && len(p.Passengers) == want
			})
		}
		r.MoveVehicle(6, 70, 6)
		if e := s.Await("vehicle", "Rita", nil); e.X != 6 || e.Z != 6 {
			t.Errorf("drove to %s", e.Raw)
		}
		s.CorrectVehicle("Rita", 5, 70, 5)
	} else {
		for _, want := range []string{fmt.Sprint(vehicle), "-1"} {
			r.Await("packet", func(e Event) bool {
				return e.Packet == "attach_entity" && strings.Contains(string(e.Params), `"vehicleId":`+want)
			})
		}
	}
	s.Kill("Rita", 2, 70, 2)
	r.Respawn()
	s.Await("respawned", "Rita", nil)
	r.Await("moved", func(e Event) bool { return e.X == 2 })
	if v.Protocol >= 735 {
		s.Respawn("Rita", "earshot:arena", 1, 0, 70, 0)
		r.Await("moved", func(e Event) bool { return e.X == 0 })
	}
	s.Raw("Rita", append(field.AppendVarInt(nil, id(t, v, proto.Clientbound, proto.EntityStatus)), 0, 0, 0, 1, 22))
	r.Await("packet", func(e Event) bool { return strings.Contains(string(e.Params), `"entityStatus":22`) })
	if seen := r.Seen(); seen["map_chunk"] < 25 {
		t.Errorf("seen %v, want at least 25 chunks", seen)
	}
	if p := c.Ping(s.Addr); !strings.Contains(string(p), `"stub"`) || !strings.Contains(string(p), fmt.Sprintf(`"protocol":%d`, v.Protocol)) {
		t.Errorf("the status is %s", p)
	}
	rolf := c.Join(s.Addr, "Rolf")
	c.Wander(20)
	for range 20 {
		s.Await("pos", "Rolf", nil)
	}
	c.Rest()
	s.Drop("Rolf")
	s.Await("leave", "Rolf", nil)
	rolf.Await("end", nil)
	rolf.Quit() // both too late
	rolf.Vanish()
	r.Vanish()
	s.Await("leave", "Rita", nil)
}

func id(t *testing.T, v Version, d proto.Dir, p proto.Packet) int32 {
	t.Helper()
	id, ok := proto.Lookup(v.Protocol).ID(proto.Play, d, p)
	if !ok {
		t.Fatalf("%s has no %v", v.Name, p)
	}
	return id
}

// testConfiguration: the phase of 1.20.2 and later.
func testConfiguration(t *testing.T, v Version, s *Server, c *BotCrowd) {
	s.Hold(true)
	b := c.Dial(s.Addr, "Conny")
	s.Await("configuring", "Conny", nil)
	s.Payload("Conny", "socketsvc:x", []byte("early"))
	if e := b.Await("payload", func(e Event) bool { return e.Channel == "socketsvc:x" }); e.State != "configuration" {
		t.Errorf("got %s", e.Raw)
	}
	b.Payload("socketsvc:hello", []byte("early too"))
	if e := s.Await("payload", "Conny", func(e Event) bool { return e.Channel == "socketsvc:hello" }); e.State != "configuration" {
		t.Errorf("the server got %s", e.Raw)
	}
	s.Finish("Conny")
	b.Spawned()
	first := s.Joined("Conny")

	s.Reconfigure("Conny", true)
	s.Await("reconfiguring", "Conny", nil)
	s.Finish("Conny")
	if second := s.Joined("Conny"); second.Entity == first.Entity {
		t.Errorf("joined again as %s", second.Raw)
	}
	b.Await("login", nil)
	b.Await("login", nil)
	b.Await("moved", nil)
	b.Goto(10, 10)

	s.Reconfigure("Conny", true)
	s.Await("reconfiguring", "Conny", nil)
	s.Kick("Conny", "while configuring")
	b.Await("end", nil)

	s.Hold(false)
}

func testRefused(t *testing.T, v Version, s *Server, c *RawCrowd) {
	for _, phase := range []string{"login", "config", "play"} {
		if phase == "config" && v.Protocol < 764 {
			continue
		}
		s.Refuse("Nina", phase, "not in "+phase)
		r := c.Dial(s.Addr, Login{Name: "Nina"})
		e := r.Await("kicked", nil)
		if e.Text != "not in "+phase || !strings.HasPrefix(e.State, phase) {
			t.Errorf("%s: kicked with %s", phase, e.Raw)
		}
		r.Await("end", nil)
	}
	s.Refuse("Nina", "", "")
	c.Join(s.Addr, "Nina").Quit()
}

// TestForwarding: the backend believes only what is forwarded the right way. The proxy's part is played by hand.
func TestForwarding(t *testing.T) {
	who := uuid.MustParse("01234567-89ab-cdef-0123-456789abcdef")
	plain := strings.ReplaceAll(who.String(), "-", "")
	each(t, []Version{{"1.8.8", 47}, {"1.21.4", 769}}, func(t *testing.T, v Version) {
		c := NewRaw(t, v.Name)
		servers := map[string]*Server{Legacy: Backend(t, v.Name, Legacy, ""), BungeeGuard: Backend(t, v.Name, BungeeGuard, "s3cret")}
		guard := `[{"name":"textures","value":"dGV4","signature":"c2ln"},{"name":"bungeeguard-token","value":"%s","signature":""}]`
		for _, x := range []struct {
			name, mode, host string
			ok               bool
		}{
			{"Lea", Legacy, "mc.example.org\x00203.0.113.9\x00" + plain + "\x00[]", true},
			{"Leo", Legacy, "mc.example.org", false},
			{"Gil", BungeeGuard, "h\x00203.0.113.9\x00" + plain + "\x00" + fmt.Sprintf(guard, "s3cret"), true},
			{"Gus", BungeeGuard, "h\x00203.0.113.9\x00" + plain + "\x00" + fmt.Sprintf(guard, "wrong"), false},
		} {
			s := servers[x.mode]
			r := c.Dial(s.Addr, Login{Name: x.name, Host: x.host})
			if !x.ok {
				s.Await("refused", x.name, nil)
				r.Await("kicked", nil)
				continue
			}
			f := s.Joined(x.name).Forwarded
			if f == nil || f.Address != "203.0.113.9" || f.UUID != who.String() {
				t.Errorf("%s: forwarded %+v", x.mode, f)
			} else if x.mode == BungeeGuard && (len(f.Properties) != 1 || f.Properties[0] != (Property{"textures", "dGV4", "c2ln"})) {
				t.Errorf("properties %+v", f.Properties)
			}
			r.Await("moved", nil)
		}
		if v.Protocol < 393 {
			return
		}
		s := Backend(t, v.Name, Modern, "s3cret", AskForwarding(1), Threshold(-1))
		for name, secret := range map[string]string{"Moa": "s3cret", "Max": "wrong", "Mia": ""} {
			r := c.Dial(s.Addr, Login{Name: name, SilentToPlugins: secret != "", Watch: []string{"login_plugin_request"}})
			if secret != "" {
				var q struct{ MessageID int32 }
				if err := json.Unmarshal(r.Await("packet", nil).Params, &q); err != nil {
					t.Fatal(err)
				}
				data := field.AppendString(field.AppendVarInt(nil, 1), "203.0.113.9")
				data = field.AppendString(field.AppendUUID(data, who), "Renamed")
				data = field.AppendVarInt(data, 0)
				mac := hmac.New(sha256.New, []byte(secret))
				mac.Write(data)
				answer := append(field.AppendVarInt([]byte{2}, q.MessageID), 1)
				r.Raw(append(mac.Sum(answer), data...))
			}
			if secret == "s3cret" {
				if f := s.Joined("Renamed").Forwarded; f == nil || f.Address != "203.0.113.9" || f.Version != 1 || f.Name != "Renamed" || f.UUID != who.String() {
					t.Errorf("modern: forwarded %+v", f)
				}
			} else {
				s.Await("refused", name, nil)
				r.Await("kicked", nil)
			}
		}
	})
}

func TestSquid(t *testing.T) {
	each(t, []Version{{"1.12.2", 340}, {"1.21.4", 769}}, func(t *testing.T, v Version) {
		s := Squid(t, v.Name)
		b := Bots(t, v.Name, s.Addr, "Sid")[0]
		if e := s.Joined("Sid"); e.UUID == "" {
			t.Errorf("joined as %s", e.Raw)
		}
		at := b.Where()
		to := b.Walk(20)
		if math.Hypot(to.X-at.X, to.Z-at.Z) < 1 {
			t.Errorf("walked from %v, %v to %v, %v", at.X, at.Z, to.X, to.Z)
		}
		b.Quit()
		s.Await("leave", "Sid", nil)
	})
}

func TestSessions(t *testing.T) {
	s := NewSessions(t)
	a := s.Account("Olga", Property{Name: "textures", Value: "dGV4", Signature: "c2ln"})
	if b, err := hex.DecodeString(a.ID); err != nil || len(b) != 16 || a.ID == s.Account("Otto").ID {
		t.Errorf("account %+v", a)
	}
	join := func(token, id, server string) int {
		body := fmt.Sprintf(`{"accessToken":%q,"selectedProfile":%q,"serverId":%q}`, token, id, server)
		r, err := http.Post(s.URL+"/session/minecraft/join", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		return r.StatusCode
	}
	joined := func(name, server string) (int, string) {
		r, err := http.Get(s.URL + "/session/minecraft/hasJoined?username=" + name + "&serverId=" + server)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, strings.TrimSpace(string(b))
	}
	if got := join("wrong", a.ID, "-1f"); got != 403 {
		t.Errorf("a wrong token: %d", got)
	}
	if got := join(a.Token, a.ID, "-1f"); got != 204 {
		t.Errorf("joining: %d", got)
	}
	for _, q := range [][2]string{{"Olga", "1f"}, {"Otto", "-1f"}} {
		if got, body := joined(q[0], q[1]); got != 204 || body != "" {
			t.Errorf("hasJoined %v: %d %s", q, got, body)
		}
	}
	want := fmt.Sprintf(`{"id":%q,"name":"Olga","properties":[{"name":"textures","value":"dGV4","signature":"c2ln"}]}`, a.ID)
	if got, body := joined("Olga", "-1f"); got != 200 || body != want {
		t.Errorf("hasJoined: %d %s, want %s", got, body, want)
	}
	if got, _ := joined("Olga", "-1f"); got != 204 {
		t.Errorf("the same login twice: %d", got)
	}
	s.Down(true)
	if got, _ := joined("Olga", "-1f"); got != 503 || join(a.Token, a.ID, "-1f") != 503 {
		t.Errorf("while down: %d", got)
	}
	if n := len(s.Asked()); n != 5 {
		t.Errorf("%d queries noted, want 5", n)
	}
	http.DefaultClient.CloseIdleConnections()
}
