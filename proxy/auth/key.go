package auth

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"errors"
	"strconv"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/proxy/field"
	"github.com/earshot-mc/earshot/proxy/packet"
)

// mojangDER is the public key the game ships to check what its services sign.
//
//go:embed mojang.der
var mojangDER []byte

var mojangKey = func() *rsa.PublicKey {
	k, err := parseKey(mojangDER)
	if err != nil {
		panic(err)
	}
	return k
}()

func parseKey(der []byte) (*rsa.PublicKey, error) {
	k, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	r, ok := k.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("not an RSA key")
	}
	return r, nil
}

// verifyFirst checks a key of 1.19: the services sign its expiry in decimal and its PEM text, which has lines of 76
// characters and a title that is not the usual one for this encoding.
func verifyFirst(services *rsa.PublicKey, k *packet.ProfileKey) bool {
	signed := strconv.AppendInt(nil, k.Expires, 10)
	signed = append(signed, "-----BEGIN RSA PUBLIC KEY-----\n"...)
	for text := base64.StdEncoding.EncodeToString(k.PublicKey); text != ""; {
		n := min(len(text), 76)
		signed = append(append(signed, text[:n]...), '\n')
		text = text[n:]
	}
	signed = append(signed, "-----END RSA PUBLIC KEY-----\n"...)
	return verifySHA1(services, signed, k.Signature)
}

// verifySecond checks a key of 1.19.1 and 1.19.2, which belongs to one player.
func verifySecond(services *rsa.PublicKey, k *packet.ProfileKey, owner uuid.UUID) bool {
	signed := append(field.AppendI64(field.AppendUUID(nil, owner), k.Expires), k.PublicKey...)
	return verifySHA1(services, signed, k.Signature)
}

func verifySHA1(key *rsa.PublicKey, signed, signature []byte) bool {
	sum := sha1.Sum(signed)
	return rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature) == nil
}

// verifyNonce checks the signature that a client with a chat key sends in place of an encrypted token.
func verifyNonce(key *rsa.PublicKey, token []byte, salt int64, signature []byte) bool {
	sum := sha256.Sum256(field.AppendI64(append([]byte{}, token...), salt))
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) == nil
}
