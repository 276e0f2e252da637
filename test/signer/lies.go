package signer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

// Lie is a way in which what is signed is another than what was asked for.
type Lie string

// The lies. API servers take all of them into the status of a request.
const (
	// OtherKey is a certificate for somebody else's key.
	OtherKey Lie = "OtherKey"
	// RSAKey is one for somebody else's key, of another kind.
	RSAKey Lie = "RSAKey"
	// OtherUser names a user who was not asked for.
	OtherUser Lie = "OtherUser"
	// MoreGroups adds group system:masters.
	MoreGroups Lie = "MoreGroups"
	// FewerGroups leaves all groups out.
	FewerGroups Lie = "FewerGroups"
	// MoreSubject adds an organizational unit.
	MoreSubject Lie = "MoreSubject"
	// CABit makes it an authority.
	CABit Lie = "CABit"
	// SigningUsage lets the key sign certificates, without the bit of an authority.
	SigningUsage Lie = "SigningUsage"
	// NoSignature has key usages without digital signature.
	NoSignature Lie = "NoSignature"
	// ServerUsage lets it be a server's, too.
	ServerUsage Lie = "ServerUsage"
	// AnyUsage lets it be anything, too.
	AnyUsage Lie = "AnyUsage"
	// NoClientUsage lets it not be a client's.
	NoClientUsage Lie = "NoClientUsage"
	// Expired has it end an hour ago.
	Expired Lie = "Expired"
	// NotYetValid has it begin in a day.
	NotYetValid Lie = "NotYetValid"
	// EndsFirst has it end before it begins, both in its time of validity.
	EndsFirst Lie = "EndsFirst"
	// AuthorityFirst puts the authority's certificate before it.
	AuthorityFirst Lie = "AuthorityFirst"
	// OtherBehind puts somebody else's certificate behind it.
	OtherBehind Lie = "OtherBehind"
	// ManyBehind puts twenty authorities behind it.
	ManyBehind Lie = "ManyBehind"
	// TrailingText puts text behind it.
	TrailingText Lie = "TrailingText"
	// LeadingText puts text before it.
	LeadingText Lie = "LeadingText"
	// Huge puts 1 MiB of authorities behind it.
	Huge Lie = "Huge"
)

// Lies are all of them, by name.
func Lies() []Lie { return slices.Sorted(maps.Keys(ways)) }

// draft is a certificate before it is signed.
type draft struct {
	now         time.Time
	certificate *x509.Certificate
	public      crypto.PublicKey
}

// way is how a lie is told: in what is signed, or around it.
type way struct {
	inside func(work *draft) error
	around func(s *Signer, signed []byte) ([]byte, error)
}

func (w way) before(work *draft) error {
	if w.inside == nil {
		return nil
	}
	return w.inside(work)
}

func (w way) after(s *Signer, signed []byte) ([]byte, error) {
	if w.around == nil {
		return signed, nil
	}
	return w.around(s, signed)
}

var ways = map[Lie]way{
	OtherKey:  {inside: func(work *draft) (err error) { work.public, err = otherKey(); return err }},
	RSAKey:    {inside: func(work *draft) (err error) { work.public, err = keyOfRSA(); return err }},
	OtherUser: edit(func(made *x509.Certificate) { made.Subject.CommonName = "system:admin" }),
	MoreGroups: edit(func(made *x509.Certificate) {
		made.Subject.Organization = append(made.Subject.Organization, "system:masters")
	}),
	FewerGroups:   edit(func(made *x509.Certificate) { made.Subject.Organization = nil }),
	MoreSubject:   edit(func(made *x509.Certificate) { made.Subject.OrganizationalUnit = []string{"masters"} }),
	CABit:         edit(func(made *x509.Certificate) { made.IsCA = true }),
	SigningUsage:  edit(func(made *x509.Certificate) { made.KeyUsage |= x509.KeyUsageCertSign }),
	NoSignature:   edit(func(made *x509.Certificate) { made.KeyUsage = x509.KeyUsageKeyEncipherment }),
	ServerUsage:   edit(func(made *x509.Certificate) { made.ExtKeyUsage = append(made.ExtKeyUsage, x509.ExtKeyUsageServerAuth) }),
	AnyUsage:      edit(func(made *x509.Certificate) { made.ExtKeyUsage = append(made.ExtKeyUsage, x509.ExtKeyUsageAny) }),
	NoClientUsage: edit(func(made *x509.Certificate) { made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection} }),
	Expired:       valid(-2*time.Hour, -time.Hour),
	NotYetValid:   valid(24*time.Hour, 48*time.Hour),
	EndsFirst:     valid(4*time.Minute, 3*time.Minute),
	AuthorityFirst: {around: func(s *Signer, signed []byte) ([]byte, error) {
		return slices.Concat(s.Authority(), signed), nil
	}},
	OtherBehind: {around: func(s *Signer, signed []byte) ([]byte, error) {
		public, err := otherKey()
		if err != nil {
			return nil, err
		}
		other, err := s.sign(&x509.Certificate{NotBefore: s.authority.NotBefore, NotAfter: s.authority.NotAfter}, public)
		return slices.Concat(signed, other), err
	}},
	ManyBehind: {around: func(s *Signer, signed []byte) ([]byte, error) {
		return slices.Concat(signed, bytes.Repeat(s.Authority(), 20)), nil
	}},
	TrailingText: {around: func(_ *Signer, signed []byte) ([]byte, error) {
		return slices.Concat(signed, []byte("# and what else there is\n")), nil
	}},
	LeadingText: {around: func(_ *Signer, signed []byte) ([]byte, error) {
		return slices.Concat([]byte("# a certificate\n"), signed), nil
	}},
	Huge: {around: func(s *Signer, signed []byte) ([]byte, error) {
		return slices.Concat(signed, bytes.Repeat(s.Authority(), 1<<20/len(s.Authority()))), nil
	}},
}

func edit(change func(made *x509.Certificate)) way {
	return way{inside: func(work *draft) error {
		change(work.certificate)
		return nil
	}}
}

// valid sets the times of a certificate, from the moment of signing on.
func valid(from, to time.Duration) way {
	return way{inside: func(work *draft) error {
		work.certificate.NotBefore, work.certificate.NotAfter = work.now.Add(from), work.now.Add(to)
		return nil
	}}
}

func otherKey() (crypto.PublicKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

func keyOfRSA() (crypto.PublicKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}
