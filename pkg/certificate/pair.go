package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Times of a certificate. It is renewed when a third of its life is left, which is above every alert.
const (
	lifetime = 90 * 24 * time.Hour
	renewAt  = 30 * 24 * time.Hour
	// skew is how far the clocks of others may be behind.
	skew = time.Hour
)

// authoritiesKept is how many earlier authorities stay trusted: in an orderly life one is enough.
const authoritiesKept = 3

// Keys of the Secret, as cert-manager has them.
const (
	keyAuthorities = "ca.crt"
	keyCertificate = "tls.crt"
	keyPrivate     = "tls.key"
	// keyPath has the secret path of the webhooks.
	keyPath = "path"
)

// pair is a serving certificate with the authorities to trust: its own first, earlier ones after it.
type pair struct {
	authorities, certificate, key []byte
	// path is in hexadecimal digits.
	path string

	serving *tls.Certificate
	expires time.Time
}

// unusableError says why what the Secret has can't be served; it holds nothing of the Secret.
type unusableError struct{ why string }

func (e *unusableError) Error() string { return "the serving certificate " + e.why }

// newPair makes an authority and a certificate that it signs. Authorities of before that have not expired stay trusted.
func newPair(hosts []string, now time.Time, before []byte) (*pair, error) {
	authority, authorityKey, err := sign(template("trellis-webhook-ca", now, true), nil, nil)
	if err != nil {
		return nil, err
	}
	request := template("trellis-webhook", now, false)
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			request.IPAddresses = append(request.IPAddresses, address)
			continue
		}
		request.DNSNames = append(request.DNSNames, host)
	}
	certificate, key, err := sign(request, authority, authorityKey)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the serving key: %w", err)
	}
	authorities := encode("CERTIFICATE", authority.Raw)
	earlier := certificates(before)
	for _, earlier := range earlier[:min(len(earlier), authoritiesKept)] {
		if earlier.NotAfter.After(now) {
			authorities = append(authorities, encode("CERTIFICATE", earlier.Raw)...)
		}
	}
	return readPair(map[string][]byte{
		keyAuthorities: authorities, keyCertificate: encode("CERTIFICATE", certificate.Raw), keyPrivate: encode("PRIVATE KEY", private),
	}, hosts, now)
}

// readPair reads a Secret's data. The error is an *unusableError where the certificate can't be served to these hosts now.
func readPair(data map[string][]byte, hosts []string, now time.Time) (*pair, error) {
	found := &pair{authorities: data[keyAuthorities], certificate: data[keyCertificate], key: data[keyPrivate], path: string(data[keyPath])}
	if len(found.certificate) == 0 {
		return nil, &unusableError{"is not there yet"}
	}
	serving, err := tls.X509KeyPair(found.certificate, found.key)
	if err != nil || serving.Leaf == nil {
		return nil, &unusableError{"and its key don't belong together"}
	}
	trusted := x509.NewCertPool()
	for _, authority := range certificates(found.authorities) {
		trusted.AddCert(authority)
	}
	for _, host := range hosts {
		if _, err := serving.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host, CurrentTime: now}); err != nil {
			return nil, &unusableError{fmt.Sprintf("can't be verified for host %q", host)}
		}
	}
	found.serving, found.expires = &serving, serving.Leaf.NotAfter
	return found, nil
}

func (p *pair) data() map[string][]byte {
	return map[string][]byte{
		keyAuthorities: p.authorities, keyCertificate: p.certificate, keyPrivate: p.key, keyPath: []byte(p.path),
	}
}

// pathSize is the size of the secret path, in bytes of randomness.
const pathSize = 32

func newPath() string {
	content := make([]byte, pathSize)
	_, _ = rand.Read(content) // never fails
	return hex.EncodeToString(content)
}

func isPath(path string) bool {
	content, err := hex.DecodeString(path)
	return err == nil && len(content) == pathSize
}

func (p *pair) isDue(now time.Time) bool { return p.expires.Sub(now) < renewAt }

func (p *pair) trusts(bundle []byte) bool { return bytes.Equal(p.authorities, bundle) }

func template(name string, now time.Time, authority bool) *x509.Certificate {
	made := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	if authority {
		made.IsCA, made.MaxPathLenZero, made.KeyUsage = true, true, x509.KeyUsageCertSign
		return made
	}
	made.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return made
}

// sign makes a certificate with a key of its own; without an authority it is its own.
func sign(request, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	if request.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	if authority == nil {
		authority, authorityKey = request, key
	}
	der, err := x509.CreateCertificate(rand.Reader, request, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("signing certificate %q: %w", request.Subject.CommonName, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, errors.New("a certificate made just now can't be read")
	}
	return signed, key, nil
}

// certificates reads a bundle; what can't be read is left out.
func certificates(bundle []byte) []*x509.Certificate {
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return found
		}
		if read, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, read)
		}
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
