package frame

import (
	"bytes"
	"crypto/aes"
	"encoding/hex"
	"testing"
)

// naive returns CFB8 as NIST SP 800-38A writes it: a shift register.
func naive(key, iv, b []byte, decrypt bool) []byte {
	block, _ := aes.NewCipher(key)
	reg, out, got := bytes.Clone(iv), make([]byte, 16), make([]byte, len(b))
	for i, x := range b {
		block.Encrypt(out, reg)
		got[i] = x ^ out[0]
		feedback := got[i]
		if decrypt {
			feedback = x
		}
		reg = append(reg[1:], feedback)
	}
	return got
}

// SP 800-38A, F.3.7 and F.3.8.
func TestCFB8Vector(t *testing.T) {
	unhex := func(s string) []byte { b, _ := hex.DecodeString(s); return b }
	key, iv := unhex("2b7e151628aed2a6abf7158809cf4f3c"), unhex("000102030405060708090a0b0c0d0e0f")
	plain, secret := unhex("6bc1bee22e409f96e93d7e117393172aae2d"), unhex("3b79424c9c0dd436bace9e0ed4586a4f32b9")
	for split := range plain {
		for name, c := range ciphers(key) {
			decrypt := *c
			copy(c.iv[:], iv)
			copy(decrypt.iv[:], iv)
			b := bytes.Clone(plain)
			c.encrypt(b[:split])
			c.encrypt(b[split:])
			if !bytes.Equal(b, secret) {
				t.Errorf("%s, encrypted, split at %d: %x", name, split, b)
			}
			decrypt.decrypt(b[:split])
			decrypt.decrypt(b[split:])
			if !bytes.Equal(b, plain) {
				t.Errorf("%s, decrypted, split at %d: %x", name, split, b)
			}
		}
	}
}

// ciphers returns the two ways, of which a program uses one.
func ciphers(secret []byte) map[string]*cfb8 {
	usual, _ := newCFB8(secret)
	generic, _ := newCFB8(secret)
	generic.generic(secret)
	return map[string]*cfb8{"usual": usual, "generic": generic}
}

// FuzzCFB8 compares both directions with the naive form, in pieces whose sizes are taken from cuts.
func FuzzCFB8(f *testing.F) {
	f.Add([]byte("a"), []byte{1})
	f.Add(bytes.Repeat([]byte("0123456789"), 200), []byte{1, 15, 16, 17, 0, 255, 3})
	f.Add(make([]byte, 528), []byte{255, 255, 18})
	f.Add(noise(uninterrupted+5, 1), []byte{})
	f.Fuzz(func(t *testing.T, data, cuts []byte) {
		pieces := func(do func([]byte)) []byte {
			b := bytes.Clone(data)
			rest := b
			for _, n := range cuts {
				n := min(int(n), len(rest))
				do(rest[:n])
				rest = rest[n:]
			}
			do(rest)
			return b
		}
		encrypted, decrypted := naive(secret, secret, data, false), naive(secret, secret, data, true)
		for name, c := range ciphers(secret) {
			if !bytes.Equal(pieces(c.encrypt), encrypted) {
				t.Fatal(name, "encrypt differs")
			}
		}
		for name, c := range ciphers(secret) {
			if !bytes.Equal(pieces(c.decrypt), decrypted) {
				t.Fatal(name, "decrypt differs")
			}
		}
	})
}
