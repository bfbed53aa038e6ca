package network

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/earshot-mc/earshot/bridge/admin"
	"github.com/earshot-mc/earshot/bridge/invite"
	"github.com/earshot-mc/earshot/bridge/rcon"
	"github.com/earshot-mc/earshot/bridge/track"
	"github.com/earshot-mc/earshot/proxy/bungee"
	"github.com/earshot-mc/earshot/proxy/command"
	"github.com/earshot-mc/earshot/proxy/session"
	"github.com/earshot-mc/earshot/voice"
)

// TestEveryCountIsShown: what a room counts and /metrics does not have is counted for nobody.
func TestEveryCountIsShown(t *testing.T) {
	var sessions session.Counters
	var commands command.Counters
	messages, inviter := bungee.New(bungee.Config{}), invite.New(invite.Config{})
	pages := admin.New(nil, nil)
	export(pages, &sessions, func() int { return 0 }, func() voice.Stats { return voice.Stats{} }, new(track.Failures), inviter)
	exportCommands(pages, &commands, messages)
	remote := rcon.New(rcon.Config{})
	exportRemote(pages, remote)

	want := map[float64]string{}
	var mark func(name string, v reflect.Value)
	mark = func(name string, v reflect.Value) {
		if n, ok := v.Addr().Interface().(*atomic.Uint64); ok {
			value := 1e6 + uint64(len(want))
			n.Store(value)
			want[float64(value)] = name
			return
		}
		switch v.Kind() {
		case reflect.Struct:
			for f, field := range v.Fields() {
				if f.IsExported() {
					mark(name+"."+f.Name, field)
				}
			}
		case reflect.Array:
			for i := range v.Len() {
				mark(name, v.Index(i))
			}
		}
	}
	for name, counters := range map[string]any{"session.Counters": &sessions, "command.Counters": &commands, "bungee.Messages": messages, "invite.Inviter": inviter, "rcon.Server": remote} {
		mark(name, reflect.ValueOf(counters).Elem())
	}
	if len(want) < 30 {
		t.Fatalf("only %d counters", len(want))
	}
	if err := pages.Each(func(_ string, n float64) { delete(want, n) }); err != nil {
		t.Fatal(err)
	}
	for _, name := range want {
		t.Errorf("%s is not shown", name)
	}
}
