package query

import (
	"context"
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
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// CertificateSecret is the usual name of the Secret in the platform namespace with the endpoint's certificate. Whoever asks
// trusts its ca.crt. Two endpoints with different host names need a Secret each.
const CertificateSecret = "trellis-query-tls"

// Keys of the Secret, beside tls.crt and tls.key.
const (
	keyAuthority        = "ca.crt"
	keyAuthorityPrivate = "ca.key"
)

const (
	certificateManager = "query-endpoint"
	// lookEvery is the time between two looks at the Secret: another replica may have renewed it.
	lookEvery = time.Minute
	// tryAgain is the time to the next look after one that failed.
	tryAgain = 5 * time.Second
	// authorityLife is long, since whoever asks keeps the authority; servingLife is short, since nobody does.
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 90 * 24 * time.Hour
	// renewAt is what is left of a certificate when the next one is made.
	renewAt = 30 * 24 * time.Hour
)

// OwnCertificate is a certificate that the endpoint makes for itself and keeps in a Secret, so that all replicas serve the
// same one and a restart changes nothing. A Secret of that name made by somebody else is served as it is.
type OwnCertificate struct {
	client  client.Client
	key     client.ObjectKey
	hosts   []string
	clock   clock.PassiveClock
	logger  logr.Logger
	present atomic.Pointer[tls.Certificate]
}

// NewOwnCertificate makes one for host names and addresses. The client must not read Secrets from a cache.
func NewOwnCertificate(direct client.Client, secret client.ObjectKey, hosts []string, logger logr.Logger) *OwnCertificate {
	return &OwnCertificate{client: direct, key: secret, hosts: hosts, clock: clock.RealClock{}, logger: logger}
}

// NeedLeaderElection is false: every replica serves.
func (c *OwnCertificate) NeedLeaderElection() bool { return false }

var errNoCertificate = errors.New("no certificate yet")

// GetCertificate is for a tls.Config.
func (c *OwnCertificate) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if present := c.present.Load(); present != nil {
		return present, nil
	}
	return nil, errNoCertificate
}

// Start looks at the Secret now and then until the context ends.
func (c *OwnCertificate) Start(ctx context.Context) error {
	for {
		next := lookEvery
		if err := c.Load(ctx); err != nil && ctx.Err() == nil {
			c.logger.Error(err, "the query endpoint's certificate can't be read or renewed")
			next = tryAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
	}
}

// Load takes the certificate up from the Secret, and makes or renews it where that is due.
func (c *OwnCertificate) Load(ctx context.Context) error {
	const attempts = 3 // two replicas may write at once; the second one then reads what the first one wrote
	var err error
	for range attempts {
		if err = c.load(ctx); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("certificate in Secret %q: %w", c.key, err)
	}
	return nil
}

func (c *OwnCertificate) load(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}
	err := c.client.Get(ctx, c.key, secret)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return err
	}
	pair, problem := readPair(secret)
	ours := absent || secret.Labels[v1.LabelManagedBy] == certificateManager
	if problem == nil && (!ours || !c.isDue(pair)) {
		c.present.Store(pair)
		return nil
	}
	if !ours {
		return fmt.Errorf("it is not ours and can't be used: %w", problem)
	}
	if err := c.renew(secret); err != nil {
		return err
	}
	if absent {
		err = c.client.Create(ctx, secret)
	} else {
		err = c.client.Update(ctx, secret)
	}
	if err != nil {
		return err
	}
	pair, err = readPair(secret)
	if err != nil {
		return err
	}
	c.present.Store(pair)
	return nil
}

var errBadPair = errors.New("tls.crt and tls.key are no pair of certificate and key")

// readPair reads what a Secret has. Errors say nothing of its content.
func readPair(secret *corev1.Secret) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, errBadPair
	}
	return &pair, nil
}

// isDue says whether a certificate ends soon or is for other hosts.
func (c *OwnCertificate) isDue(pair *tls.Certificate) bool {
	if c.clock.Now().Add(renewAt).After(pair.Leaf.NotAfter) {
		return true
	}
	return slices.ContainsFunc(c.hosts, func(host string) bool { return pair.Leaf.VerifyHostname(host) != nil })
}

// renew puts a new certificate into the Secret, signed by the authority that is in it; where that is missing or ends, by a
// new one.
func (c *OwnCertificate) renew(secret *corev1.Secret) error {
	authority, err := tls.X509KeyPair(secret.Data[keyAuthority], secret.Data[keyAuthorityPrivate])
	if err != nil || c.clock.Now().Add(servingLife).After(authority.Leaf.NotAfter) {
		if authority, err = c.newAuthority(secret); err != nil {
			return err
		}
	}
	template := c.template("trellis-query", servingLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range c.hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	certificate, key, err := sign(template, authority.Leaf, authority.PrivateKey)
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, v1.LabelManagedBy, certificateManager)
	secret.Type = corev1.SecretTypeTLS
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey] = certificate, key
	return nil
}

func (c *OwnCertificate) newAuthority(secret *corev1.Secret) (tls.Certificate, error) {
	template := c.template("trellis-query-authority", authorityLife)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	certificate, key, err := sign(template, template, nil)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making a certificate authority: %w", err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[keyAuthority], secret.Data[keyAuthorityPrivate] = certificate, key
	return tls.X509KeyPair(certificate, key)
}

func (c *OwnCertificate) template(name string, life time.Duration) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // the reader never fails
	now := c.clock.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), // an hour for clocks that differ
	}
}

// sign makes a key and a certificate for it, in PEM; without a signing key it signs itself.
func sign(template, parent *x509.Certificate, signer any) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if signer == nil {
		signer = private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
