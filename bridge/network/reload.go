package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/earshot-mc/earshot/bridge/commands"
	"github.com/earshot-mc/earshot/configs"
	"github.com/earshot-mc/earshot/proxy"
)

// Times of the looks at the files of the configuration. A change counts once it has been there for two looks, so that a
// file is not read while it is being written.
const (
	lookEvery = time.Second            // as long as nothing has changed: each look wakes an idle machine
	lookAgain = 250 * time.Millisecond // at what has
)

// follow reloads when a file of the configuration changes, until stop is called.
func (n *Network) follow() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		look := time.NewTimer(lookEvery)
		defer look.Stop()
		var before string
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				now, tried := n.look()
				next := lookEvery
				switch {
				case now == tried:
				case now == before:
					n.Reload(ctx)
				default:
					next = lookAgain
				}
				before = now
				look.Reset(next)
			}
		}
	})
	return func() {
		cancel()
		following.Wait()
	}
}

// look returns the stamp of the configuration's files, and that of the ones that were read last.
func (n *Network) look() (now, tried string) {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	return stamp(n.files), n.tried
}

// stamp tells whether files have changed: where they are gone, written to, or others have taken their place.
func stamp(files []string) string {
	var b strings.Builder
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			fmt.Fprintf(&b, "%s %d %d %v\n", f, info.ModTime().UnixNano(), info.Size(), info.Mode())
		}
	}
	return b.String()
}

// Reload reads the configuration again and puts it in force, whole or not at all. It returns the changes in force, and
// the settings that need a restart; the log has both. Call it only while Run serves.
func (n *Network) Reload(ctx context.Context) (changes, restart []string, err error) {
	n.reloading.Lock()
	defer n.reloading.Unlock()
	if !n.serving || n.opt.Load == nil {
		return nil, nil, errors.New("there is nothing to read again")
	}
	now := n.now
	tell := func(level slog.Level, text string, args ...any) {
		if commands.AtTerminal(ctx) { // the answer says it
			level = slog.LevelDebug
		}
		n.log.Log(ctx, level, text, args...)
	}
	n.tried = stamp(n.files)
	l, err := n.opt.Load()
	defer func() {
		files := l.Files
		if err != nil { // it is tried again when a file is mended that only the new configuration names
			files = slices.Compact(slices.Sorted(slices.Values(slices.Concat(now.conf.Files, l.Files))))
			tell(slog.LevelError, "the configuration was not read again; nothing has changed", "error", err)
		}
		if stamp(n.files) == n.tried { // else they have changed again meanwhile
			n.tried = stamp(files)
		}
		n.files = files
	}()
	if err != nil {
		return nil, nil, err
	}
	all := configs.Changes(&now.conf.Config, &l.Config)
	l.Keep(&now.conf.Config)
	next, err := n.compile(l, nil)
	if err != nil {
		return nil, nil, err
	}
	n.apply(next)

	for _, c := range all {
		if c.Restart {
			restart = append(restart, c.String())
			tell(slog.LevelWarn, "a setting needs a restart", "setting", c.String())
		} else {
			changes = append(changes, c.String())
		}
	}
	changes = append(changes, rewritten(now, next)...)
	for _, c := range changes {
		tell(slog.LevelInfo, "setting changed", "setting", c)
	}
	for _, w := range Unsafe(l) {
		if !slices.Contains(Unsafe(now.conf), w) {
			n.log.Warn("unsafe", "why", w)
		}
	}
	for _, note := range l.Notes {
		if !slices.Contains(now.conf.Notes, note) {
			n.log.Warn("note", "what", note)
		}
	}
	tell(slog.LevelInfo, "the configuration was read again", "changes", len(changes), "need_restart", len(restart))
	return changes, restart, nil
}

// rewritten names the settings whose files have the same names and new contents.
func rewritten(from, to *settings) (all []string) {
	note := func(key string, same bool) {
		if !same {
			all = append(all, key+": the file has changed")
		}
	}
	if was, is := from.tls.Files, to.tls.Files; was != nil && is != nil && reflect.DeepEqual(from.conf.TLS, to.conf.TLS) {
		note("tls.certificate", reflect.DeepEqual(was.Certificate, is.Certificate))
	}
	note("status.icon", from.conf.Status.Icon != to.conf.Status.Icon || from.proxy.Status.Icon == to.proxy.Status.Icon)
	for _, h := range to.proxy.ByHost {
		i := slices.IndexFunc(from.proxy.ByHost, func(was proxy.Host) bool { return was.Name == h.Name })
		icon := to.conf.Hosts[h.Name].Icon
		if i < 0 || icon == "" || icon != from.conf.Hosts[h.Name].Icon {
			continue
		}
		note("hosts."+h.Name+".icon", h.Status.Icon == from.proxy.ByHost[i].Status.Icon)
	}
	for _, tag := range languages(from.conf, to.conf) {
		note(filepath.Join(to.conf.Languages, tag+".yml"), reflect.DeepEqual(from.conf.Texts[tag], to.conf.Texts[tag]))
	}
	return append(all, redescribed(from.conf, to.conf)...)
}

// languages returns the tags of all.
func languages(all ...*configs.Loaded) (tags []string) {
	for _, l := range all {
		for tag := range l.Texts {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// Unsafe returns the warnings about a configuration.
func Unsafe(l *configs.Loaded) (all []string) {
	if !l.Online {
		all = append(all, "players are not authenticated: anybody can join as anybody (--offline, or online: false)")
	}
	return append(all, l.Warnings...)
}
