package client

import (
	"net/url"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/voice/wire"
)

// Volumes holds a listener's own multipliers, applied on top of the server's gain: 1 where nothing was set, 0 for
// silence. They outlive connections: give the same ones to each [Config]. The zero value is ready, and any goroutine
// may use it.
type Volumes struct {
	mu  sync.RWMutex
	set map[choice]float64
}

// choice names what one multiplier is for.
type choice struct {
	kind     wire.Kind
	endpoint string // of KindChannel: the server of the channel, since servers choose the UUIDs themselves
	id       uuid.UUID
}

func (v *Volumes) put(c choice, x float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.set == nil {
		v.set = make(map[choice]float64)
	}
	v.set[c] = x
}

// SetPlayer sets the volume of a player's microphone, heard from the player or out of a speaker.
func (v *Volumes) SetPlayer(player uuid.UUID, x float64) {
	v.put(choice{kind: wire.KindPlayer, id: player}, x)
}

// SetClips sets the volume of a player's clips on the soundboard.
func (v *Volumes) SetClips(player uuid.UUID, x float64) {
	v.put(choice{kind: wire.KindBoard, id: player}, x)
}

// SetSpeaker sets the volume of a speaker of the server with that base URL, by the channel's UUID. A microphone that
// comes out of it has this multiplier and its player's.
func (v *Volumes) SetSpeaker(base string, channel uuid.UUID, x float64) {
	v.put(choice{wire.KindChannel, namespace(base), channel}, x)
}

// of returns the multiplier for a frame of a server.
func (v *Volumes) of(endpoint string, f *wire.S2C) float64 {
	if v == nil {
		return 1
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	get := func(c choice) float64 {
		if x, ok := v.set[c]; ok {
			return x
		}
		return 1
	}
	if f.Kind != wire.KindChannel {
		return get(choice{kind: f.Kind, id: f.Source})
	}
	x := get(choice{f.Kind, endpoint, f.Source})
	if f.Origin != uuid.Nil {
		x *= get(choice{kind: wire.KindPlayer, id: f.Origin})
	}
	return x
}

// namespace returns the part of a server's base URL that stays the same, however it is reached.
func namespace(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base // Dial refuses it
	}
	return strings.ToLower(u.Host) + strings.TrimSuffix(u.Path, "/")
}
