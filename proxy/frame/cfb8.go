package frame

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
)

// cfb8 is one direction of Minecraft's AES-128-CFB8 stream, whose key and first
// IV are the shared secret. The key stream byte for position i is the first
// byte of the block encryption of the 16 cipher bytes before i.
type cfb8 struct {
	block cipher.Block
	out   [aes.BlockSize]byte // here so that it does not escape per call
	win   [aes.BlockSize + 512]byte
}

// newCFB8 refuses secrets that are not 16 bytes long.
func newCFB8(secret []byte) (*cfb8, error) {
	if len(secret) != aes.BlockSize {
		return nil, fmt.Errorf("frame: the shared secret must be %d bytes, not %d", aes.BlockSize, len(secret))
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("frame: cipher: %w", err)
	}
	c := &cfb8{block: block}
	copy(c.win[:], secret)
	return c, nil
}

// encrypt works in place. Each byte needs the cipher byte before it, so this
// is a serial chain; the window slides over a scratch area of cipher bytes so
// that nothing is shifted per byte, and is moved down once per 512 bytes.
func (c *cfb8) encrypt(b []byte) {
	for len(b) > 0 {
		n := min(len(b), len(c.win)-aes.BlockSize)
		for i, x := range b[:n] {
			c.block.Encrypt(c.out[:], c.win[i:i+aes.BlockSize])
			x ^= c.out[0]
			c.win[i+aes.BlockSize] = x
			b[i] = x
		}
		copy(c.win[:aes.BlockSize], c.win[n:])
		b = b[n:]
	}
}

// decrypt works in place, from the last byte to the first: so the window of
// each byte, which is cipher text, is still there when its turn comes, and the
// block encryptions depend on nothing and overlap in the processor.
func (c *cfb8) decrypt(b []byte) {
	const k = aes.BlockSize
	if len(b) == 0 {
		return
	}
	n := min(len(b), k) // bytes whose window reaches into the state
	copy(c.win[k:], b[:n])
	var next [k]byte
	if len(b) >= k {
		copy(next[:], b[len(b)-k:])
	} else {
		copy(next[:], c.win[n:])
	}
	for i := len(b) - 1; i >= n; i-- {
		c.block.Encrypt(c.out[:], b[i-k:i])
		b[i] ^= c.out[0]
	}
	for i := range n {
		c.block.Encrypt(c.out[:], c.win[i:i+k])
		b[i] ^= c.out[0]
	}
	copy(c.win[:], next[:])
}
