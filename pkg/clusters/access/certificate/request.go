package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
)

// Types of PEM blocks.
const (
	keyBlock         = "PRIVATE KEY"
	requestBlock     = "CERTIFICATE REQUEST"
	certificateBlock = "CERTIFICATE"
)

// errKey contains nothing of the invalid key.
var errKey = errors.New("the key is not an ECDSA key in PKCS 8")

// NewKey makes an ECDSA key over P-256, as PEM in PKCS 8.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// Request returns the spec.request of a CertificateSigningRequest for the user in these groups, as PEM, and the key's public half
// as DER (SubjectPublicKeyInfo). The same arguments make the same bytes, so that a request can be distinguished from another one
// of its name.
func Request(keyPEM []byte, user string, groups []string) (csrPEM, publicKeyDER []byte, err error) {
	key, err := readKey(keyPEM)
	if err != nil {
		return nil, nil, err
	}
	if user == "" {
		return nil, nil, errors.New("a request needs a user")
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}
	// Without a source of randomness the signature is the one of RFC 6979, which needs none.
	der, err := x509.CreateCertificateRequest(nil, template, key)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a request for user %q: %w", user, err)
	}
	publicKeyDER, err = x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: requestBlock, Bytes: der}), publicKeyDER, nil
}

func readKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil || block.Type != keyBlock {
		return nil, errKey
	}
	read, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errKey
	}
	key, ok := read.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errKey
	}
	return key, nil
}
