package itest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/itest/testkit/natsd"
)

// state runs earshot state in the program's folder.
func (p *program) state(status int, args ...string) (said string) {
	p.t.Helper()
	cmd := exec.Command(p.file, append([]string{"state", "--config", filepath.Join(p.dir, "earshot.yml")}, args...)...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		p.t.Errorf("earshot state %q: %v, want %d\n%s", args, err, status, out)
	}
	return string(out)
}

// TestDamagedState: a bit that flips in the file with the mutes costs none of them, and is named in the log, in
// /healthz and in /metrics. What has no copy either is missing: that is named, everything else is in force, and an
// export brings it back.
func TestDamagedState(t *testing.T) {
	p := start(t, moderated, "--offline")
	bots := peer.NewBots(t, "1.21.4")
	mod := bots.Join(p.addr, "Mod")
	var ids []string
	for range 6 {
		id := uuid.NewString()
		ids = append(ids, id)
		says(mod, "/voice mute "+id+" 1d", "is muted")
	}
	if said := p.state(0, "check"); !strings.Contains(said, "mutes: 6 records") || !strings.Contains(said, "a program runs") {
		t.Errorf("while it runs:\n%s", said)
	}
	p.state(0, "export", "backup.txt")
	p.stop()
	mod.Await("end", nil)
	if said := p.state(0, "check"); !strings.Contains(said, "mutes: 6 records") {
		t.Errorf("at rest:\n%s", said)
	}

	block := func() string {
		t.Helper()
		blocks, _ := filepath.Glob(filepath.Join(p.dir, "state/jetstream/*/streams/KV_earshot_mutes/msgs/*.blk"))
		for _, path := range blocks {
			if info, err := os.Stat(path); err == nil && info.Size() > 1000 {
				return path
			}
		}
		t.Fatalf("blocks %v", blocks)
		return ""
	}
	flip := func(file string, at int) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b[at] ^= 1
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flip(block(), 100)
	if said := p.state(1, "check"); !strings.Contains(said, "6 records come back") || !strings.Contains(said, ids[3]) {
		t.Errorf("after the flip:\n%s", said)
	}
	p.run()
	p.counts("earshot_voice_mutes", 6)
	p.counts("earshot_state_restored_total", 6)
	p.counts("earshot_state_missing", 0)
	if status, h := p.health(); status != 200 || h["state"] != "running" || h["state_restored"] != 6.0 || !strings.Contains(fmt.Sprint(h["state_damage"]), ids[2]) {
		t.Errorf("%d %v", status, h)
	}
	if log := p.log.String(); !strings.Contains(log, "missing or damaged, and are back") || !strings.Contains(log, ids[0]) {
		t.Errorf("the log:\n%s", log)
	}
	p.stop()

	flip(block(), 100)
	copied := filepath.Join(p.dir, "state/copies/mutes.txt")
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	flip(copied, strings.Index(string(text), ids[1])+40) // in the middle of that record
	p.run()
	p.counts("earshot_voice_mutes", 5)
	p.counts("earshot_state_missing", 1)
	status, h := p.health()
	if said := fmt.Sprint(h["state_damage"], h["state_advice"]); status != 200 || h["state"] != "degraded" || !strings.Contains(said, ids[1]) || !strings.Contains(said, "earshot state import") {
		t.Errorf("%d %v", status, h)
	}
	if said := p.state(1, "import", "backup.txt"); !strings.Contains(said, "stop Earshot first") {
		t.Errorf("an import into a running program:\n%s", said)
	}
	p.stop()
	// Six mutes, and the name of Mod.
	if said := p.state(0, "import", "backup.txt"); !strings.Contains(said, "7 records are stored") {
		t.Errorf("import:\n%s", said)
	}
	p.run()
	p.counts("earshot_voice_mutes", 6)
	p.counts("earshot_state_missing", 0)
}

// TestWhatIsLostAtTheEndIsListed: changes that could not be stored until the end make the exit status 1, and are
// listed. Export, check and import work on a NATS as on a folder.
func TestWhatIsLostAtTheEndIsListed(t *testing.T) {
	e := natsd.Run(t)
	p := start(t, moderated+fmt.Sprintf("state: {url: '%s'}\n", e.URL()), "--offline")
	bots := peer.NewBots(t, "1.21.4")
	mod := bots.Join(p.addr, "Mod")
	kept, lost := uuid.NewString(), uuid.NewString()
	says(mod, "/voice mute "+kept+" 1d", "is muted")
	p.state(0, "export", "backup.txt")
	e.Stop()
	testkit.Until(t, "the loss shows", func() bool { return p.metric("earshot_state_up") == 0 })
	says(mod, "/voice mute "+lost+" 1d", "is muted")
	p.once.Do(func() {
		p.cmd.Process.Signal(os.Interrupt)
		<-p.done
	})
	if log := p.log.String(); p.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(log, "1 changes are lost") || !strings.Contains(log, "mutes "+lost) {
		t.Errorf("%v:\n%s", p.cmd.ProcessState, log)
	}
	e.Options.StoreDir = t.TempDir() // another one, with nothing on it
	e.Start()
	// The mute, and the name of Mod.
	if said := p.state(0, "import", "backup.txt"); !strings.Contains(said, "2 records are stored") {
		t.Errorf("import:\n%s", said)
	}
	if said := p.state(0, "check"); !strings.Contains(said, "mutes: 1 records") {
		t.Errorf("check:\n%s", said)
	}
}
