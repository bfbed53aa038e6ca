package store

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	writes = 1000
	lives  = 40 // about
)

// step returns one of the writes: what it does to a key.
func step(i int) (key string, n int, gone bool) {
	return fmt.Sprint("k", i*7%60), i, i%5 == 4
}

// after returns what is stored when the first n writes are done.
func after(n int) map[string]int {
	state := map[string]int{}
	for i := range n {
		key, v, gone := step(i)
		if gone {
			delete(state, key)
		} else {
			state[key] = v
		}
	}
	return state
}

// child says what it finds, then goes on with the writes and says the number of each when it is acknowledged.
func child(dir string) {
	first, err := strconv.Atoi(os.Getenv("EARSHOT_STORE_FROM"))
	if err == nil {
		err = childWrites(dir, first)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func childWrites(dir string, first int) error {
	ctx := context.Background()
	s, err := Open(ctx, Config{Dir: dir, Log: quiet()})
	if err != nil {
		return err
	}
	b, err := OpenBucket(ctx, s, things)
	if err != nil {
		return err
	}
	found := map[string]int{}
	for key, v := range b.Load() {
		found[key] = v.N
	}
	line, err := json.Marshal(found)
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	for i := first; i < writes; i++ {
		key, n, gone := step(i)
		if gone {
			err = b.Delete(ctx, key)
		} else {
			err = b.Put(ctx, key, thing{key, n})
		}
		if err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil // without closing anything
}

// Killed at random points and started again: nothing that was acknowledged is missing, and nothing is there that was
// never asked for.
func TestNothingAcknowledgedIsLostByKilling(t *testing.T) {
	runs := 1
	if os.Getenv("EARSHOT_LONG") != "" {
		runs = 20
	}
	for run := range runs {
		dir := t.TempDir()
		r := rand.New(rand.NewPCG(uint64(run), uint64(time.Now().UnixNano())))
		acked := 0
		for life := 0; acked < writes; life++ {
			acked = live(t, dir, acked, life < 2*lives, r)
			if t.Failed() {
				return
			}
		}
		if found, _ := start(t, dir, writes).find(t); !maps.Equal(found, after(writes)) {
			t.Fatalf("in the end: %v, want %v", found, after(writes))
		}
	}
}

// live runs a child from the write acked on and returns how many are acknowledged when it ends. One that is to be
// killed is, after a while, at any point of its life.
func live(t *testing.T, dir string, acked int, kill bool, r *rand.Rand) int {
	t.Helper()
	c := start(t, dir, acked)
	found, ok := c.find(t)
	if !ok {
		t.Fatal("the child has said nothing")
	}
	// The write that was under way may have been done.
	if !maps.Equal(found, after(acked)) && !maps.Equal(found, after(min(acked+1, writes))) {
		t.Errorf("after %d acknowledged writes found %v, want %v", acked, found, after(acked))
	}
	left := r.IntN(2 * writes / lives)
	for c.out.Scan() {
		i, err := strconv.Atoi(c.out.Text())
		if err != nil || i != acked {
			t.Fatalf("the child says %q, expected %d", c.out.Text(), acked)
		}
		acked++
		if left--; kill && left < 0 {
			// Anywhere within the next write.
			for end := time.Now().Add(time.Duration(r.IntN(3000)) * time.Microsecond); time.Now().Before(end); {
			}
			c.cmd.Process.Kill()
			// What it has said before it died counts too.
		}
	}
	c.end()
	return acked
}

type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	err *strings.Builder
}

func start(t *testing.T, dir string, from int) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EARSHOT_STORE_CHILD="+dir, "EARSHOT_STORE_FROM="+strconv.Itoa(from))
	p := &process{cmd: cmd, err: &strings.Builder{}}
	cmd.Stderr = p.err
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

// end kills what still runs and waits for it.
func (p *process) end() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// find reads what the child has found.
func (p *process) find(t *testing.T) (found map[string]int, ok bool) {
	t.Helper()
	if !p.out.Scan() {
		p.end()
		t.Fatalf("the child has died: %v %s", p.out.Err(), p.err)
	}
	if err := json.Unmarshal(p.out.Bytes(), &found); err != nil {
		rest, _ := io.ReadAll(strings.NewReader(p.out.Text()))
		t.Fatalf("the child says %s: %v", rest, err)
	}
	return found, true
}
