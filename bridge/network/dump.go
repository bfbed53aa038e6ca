package network

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/earshot-mc/earshot/proxy/session"
)

// dump writes a file that helps to find a fault to the data folder; only our user can read it. It has no secrets and no
// addresses of players.
func (n *Network) dump(context.Context) (file string, err error) {
	name := filepath.Join(n.opt.Dir, "earshot-dump-"+time.Now().UTC().Format("20060102-150405.000")+".txt")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", fmt.Errorf("cannot write the dump: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := bufio.NewWriter(f)
	n.describe(w)
	if err := w.Flush(); err != nil {
		return "", fmt.Errorf("cannot write the dump: %w", err)
	}
	return name, nil
}

func (n *Network) describe(w io.Writer) {
	n.reloading.Lock()
	now := n.now
	n.reloading.Unlock()
	fmt.Fprintf(w, "Earshot %s, %s, %s/%s, %d CPUs\n", n.opt.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, f := range n.status() {
		fmt.Fprintln(w, n.say("", f.Key, f.Named...))
	}
	fmt.Fprintf(w, "\n# Configuration, of %q\n%s", now.conf.File, now.conf.Effective())
	for _, warning := range slices.Concat(now.conf.Warnings, now.conf.Notes) {
		fmt.Fprintln(w, "warning:", warning)
	}

	fmt.Fprint(w, "\n# Players\n")
	all := n.parts.server.Players()
	slices.SortFunc(all, func(x, y session.Player) int { return cmp.Compare(x.Name(), y.Name()) })
	for _, p := range all {
		fmt.Fprintf(w, "%s %s protocol=%d online=%v server=%q ping=%v locale=%q", p.Name(), p.ID(), p.Protocol(), p.Online(), p.Server(), p.Ping(), p.Locale())
		if there := n.world.Get(p.ID()); there != nil {
			if facts := there.Facts(); facts.Place != nil {
				fmt.Fprintf(w, " world=%q mode=%v operator=%d", facts.Place.World, facts.Mode, facts.OpLevel)
			}
		}
		fmt.Fprintln(w)
	}

	fmt.Fprint(w, "\n# Counters\n")
	if err := n.parts.pages.Each(func(series string, value float64) { fmt.Fprintln(w, series, value) }); err != nil {
		fmt.Fprintln(w, err)
	}
	fmt.Fprint(w, "\n# Goroutines\n")
	pprof.Lookup("goroutine").WriteTo(w, 1)
}
