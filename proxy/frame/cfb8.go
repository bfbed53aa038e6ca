package frame

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// cfb8 is one direction of Minecraft's AES-128-CFB8 stream, whose key and first IV are the shared secret. The key
// stream byte for position i is the first byte of the block encryption of the 16 cipher bytes before i.
//
// It is the largest cost of an online-mode player, so on amd64 it uses the processor's AES instructions without the way
// through memory that crypto/aes has per block.
type cfb8 struct {
	block cipher.Block              // nil: keys are used
	keys  [11 * aes.BlockSize]byte  // round keys for the instructions
	iv    [aes.BlockSize]byte       // the last cipher bytes
	out   [aes.BlockSize]byte       // here so that it does not escape per call
	win   [aes.BlockSize + 512]byte // scratch: cipher bytes that a window slides over
}

// uninterrupted is what the assembly does in one call, about a tenth of a millisecond: it cannot be preempted, and a
// garbage collection would wait.
const uninterrupted = 8 << 10

// newCFB8 refuses secrets that are not 16 bytes long.
func newCFB8(secret []byte) (*cfb8, error) {
	if len(secret) != aes.BlockSize {
		return nil, fmt.Errorf("frame: the shared secret must be %d bytes, not %d", aes.BlockSize, len(secret))
	}
	c := new(cfb8)
	copy(c.iv[:], secret)
	if haveAES {
		aesExpand(&c.iv, &c.keys)
		return c, nil
	}
	return c, c.generic(secret)
}

// generic makes c use crypto/aes.
func (c *cfb8) generic(secret []byte) (err error) {
	if c.block, err = aes.NewCipher(secret); err != nil {
		return fmt.Errorf("frame: cipher: %w", err)
	}
	return nil
}

// encrypt works in place. Each byte needs the cipher byte before it, so this is a serial chain, bound by the latency of
// the AES instructions.
func (c *cfb8) encrypt(b []byte) {
	for c.block == nil && len(b) > 0 {
		n := min(len(b), uninterrupted)
		aesEncrypt(&c.keys, &c.iv, b[:n])
		b = b[n:]
	}
	// The window slides so that nothing is shifted per byte.
	for len(b) > 0 {
		n := min(len(b), len(c.win)-aes.BlockSize)
		copy(c.win[:], c.iv[:])
		for i, x := range b[:n] {
			c.block.Encrypt(c.out[:], c.win[i:i+aes.BlockSize])
			x ^= c.out[0]
			c.win[i+aes.BlockSize] = x
			b[i] = x
		}
		copy(c.iv[:], c.win[n:])
		b = b[n:]
	}
}

// decrypt works in place. The windows are known cipher bytes, so nothing is serial.
func (c *cfb8) decrypt(b []byte) {
	const k = aes.BlockSize
	for len(b) > 0 {
		piece := b[:min(len(b), uninterrupted)]
		b = b[len(piece):]
		head := copy(c.win[k:2*k], piece) // bytes whose windows reach into the IV
		copy(c.win[:], c.iv[:])
		if len(piece) >= k {
			copy(c.iv[:], piece[len(piece)-k:])
		} else {
			copy(c.iv[:], c.win[head:])
		}
		c.undo(piece)
		c.undo(c.win[:k+head])
		copy(piece, c.win[k:k+head])
	}
}

// undo decrypts w from 16 on, given the cipher bytes before; from the end, so that each byte's window is still cipher
// bytes when its turn comes.
func (c *cfb8) undo(w []byte) {
	const k = aes.BlockSize
	if c.block == nil {
		aesDecrypt(&c.keys, w)
		return
	}
	for i := len(w) - 1; i >= k; i-- {
		c.block.Encrypt(c.out[:], w[i-k:i])
		w[i] ^= c.out[0]
	}
}
