package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Lifetimes. Renewal happens when a third is left, before any alert.
const (
	lifetime        = 90 * 24 * time.Hour
	lastingLifetime = 10 * 365 * 24 * time.Hour
	renewAt         = 30 * 24 * time.Hour
	// skew is how far the clocks of others may be behind.
	skew = time.Hour
)

// earlierAuthorities is how many earlier authorities stay trusted: usually one is enough.
const earlierAuthorities = 3

// Keys of the Secret in addition to those of its type. cert-manager uses the first, too.
const (
	// KeyAuthorities has the certificate's own authority, then earlier ones.
	KeyAuthorities      = "ca.crt"
	keyAuthorityPrivate = "ca.key"
)

// unusableError says why the Secret's certificate can't be served, without any of its data.
type unusableError struct{ why string }

func (e *unusableError) Error() string { return "the serving certificate " + e.why }

func keyPair(data map[string][]byte) (*tls.Certificate, error) {
	if len(data[corev1.TLSCertKey]) == 0 {
		return nil, &unusableError{"does not exist yet"}
	}
	serving, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil || serving.Leaf == nil {
		return nil, &unusableError{"and its key do not match"}
	}
	return &serving, nil
}

// readPair reads a certificate. The error is an *unusableError if these hosts can't use it now.
func readPair(data map[string][]byte, hosts []string, now time.Time) (*tls.Certificate, error) {
	serving, err := keyPair(data)
	if err != nil {
		return nil, err
	}
	if err := checkBegun(serving.Leaf, now); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	for _, authority := range Parse(data[KeyAuthorities]) {
		trusted.AddCert(authority)
	}
	for _, host := range hosts {
		if _, err := serving.Leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: host, CurrentTime: now}); err != nil {
			return nil, &unusableError{fmt.Sprintf("can't be verified for host %q", host)}
		}
	}
	return serving, nil
}

// checkBegun reports a certificate that was made by a clock that was ahead, or is read by one that is behind.
func checkBegun(certificate *x509.Certificate, now time.Time) error {
	if !now.Before(certificate.NotBefore) {
		return nil
	}
	return &unusableError{fmt.Sprintf("or its CA certificate is not valid before %s: compare the clocks of the nodes",
		certificate.NotBefore.UTC().Format(time.RFC3339))}
}

func isDue(serving *tls.Certificate, now time.Time) bool {
	return serving.Leaf.NotAfter.Sub(now) < renewAt
}

func (o *Options) renew(data map[string][]byte, now time.Time) (*tls.Certificate, error) {
	authority, authorityKey, err := o.authority(data, now)
	if err != nil {
		return nil, err
	}
	request := template(o.Name, now, lifetime)
	request.KeyUsage, request.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range o.Hosts {
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
	private, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey] = encode(certificate), private
	return readPair(data, o.Hosts, now)
}

// authority returns the next certificate's signer: the lasting one if it lives longer, or a new
// one.
func (o *Options) authority(data map[string][]byte, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	life := lifetime
	if o.LastingAuthority {
		life = lastingLifetime
		held, err := tls.X509KeyPair(data[KeyAuthorities], data[keyAuthorityPrivate])
		if key, ok := held.PrivateKey.(*ecdsa.PrivateKey); err == nil && ok && !now.Add(lifetime).After(held.Leaf.NotAfter) {
			return held.Leaf, key, checkBegun(held.Leaf, now) // clients have it: it is not replaced because of a clock that may be wrong
		}
	}
	request := template(o.Name+"-ca", now, life)
	request.IsCA, request.MaxPathLenZero, request.KeyUsage = true, true, x509.KeyUsageCertSign
	made, key, err := sign(request, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	if o.LastingAuthority {
		data[KeyAuthorities] = encode(made)
		data[keyAuthorityPrivate], err = encodeKey(key)
		return made, key, err
	}
	data[KeyAuthorities] = withEarlier(made, data[KeyAuthorities], now)
	return made, key, nil
}

// withEarlier is a bundle of an authority and the unexpired earlier ones.
func withEarlier(authority *x509.Certificate, before []byte, now time.Time) []byte {
	bundle, earlier := encode(authority), Parse(before)
	for _, one := range earlier[:min(len(earlier), earlierAuthorities)] {
		if one.NotAfter.After(now) {
			bundle = append(bundle, encode(one)...)
		}
	}
	return bundle
}

func template(name string, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(life), BasicConstraintsValid: true,
	}
}

// sign makes a certificate with a new key; without an authority it signs itself.
func sign(request, authority *x509.Certificate, authorityKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a key: %w", err)
	}
	if request.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, fmt.Errorf("creating a serial number: %w", err)
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
		return nil, nil, errors.New("the new certificate can't be read")
	}
	return signed, key, nil
}

// Parse returns the certificates of a bundle in PEM, without blocks that can't be read.
func Parse(bundle []byte) []*x509.Certificate {
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

func encode(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}
