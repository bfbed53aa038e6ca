package itest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/handshake/caps"
	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/itest/testkit/natsd"
	"github.com/earshot-mc/earshot/voice/client"
)

// earshot runs the program to its end, in an empty folder.
func earshot(t *testing.T, environ []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	file, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, args...)
	ours := func(v string) bool {
		return strings.HasPrefix(v, "EARSHOT_LONG") || strings.HasPrefix(v, "EARSHOT_SOAK")
	}
	var out, complaint bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = t.TempDir(), &out, &complaint, append(slices.DeleteFunc(os.Environ(), ours), environ...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(peer.Patience, func() { cmd.Process.Kill() })
	err = cmd.Wait()
	if !late.Stop() {
		t.Fatalf("earshot %s did not end:\n%s", strings.Join(args, " "), complaint.String())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(cmd.Dir); len(left) > 0 {
		t.Errorf("earshot %s leaves %s behind", strings.Join(args, " "), left[0].Name())
	}
	return cmd.ProcessState.ExitCode(), out.String(), complaint.String()
}

// TestMistakes: whoever does something wrong is told in one line what it is, and nothing is started by halves.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		f := filepath.Join(dir, name)
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return f
	}
	certFile, keyFile, _ := certificate(t)
	_, otherKey, _ := certificate(t)
	small, _ := icon(t, 32)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	nats := natsd.Run(t, natsd.Login("earshot", "right"))
	junk := put("junk", "this is neither a picture nor a certificate\n")
	free := freeAddr(t)
	n := 0
	with := func(settings string) []string {
		n++
		return []string{"run", "--config", put(fmt.Sprintf("%d.yml", n), settings), "--listen", free}
	}
	for what, c := range map[string]struct {
		args []string
		says []string
	}{
		"an unknown flag":             {[]string{"run", "--prot", "1"}, []string{"--prot", "--help"}},
		"a flag without its value":    {[]string{"run", "--config"}, []string{"--config"}},
		"an unknown command":          {[]string{"walk"}, []string{`"walk"`, "run"}},
		"a word too many":             {[]string{"run", "fast"}, []string{`"fast"`}},
		"an address without a port":   {[]string{"run", "--offline", "--listen", "localhost"}, []string{"localhost", "port"}},
		"a port that is too large":    {[]string{"run", "--offline", "--listen", "127.0.0.1:99999"}, []string{"--listen", "99999", "port"}},
		"a check of no address":       {[]string{"check", "--listen", "1"}, []string{"--listen", `"1"`, "host:port"}},
		"a server that is itself":     {[]string{"check", "--listen", "127.0.0.1:7", "--config", put("self.yml", "servers: {a: {address: '127.0.0.1:7'}}\n")}, []string{"servers.a", "itself"}},
		"no such configuration":       {[]string{"run", "--config", filepath.Join(dir, "lost.yml")}, []string{"lost.yml", "no such file"}},
		"a folder below a file":       {[]string{"run", "--data", filepath.Join(junk, "lost"), "--listen", free}, []string{"--data", "lost"}},
		"a folder that is a file":     {[]string{"run", "--data", junk, "--listen", free}, []string{"--data", "junk"}},
		"a configuration of nonsense": {with("voice: [1\n"), []string{".yml:"}},
		"an unknown key":              {with("online: false\nvoice:\n  rnge: 12\n"), []string{".yml:3", `"rnge"`, `"range"`}},
		"a port that is taken":        {[]string{"run", "--offline", "--listen", busy.Addr().String()}, []string{busy.Addr().String(), "another program", "--listen"}},
		"a secret that is not there":  {with("forwarding: {mode: modern, secret-file: lost}\n"), []string{".yml:1", "secret-file", "lost", "no such file"}},
		"a secret that is a folder":   {with(fmt.Sprintf("servers: {a: {address: 'x:1', forwarding: modern, secret-file: %q}}\n", dir)), []string{"servers.a.secret-file", "directory"}},
		"an empty secret":             {with(fmt.Sprintf("servers: {a: {address: 'x:1', forwarding: modern, secret-file: %q}}\n", put("empty", "\n"))), []string{"servers.a", "secret"}},
		"no such certificate":         {with(fmt.Sprintf("tls: {certificate: %q, key: %q}\n", filepath.Join(dir, "lost.pem"), keyFile)), []string{"tls", "lost.pem", "no such file"}},
		"a certificate of nonsense":   {with(fmt.Sprintf("tls: {certificate: %q, key: %q}\n", junk, keyFile)), []string{"tls", "certificate"}},
		"somebody else's key":         {with(fmt.Sprintf("tls: {certificate: %q, key: %q}\n", certFile, otherKey)), []string{"tls", "match"}},
		"no key":                      {with(fmt.Sprintf("tls: {certificate: %q}\n", certFile)), []string{"tls", "key"}},
		"no such icon":                {with("status: {icon: lost.png}\n"), []string{"status.icon", "lost.png", "no such file"}},
		"an icon of nonsense":         {with(fmt.Sprintf("status: {icon: %q}\n", junk)), []string{"status.icon", "PNG"}},
		"a small icon":                {with(fmt.Sprintf("status: {icon: %q}\n", small)), []string{"status.icon", "64"}},
		"a state that nobody has":     {with("state: {url: 'nats://127.0.0.1:1', user: earshot, password: sw0rdfish}\n"), []string{"state server", "127.0.0.1:1", "is it running", "section state"}},
		"a state of somebody else":    {with(fmt.Sprintf("state: {url: '%s', user: earshot, password: sw0rdfish}\n", nats.URL())), []string{"state server", "uthorization", "section state"}},
		"a long text":                 {with(fmt.Sprintf("status: {motd: %q}\n", strings.Repeat("x", 40000))), []string{"motd"}},
	} {
		status, stdout, stderr := earshot(t, nil, c.args...)
		if status != 2 || stdout != "" {
			t.Errorf("%s: status %d, %q on stdout", what, status, stdout)
		}
		if !strings.HasPrefix(stderr, "earshot: ") || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, "\n") {
			t.Errorf("%s: not one line:\n%s", what, stderr)
		}
		for _, s := range c.says {
			if !strings.Contains(stderr, s) {
				t.Errorf("%s: %q is not in:\n%s", what, s, stderr)
			}
		}
		if strings.Contains(stderr, "sw0rdfish") {
			t.Errorf("%s: a password is in:\n%s", what, stderr)
		}
	}
	if status, _, stderr := earshot(t, []string{"EARSHOT_LIMITS_PENDING=many"}, "check"); status != 2 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "EARSHOT_LIMITS_PENDING") {
		t.Errorf("a bad variable: status %d:\n%s", status, stderr)
	}
	if status, _, stderr := earshot(t, nil); status != 2 || !strings.Contains(stderr, "earshot run") {
		t.Errorf("without a command: status %d:\n%s", status, stderr)
	}
}

// TestCheckNamesEveryMistake: a file with several mistakes is mended in one go, and a file that is right is said to be.
func TestCheckNamesEveryMistake(t *testing.T) {
	f := filepath.Join(t.TempDir(), "earshot.yml")
	os.WriteFile(f, []byte("voice:\n  whisper: 99\n  rnage: 3\ntry: [nowhere]\nlog: {level: loud}\nlimits: {pending: 0}\nstatus: {icon: lost.png}\n"), 0o600)
	for _, command := range []string{"check", "run"} {
		status, stdout, stderr := earshot(t, nil, command, "--config", f, "--listen", "127.0.0.1:0")
		lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
		for i, want := range []string{":2: voice.whisper: ", ":3: voice: unknown key", ":4: try: ", ":5: log.level: ", ":6: limits.pending: ", ":7: status.icon: "} {
			if status != 2 || stdout != "" || len(lines) != 7 || !strings.HasPrefix(lines[i], "earshot: "+f+want) {
				t.Fatalf("%s: status %d, %q on stdout, and\n%s", command, status, stdout, stderr)
			}
		}
		if lines[6] != "earshot: 6 mistakes" {
			t.Errorf("%s: %q", command, lines[6])
		}
	}
	os.WriteFile(f, []byte("online: true\n"), 0o600)
	if status, stdout, stderr := earshot(t, nil, "check", "--config", f); status != 0 || !strings.HasPrefix(stdout, "# No mistakes.") || stderr != "" {
		t.Errorf("status %d, %s\n%s", status, stdout, stderr)
	}
}

// TestAnswers: what the program says of itself.
func TestAnswers(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}, {"run", "--help"}} {
		status, stdout, stderr := earshot(t, nil, args...)
		for _, s := range []string{"earshot run", "earshot check", "earshot version", "--config", "--data", "--listen", "--offline"} {
			if status != 0 || stderr != "" || !strings.Contains(stdout, s) {
				t.Errorf("%v: status %d, %q is not in:\n%s%s", args, status, s, stdout, stderr)
			}
		}
	}
	status, stdout, stderr := earshot(t, nil, "version")
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "earshot ") || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, "go1.") {
		t.Errorf("version: status %d: %s%s", status, stdout, stderr)
	}

	// check prints what is in force, as a file that can be used as it is, but for its secrets.
	dir := t.TempDir()
	conf := filepath.Join(dir, "earshot.yml")
	text := "voice: {range: 31}\ntry: [Game]\nforwarding: {mode: modern, secret-file: word}\nservers: {game: {address: '127.0.0.1:1'}, old: {address: '127.0.0.1:2', forwarding: bungeeguard, secret: swordfish}}\nhosts: {old.example.net: {try: [old]}}\n"
	for name, s := range map[string]string{conf: text, filepath.Join(dir, "word"): "open sesame\n"} {
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "--config", conf}, {"check", "--data", dir}} {
		status, stdout, stderr = earshot(t, []string{"EARSHOT_LISTEN=127.0.0.1:4711"}, args...)
		for _, s := range []string{"range: 31", "4711", "spectators: spectators", "(hidden)", "backend-dial: 5s"} {
			if status != 0 || stderr != "" || !strings.Contains(stdout, s) {
				t.Errorf("%v: status %d, %q is not in:\n%s%s", args, status, s, stdout, stderr)
			}
		}
		if strings.Contains(stdout+stderr, "sesame") || strings.Contains(stdout+stderr, "swordfish") {
			t.Error("check prints a secret")
		}
	}
	status, again, stderr := earshot(t, nil, "check", "--config", putIn(t, strings.ReplaceAll(stdout, "secret-file: word", "secret-file: ''")))
	if status != 0 || again != strings.ReplaceAll(stdout, "secret-file: word", `secret-file: ""`) {
		t.Errorf("what check prints is not what check reads: status %d:\n%s\n%s", status, stderr, again)
	}
	if err := os.Chmod(filepath.Join(dir, "word"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := earshot(t, nil, "check", "--data", dir); status != 0 || !strings.Contains(stderr, "chmod 600") || strings.Contains(stderr, "sesame") {
		t.Errorf("a secret for everybody: status %d:\n%s", status, stderr)
	}
}

// TestCheckWarns: check accepts what can be in force and says what is probably not meant and what is not safe, with the
// line and what to write instead; it leaves nothing behind, not even a data folder.
func TestCheckWarns(t *testing.T) {
	file := putIn(t, `proxy-protocol: {trusted: [0.0.0.0/0]}
servers: {lobby: 127.0.0.1:25566, old: 127.0.0.1:25567}
try: [lobby]
voice:
  worlds: {nether: 24, lobbyy/the_end: 3}
permissions: {groups: {staff: {nodes: [earshot.comand.voice.mute]}}}
status: {motd: "<grean>Hi"}
forwarding: {secret: swordfish}
`)
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := earshot(t, nil, "check", "--config", file, "--data", filepath.Join(t.TempDir(), "lost"))
	if status != 0 || !strings.HasPrefix(stdout, "# No mistakes. In force:\n") || strings.Contains(stderr, "swordfish") {
		t.Errorf("status %d:\n%s%s", status, stdout, stderr)
	}
	for _, want := range []string{
		"proxy-protocol.trusted has 0.0.0.0/0 in it", ":8: forwarding: none: lobby, old learn neither", "no list names old (", `did you mean "the_nether"?`,
		`:5: voice.worlds."lobbyy/the_end": there is no server "lobbyy"; did you mean "lobby"?`, `:6: permissions.groups.staff.nodes: there is no permission`,
		":7: status.motd: <grean> is no tag", "chmod 600 " + file,
	} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is not in:\n%s", want, stderr)
		}
	}
	if n := strings.Count(stderr, "warning: "); n != 8 || strings.Count(stderr, "\n") != n {
		t.Errorf("%d warnings:\n%s", n, stderr)
	}
	if status, _, stderr := earshot(t, nil, "check"); status != 0 || !strings.Contains(stderr, "there is no earshot.yml in /") {
		t.Errorf("without a file: status %d:\n%s", status, stderr)
	}
}

// TestDataFolder: run makes the data folder, for its owner alone, and says so; the banner says which file is in force.
func TestDataFolder(t *testing.T) {
	p := newProgram(t, "online: false\n")
	data := filepath.Join(p.dir, "var", "earshot")
	p.args = append(p.args, "--data", data)
	p.run()
	testkit.Until(t, "the banner", func() bool { return strings.Contains(p.log.String(), "players go to limbo") })
	p.says(1, "made the data folder "+data)
	p.says(1, "settings "+filepath.Join(p.dir, "earshot.yml"))
	if st, err := os.Stat(data); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st, err)
	}
	p.stop()
	p.args = []string{"run", "--data", data, "--listen", p.addr, "--offline"}
	p.run()
	testkit.Until(t, "the banner", func() bool {
		return strings.Contains(p.log.String(), "settings none: there is no earshot.yml in "+data+", so these are the defaults")
	})
	p.says(1, "made the data folder") // once
}

func putIn(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "earshot.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSaysWhatIsUnsafe at every start, not only at the first.
func TestSaysWhatIsUnsafe(t *testing.T) {
	for range 2 {
		p := start(t, "", "--offline")
		testkit.Until(t, "the banner", func() bool { return strings.Contains(p.log.String(), "players go to limbo") })
		for _, s := range []string{"join    " + p.addr, "voice   ws://" + p.addr + "/voice", "UNSAFE  players are not authenticated"} {
			p.says(1, s)
		}
	}
	full := start(t, "online: true\nbungeecord: full\nservers: {a: {address: '127.0.0.1:1', bungeecord: self}, b: {address: '127.0.0.1:2'}}\n")
	full.says(1, "UNSAFE  bungeecord: full: plugins on b may move, message and kick the players of every server")
	t.Setenv("EARSHOT_PORT", "tcp://10.0.0.1:25565") // as Kubernetes has it beside a service of that name
	p := start(t, "online: true\n")
	testkit.Until(t, "the banner", func() bool {
		return strings.Contains(p.log.String(), "NOTE    environment variable EARSHOT_PORT is no setting")
	})
	if s := p.log.String(); strings.Contains(s, "UNSAFE") {
		t.Errorf("an online program says:\n%s", s)
	}
}

// TestLog: for machines each line is one JSON object from the first to the last, and no line for anybody has a token or
// a secret in it.
func TestLog(t *testing.T) {
	server := peer.Backend(t, "1.16.5", peer.Modern, secret)
	settings := fmt.Sprintf("online: false\ntry: [dead, game]\nforwarding: {mode: modern, secret: %q}\nservers: {game: {address: %q}, dead: {address: %q, forwarding: bungeeguard, secret: swordfish}}\n", secret, server.Addr, freeAddr(t))
	clients := peer.NewRaw(t, "1.16.5")
	for _, format := range []string{"json", "text"} {
		p := start(t, settings+fmt.Sprintf("log: {level: debug, format: %s}\n", format))
		join := func(name string) *talker {
			return newTalker(t, p, &peer.Bot{Client: clients.Join(p.addr, name).Client}, server)
		}
		ann, bob := join("Ann"+format), join("Bob"+format)
		tokens := []string{}
		ask := func(s *talker) {
			s.connect(client.Config{Ask: caps.Set{Audio: 2, Spatial: 1}})
			tokens = append(tokens, s.offer.Token)
		}
		ask(ann)
		ask(bob)
		bob.hears(ann, 1, 0, 0)
		ask(bob) // again, which ends the first socket
		tokens = append(tokens, bob.invited().Token, "madeUpBySomebody00000000000000000000000000000")
		for _, token := range tokens { // used and unused, at the right place and at wrong ones
			for _, path := range []string{"/voice?token=" + token + "&uuid=" + bob.id.String(), "/voice?uuid=1&token=" + token, "/" + token, "/voice?token=" + token + "%zz"} {
				c := through(t, "", nil, nil)
				get(t, c, "http://"+p.addr+path)
				client.Dial(t.Context(), client.Config{URL: "http://" + p.addr, Token: token, Player: ann.id})
			}
			c := dial(t, p.addr, "")
			write(t, c, []byte("GET /voice?token="+token+" HTTP/1.1\r\nbad header\r\n\r\n"))
			ended(t, c)
		}
		p.stop()
		log := p.log.String()
		for _, hidden := range append(tokens, secret, "swordfish") {
			if len(hidden) < 8 || strings.Contains(log, hidden) {
				t.Errorf("%s: %q is in the log", format, hidden)
			}
		}
		for _, told := range []string{"Ann" + format, "player logged in", "voice connected", "dead", "stopping", "not authenticated", p.addr} {
			if !strings.Contains(log, told) {
				t.Errorf("%s: %q is not in the log", format, told)
			}
		}
		if format == "json" {
			for line := range strings.Lines(log) {
				var entry struct{ Time, Level, Msg string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Time == "" || entry.Level == "" || entry.Msg == "" {
					t.Errorf("not a JSON line: %s", line)
				}
			}
			if !strings.Contains(log, `"ending":"shutdown"`) {
				t.Error("the log has no word for how the players ended")
			}
		}
		for _, s := range []*talker{ann, bob} {
			s.bot.Await("end", nil)
		}
	}
}
