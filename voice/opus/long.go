//go:build cgo && nolibopusfile

package opus

import "fmt"

// DecodeLong does as Decode, for packets of any duration, as files have them. pcm needs room for MaxLong samples; it
// returns the number of samples in the packet.
func (d *Decoder) DecodeLong(packet []byte, pcm []int16) (int, error) {
	if len(pcm) < MaxLong {
		return 0, fmt.Errorf("opus decoder: room for %d samples, not %d", MaxLong, len(pcm))
	}
	n, err := d.dec.Decode(packet, pcm)
	if err != nil {
		return 0, fmt.Errorf("opus decoder: %w", err)
	}
	return n, nil
}
