package itest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// describe puts what an administrator would into the folder of versions for it: what the program prints of 26.3 with
// other ids, or the report of the game's data generator.
func describe(p *program, report bool) {
	p.t.Helper()
	text := []byte(reportOf(proto.Lookup(proto.V26_3), 1))
	if !report {
		out, err := exec.Command(p.file, "versions", "777").Output()
		if err != nil {
			p.t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(out, &v); err != nil {
			p.t.Fatal(err)
		}
		for place, ids := range v["packets"].(map[string]any) {
			if strings.HasPrefix(place, "play/") {
				for name, id := range ids.(map[string]any) {
					ids.(map[string]any)[name] = id.(float64) + 1
				}
			}
		}
		v["names"] = []string{peer.Newer.Name}
		text, _ = json.Marshal(v)
	}
	p.version("900.json", string(text))
}

// version puts a file into the folder of versions.
func (p *program) version(name, text string) {
	p.t.Helper()
	folder := filepath.Join(p.dir, "versions")
	os.Mkdir(folder, 0o700)
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// reportOf returns a version's packets.json, with so many packets in front of those of play. Packets that no table of
// ours names have made-up names.
func reportOf(v *proto.Version, further int32) string {
	report := map[string]map[string]map[string]map[string]int32{}
	for s := proto.Handshake; s <= proto.Play; s++ {
		for _, d := range []proto.Dir{proto.Serverbound, proto.Clientbound} {
			names, last := map[int32]string{}, int32(-1)
			for _, name := range proto.GameNames(s, d) {
				p, _ := proto.ByGameName(s, d, name)
				if id, ok := v.ID(s, d, p); ok && name != "game_profile" { // which was called so before
					names[id], last = name, max(last, id)
				}
			}
			if last < 0 {
				continue
			}
			first := int32(0)
			if s == proto.Play {
				first = further
			}
			list := map[string]map[string]int32{}
			for id := range first {
				list[fmt.Sprintf("minecraft:new_%d", id)] = map[string]int32{"protocol_id": id}
			}
			for id := range last + 1 {
				name := names[id]
				if name == "" {
					name = fmt.Sprintf("packet_%d", id)
				}
				list["minecraft:"+name] = map[string]int32{"protocol_id": id + first}
			}
			if report[s.String()] == nil {
				report[s.String()] = map[string]map[string]map[string]int32{}
			}
			report[s.String()][d.String()] = list
		}
	}
	text, _ := json.Marshal(report)
	return string(text)
}

// TestNewerRelease: players of a release that the program does not know get in on its first day, and everybody can see
// what does not work for them. As soon as a file describes it, they have everything.
func TestNewerRelease(t *testing.T) {
	server := peer.Backend(t, peer.Newer.Name, peer.Modern, secret)
	settings := fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q, forwarding: modern, secret: %q}}\n", server.Addr, secret)
	p := newProgram(t, settings)
	in, line, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close()
	p.at = func(cmd *exec.Cmd) { cmd.Stdin = in }
	p.run()
	in.Close()
	says := func(command, want string) {
		t.Helper()
		testkit.Until(t, fmt.Sprintf("%q to be answered with %q", command, want), func() bool {
			fmt.Fprintln(line, command)
			return strings.Contains(p.log.String(), want)
		})
	}
	x := &portTest{p: p}
	if s := x.ping(t, dial(t, p.addr, ""), peer.Newer.Protocol); s.Version.Protocol != peer.Newer.Protocol || !strings.Contains(s.Version.Name, "1.8-26.3") ||
		len(s.Players.Sample) != 1 || !strings.Contains(s.Players.Sample[0].Name, "newer than this proxy") {
		t.Errorf("the server list shows %+v", s)
	}
	bots := peer.NewBots(t, peer.Newer.Name)
	ann := bots.Join(p.addr, "Ann")
	server.Joined("Ann")
	server.Teleport("Ann", 3, 70, 4, 0, 0)
	server.At("Ann", 3, 70, 4)
	ann.Goto(6, 4)
	server.Say("Ann", "hello")
	ann.Await("chat", func(e peer.Event) bool { return e.Text == "hello" })
	p.counts("earshot_relayed_players", 1)
	p.counts(`earshot_relayed_versions_total{version="900"}`, 1)
	p.counts("earshot_undecoded_total", 0)
	says("/glist all", "Ann (of version 900, which is not known here: no voice, no commands)")
	if n := strings.Count(p.log.String(), "players of a version that is not known here"); n != 1 {
		t.Errorf("%d lines in the log about the version, want one:\n%s", n, p.log.String())
	}
	ann.Chat("/server")
	server.Await("chat", "Ann", func(e peer.Event) bool { return strings.Contains(e.Text, "/server") })

	p.write(settings + "unknown-versions: refuse\n")
	testkit.Until(t, "newer releases to be refused", func() bool {
		return x.ping(t, dial(t, p.addr, ""), peer.Newer.Protocol).Version.Protocol == proto.Max
	})
	if r := refusal(t, p.addr, peer.Newer.Protocol, "Eve"); !strings.Contains(r, "outdated_server") {
		t.Errorf("refused with %s", r)
	}

	describe(p, false)
	testkit.Until(t, "the release to be known", func() bool {
		return strings.Contains(x.ping(t, dial(t, p.addr, ""), peer.Newer.Protocol).Version.Name, "1.8-27.0")
	})
	bob := bots.Join(p.addr, "Bob")
	server.Joined("Bob")
	bob.Chat("/server")
	bob.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "You are on game") })
	says("/find Bob", "Bob is on game")
	ann.Chat("/ping") // Ann's connection goes on as it is
	server.Await("chat", "Ann", func(e peer.Event) bool { return strings.Contains(e.Text, "/ping") })

	// A file that cannot be right changes nothing, and says why.
	p.version("900.json", `{"like": 777, "traits": {"CompactMode": true}}`)
	testkit.Until(t, "the error to be told", func() bool {
		return strings.Contains(p.log.String(), `versions/900.json: traits: there is no trait`)
	})
	if s := x.ping(t, dial(t, p.addr, ""), peer.Newer.Protocol); !strings.Contains(s.Version.Name, "27.0") {
		t.Errorf("the server list shows %+v", s)
	}
}

// TestVersionByFile: a release that a file describes has everything: voice, and switching by command.
func TestVersionByFile(t *testing.T) {
	alongside(t, "voice", func(t *testing.T) {
		hearEachOther(t, peer.Newer, peer.Modern, func(p *program) { describe(p, false) })
	})
	alongside(t, "switching", func(t *testing.T) {
		switching(t, peer.Newer.Name, func(p *program) { describe(p, true) })
	})
}

// TestWrongTraits: where a file says something wrong of a version, that costs the feature concerned, and not the
// players.
func TestWrongTraits(t *testing.T) {
	server := peer.Backend(t, peer.Newer.Name, peer.None, "")
	p := newProgram(t, fmt.Sprintf("online: false\ntry: [game]\nservers: {game: {address: %q}}\n", server.Addr))
	p.version("900.json", fmt.Sprintf(`{"packets": %s, "traits": {"TeleportConfirmHasPosition": false}}`, reportOf(proto.Lookup(proto.V26_3), 1)))
	p.run()
	ann := peer.NewBots(t, peer.Newer.Name).Join(p.addr, "Ann")
	server.Teleport("Ann", 3, 70, 4, 0, 0)
	server.At("Ann", 3, 70, 4)
	ann.Goto(6, 4)
	ann.Chat("/server")
	ann.Await("chat", func(e peer.Event) bool { return strings.Contains(e.Text, "You are on game") })
	if n := p.metric(`earshot_undecoded_total{packet="teleport_confirm",version="900"}`); n < 1 {
		t.Errorf("%v answers to teleports are counted", n)
	}
	if n := strings.Count(p.log.String(), "packet=teleport_confirm"); n != 1 {
		t.Errorf("%d lines in the log, want one", n)
	}
}

// TestBrokenVersionFiles: the program does not start with one, and says what to do.
func TestBrokenVersionFiles(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"an unknown key":       {"900.json", `{"trait": {}}`, `versions/900.json:1: unknown key "trait": did you mean "traits"?`},
		"no JSON":              {"900.json", `{"traits": `, `versions/900.json`},
		"an unknown trait":     {"900.json", `{"traits": {"CompactMode": true}}`, `versions/900.json: traits: there is no trait "CompactMode"; ` + "`earshot versions traits` lists them"},
		"an unknown packet":    {"900.json", `{"packets": {"play/clientbound": {"keepalive": 1}}}`, `there is no packet "keepalive"`},
		"an id twice":          {"900.json", `{"packets": {"play/clientbound": {"keep_alive": 50}}}`, `both have id 50`},
		"half a report":        {"900.json", `{"play": {"clientbound": {"minecraft:login": {"protocol_id": 1}}}}`, `the report is not whole`},
		"a report without it":  {"900.json", strings.ReplaceAll(reportOf(proto.Lookup(proto.V26_3), 0), "minecraft:keep_alive", "minecraft:alive"), `has no keep_alive, without which nobody can play`},
		"like nothing":         {"900.json", `{"like": 12}`, `like: protocol 12 is not built in`},
		"no number":            {"new.json", `{"like": 777}`, `call it 900.json`},
		"another number":       {"900.json", `{"protocol": 901, "like": 777}`, `the file is called 900.json and says 901`},
		"a report of a string": {"900.json", `{"play": {"clientbound": {"minecraft:login": "1"}}}`, `is not {"protocol_id": 44}`},
	} {
		p := newProgram(t, "online: false\n")
		p.version(c.file, c.text)
		for _, args := range [][]string{p.args, append([]string{"check"}, p.args[1:]...)} {
			cmd := exec.Command(p.file, args...)
			cmd.Dir = p.dir
			out, err := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), c.want) || strings.Count(string(out), "\n") != 1 {
				t.Errorf("%s, %s: %v\n%s", name, args[0], err, out)
			}
		}
		p.once = new(sync.Once)
		p.once.Do(func() {}) // there is nothing to stop
	}
}
