package signer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// backdated is how long before it is signed a certificate begins to be valid, as with Kubernetes' signers.
	backdated = 5 * time.Minute
	// Life is how long a certificate is valid whose request doesn't say.
	Life = time.Hour
)

// Signer signs requests, by the truth or not.
type Signer struct {
	name      string
	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	mutex     sync.Mutex
	lies      []Lie
	fails     bool
}

// New is an honest signer of that name.
func New(t testing.TB, name string) *Signer {
	t.Helper()
	authority, key, err := newAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{name: name, authority: authority, key: key}
}

// Authority is the certificate, in PEM, that those of the signer are verified with.
func (s *Signer) Authority() []byte { return encode(s.authority.Raw) }

// Lie has the signer lie in these ways at once from now on; without any it is honest again. It panics when it doesn't know one, since
// that is a slip in the test.
func (s *Signer) Lie(lies ...Lie) {
	for _, lie := range lies {
		if _, found := ways[lie]; !found {
			panic(fmt.Sprintf("the signer has no lie %q", lie))
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.lies, s.fails = slices.Clone(lies), false
}

// Fail has the signer give requests condition Failed instead of a certificate, until Lie is called. Kubernetes' own does so with usages
// that it doesn't sign for.
func (s *Signer) Fail() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.fails = true
}

// Sign makes of a request in PEM what goes into a CertificateSigningRequest's status. Like most signers it takes the subject from the
// request. An error means that the request is none.
func (s *Signer) Sign(request []byte, life time.Duration, now time.Time) ([]byte, error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, errors.New("the request is not in PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if err := asked.CheckSignature(); err != nil {
		return nil, fmt.Errorf("checking the request: %w", err)
	}
	work := &draft{now: now, public: asked.PublicKey, certificate: &x509.Certificate{
		Subject: asked.Subject, NotBefore: now.Add(-backdated), NotAfter: now.Add(life), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}}
	lies, _ := s.orders()
	for _, lie := range lies {
		if err := ways[lie].before(work); err != nil {
			return nil, fmt.Errorf("lying by %s: %w", lie, err)
		}
	}
	signed, err := s.sign(work.certificate, work.public)
	if err != nil {
		return nil, err
	}
	for _, lie := range lies {
		if signed, err = ways[lie].after(s, signed); err != nil {
			return nil, fmt.Errorf("lying by %s: %w", lie, err)
		}
	}
	return signed, nil
}

func (s *Signer) orders() (lies []Lie, fails bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.lies, s.fails
}

// sign gives certificates serial numbers of their own, so that each one is another.
func (s *Signer) sign(certificate *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
	var err error
	if certificate.SerialNumber, err = serial(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, s.authority, public, s.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return encode(der), nil
}

func newAuthority(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of signer %q: %w", name, err)
	}
	number, err := serial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("making the authority of signer %q: %w", name, err)
	}
	authority, err := x509.ParseCertificate(der)
	return authority, key, err
}

func serial() (*big.Int, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return number, nil
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
