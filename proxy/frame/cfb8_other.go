//go:build !amd64

package frame

const haveAES = false

func aesExpand(*[16]byte, *[176]byte)          {}
func aesEncrypt(*[176]byte, *[16]byte, []byte) {}
func aesDecrypt(*[176]byte, []byte)            {}
