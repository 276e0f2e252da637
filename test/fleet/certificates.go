package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a private certificate authority that signs serving certificates for 127.0.0.1.
type Authority struct {
	// PEM is the authority's certificate.
	PEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// lifetime of certificates: longer than any test, demo or sandbox runs.
const lifetime = 30 * 24 * time.Hour

// NewAuthority creates a certificate authority. Its key stays in memory.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := certificateTemplate(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making certificate authority %q: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority %q: %w", name, err)
	}
	return &Authority{PEM: encode("CERTIFICATE", der), certificate: certificate, key: key}, nil
}

// Serving returns certificate and key, in PEM, of a server on 127.0.0.1 with the given further addresses and names.
func (a *Authority) Serving(name string, addresses []net.IP, names ...string) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := certificateTemplate(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	template.DNSNames = append([]string{"localhost"}, names...)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %q: %w", name, err)
	}
	key, err = encodeKey(private)
	return encode("CERTIFICATE", der), key, err
}

// Client returns certificate and key, in PEM, of a client with this name and these groups, except for changes.
func (a *Authority) Client(name string, groups []string, changes ...func(*x509.Certificate)) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	template := certificateTemplate(name)
	template.Subject.Organization = groups
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, change := range changes {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the certificate of %q: %w", name, err)
	}
	key, err = encodeKey(private)
	return encode("CERTIFICATE", der), key, err
}

// TLS is the configuration of a server in this process.
func (a *Authority) TLS(name string) (*tls.Config, error) {
	certificate, key, err := a.Serving(name, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("pairing the certificate of %q: %w", name, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func certificateTemplate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

// writeFiles writes files, readable only by the owner, into a folder that it creates.
func writeFiles(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making folder %q: %w", folder, err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return fmt.Errorf("writing %q: %w", name, err)
		}
	}
	return nil
}
