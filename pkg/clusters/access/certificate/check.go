package certificate

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

const (
	// maxSize, in bytes, is far above any chain: the API server allows more than a megabyte in a status.
	maxSize = 64 << 10
	// maxCertificates counts the leaf and the authorities between it and a root.
	maxCertificates = 8
	// skew is how far the signer's clock may be ahead of ours.
	skew = 5 * time.Minute
)

// RefusedError says why a signer's certificate is refused. It contains nothing of the key, and no text of the
// certificate.
type RefusedError struct {
	// Why continues after "the certificate".
	Why string
	// ByClock says that the certificate would be accepted at another time.
	ByClock bool
}

func (e *RefusedError) Error() string { return "the certificate " + e.Why }

func refused(format string, arguments ...any) error {
	return &RefusedError{Why: fmt.Sprintf(format, arguments...)}
}

func refusedByClock(format string, at time.Time) error {
	return &RefusedError{Why: fmt.Sprintf(format, at.UTC().Format(time.RFC3339)), ByClock: true}
}

// Check checks the PEM that a signer issued for the key: the certificate first, then authorities, if any, and nothing else, since
// all of it is given to the agent. The subject must be the user in exactly these groups, in any order. That is required of every
// signer: a certificate for another subject can't be distinguished from another user's.
//
// It returns the times in the certificate. Signers set the first somewhat before the moment of signing; it may be any time ago. The
// error is a *RefusedError, unless our own key can't be read.
func Check(signedPEM, keyPEM []byte, user string, groups []string, now time.Time) (issued, expires time.Time, err error) {
	key, err := readKey(keyPEM)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	chain, err := certificates(signedPEM)
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	leaf := chain[0]
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return time.Time{}, time.Time{}, refused("is for a different key than the request")
	}
	if !isSubject(leaf.Subject.Names, user, groups) {
		return time.Time{}, time.Time{}, refused("does not have the requested subject: user %q and its groups", user)
	}
	if err := checkUsage(leaf); err != nil {
		return time.Time{}, time.Time{}, err
	}
	if err := checkTimes(leaf, now); err != nil {
		return time.Time{}, time.Time{}, err
	}
	if slices.ContainsFunc(chain[1:], func(further *x509.Certificate) bool { return !further.IsCA }) {
		return time.Time{}, time.Time{}, refused("is followed by a certificate that is not a CA certificate")
	}
	return leaf.NotBefore, leaf.NotAfter, nil
}

// certificates reads one or more PEM blocks, with only white space between them.
func certificates(signed []byte) ([]*x509.Certificate, error) {
	if len(signed) > maxSize {
		return nil, refused("has %d bytes, more than %d", len(signed), maxSize)
	}
	var found []*x509.Certificate
	for rest := bytes.TrimSpace(signed); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		if len(found) == maxCertificates {
			return nil, refused("is followed by more than %d CA certificates", maxCertificates-1)
		}
		block, after := pem.Decode(rest)
		// Decode skips text that is no block, and broken blocks, up to the next one that it can read.
		if block == nil || !bytes.HasPrefix(rest, begin) || bytes.Count(rest[:len(rest)-len(after)], begin) != 1 {
			return nil, refused("is next to data that is not a PEM certificate")
		}
		if block.Type != certificateBlock || len(block.Headers) > 0 {
			return nil, refused("is next to a PEM block that is not a certificate")
		}
		read, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, refused("can't be read")
		}
		found, rest = append(found, read), after
	}
	if len(found) == 0 {
		return nil, refused("is empty")
	}
	return found, nil
}

var begin = []byte("-----BEGIN ")

// Attributes of a subject: CN, the user, and O, a group each.
var (
	commonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	organization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// isSubject compares all attributes: an attribute that is not checked here may mean something to others.
func isSubject(attributes []pkix.AttributeTypeAndValue, user string, groups []string) bool {
	var users, organizations []string
	for _, attribute := range attributes {
		value, _ := attribute.Value.(string) // the parser returns no other type
		switch {
		case attribute.Type.Equal(commonName):
			users = append(users, value)
		case attribute.Type.Equal(organization):
			organizations = append(organizations, value)
		default:
			return false
		}
	}
	wanted := slices.Sorted(slices.Values(groups))
	return len(users) == 1 && users[0] == user && slices.Equal(slices.Sorted(slices.Values(organizations)), wanted)
}

func checkUsage(leaf *x509.Certificate) error {
	has := func(usage x509.ExtKeyUsage) bool { return slices.Contains(leaf.ExtKeyUsage, usage) }
	switch {
	case leaf.IsCA, leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return refused("is a CA certificate, which may sign others")
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return refused("has key usages without digital signature, which clients need")
	case has(x509.ExtKeyUsageAny):
		return refused("allows every use")
	case has(x509.ExtKeyUsageServerAuth):
		return refused("may be used by a server")
	case !has(x509.ExtKeyUsageClientAuth):
		return refused("may not be used by a client")
	}
	return nil
}

func checkTimes(leaf *x509.Certificate, now time.Time) error {
	switch {
	case !leaf.NotBefore.Before(leaf.NotAfter):
		return refused("expires before it becomes valid")
	case !now.Before(leaf.NotAfter):
		return refusedByClock("expired at %s", leaf.NotAfter)
	case leaf.NotBefore.After(now.Add(skew)):
		return refusedByClock("is not valid before %s", leaf.NotBefore)
	}
	return nil
}
