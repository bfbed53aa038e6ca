package frame

import "golang.org/x/sys/cpu"

var haveAES = cpu.X86.HasAES

// aesExpand writes the eleven round keys of an AES-128 key.
//
//go:noescape
func aesExpand(key *[16]byte, keys *[176]byte)

// aesEncrypt encrypts b in place and moves iv on.
//
//go:noescape
func aesEncrypt(keys *[176]byte, iv *[16]byte, b []byte)

// aesDecrypt does the same as cfb8.undo.
//
//go:noescape
func aesDecrypt(keys *[176]byte, w []byte)
