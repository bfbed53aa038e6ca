package client

import (
	"github.com/earshot-mc/earshot/bridge/rooms/packed"
	"github.com/earshot-mc/earshot/bridge/rooms/state"
)

// Packed returns the codec packed-1 with a schema.
func Packed(s *packed.Schema) Codec { return binaryForm{s} }

type binaryForm struct{ *packed.Schema }

// Apply implements [Codec].
func (f binaryForm) Apply(b []byte, d *state.Decoder) (*state.Snapshot, state.Result, error) {
	x, err := f.Decode(b, func(base int64) (state.Object, bool) { o, _ := d.Baseline(); return o, d.IsBase(base) })
	if err != nil {
		return nil, 0, err
	}
	switch x.Kind {
	case packed.Baseline:
		d.Base(x.Epoch, x.Tick, x.State)
		return nil, state.Based, nil
	case packed.State:
		if r := d.Fits(x.Epoch, x.Tick, x.Base); r != state.Applied {
			return nil, r, nil
		}
		return &state.Snapshot{Epoch: x.Epoch, Tick: x.Tick, State: x.State}, state.Applied, nil
	}
	return d.Show(x.Epoch, x.Tick, x.Kind == packed.Initial, x.State)
}
