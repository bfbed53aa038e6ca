package main

import (
	"bufio"
	"fmt"
	"math/bits"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// process is one server under test: a child, so that its CPU and memory are its own.
type process struct {
	cmd  *exec.Cmd
	addr string // its first line, or as told
}

// launch starts a program of ours. Where first is set, the child's first line is its address.
func launch(first bool, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...)}
	if !first { // Earshot, whose banner is no figure; that it does not run shows soon enough
		return p, p.cmd.Start()
	}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("%s printed no address: %w", name, err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

func (p *process) stop() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	t := time.AfterFunc(12*time.Second, func() { p.cmd.Process.Kill() })
	p.cmd.Wait()
	t.Stop()
}

// cpu returns user and system time so far, from the process's own clock.
func (p *process) cpu() time.Duration {
	var ts syscall.Timespec
	if _, _, e := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^p.cmd.Process.Pid<<3|2), uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// rss returns its resident memory in bytes.
func (p *process) rss() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}

// delays is a histogram of latencies in µs, 32 steps to each power of two.
type delays struct {
	mu sync.Mutex
	n  [1024]uint64
}

func (d *delays) add(x time.Duration) {
	v := uint64(max(x.Microseconds(), 0))
	i := int(v)
	if v >= 32 {
		e := bits.Len64(v) - 6
		i = min((e+1)*32+int(v>>e)-32, len(d.n)-1)
	}
	d.mu.Lock()
	d.n[i]++
	d.mu.Unlock()
}

func (d *delays) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.n[:])
}

// at returns the quantile q in ms.
func (d *delays) at(q float64) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all, sum uint64
	for _, n := range d.n {
		all += n
	}
	for i, n := range d.n {
		if sum += n; all > 0 && float64(sum) >= q*float64(all) {
			if i < 32 {
				return float64(i) / 1000
			}
			return float64(uint64(i%32+32)<<(i/32-1)) / 1000
		}
	}
	return 0
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// machine describes the machine that was measured.
func machine() string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	return model
}
