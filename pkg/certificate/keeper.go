package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// The time between two reads of the Secret: while a certificate is served, and after a failure.
const (
	readEvery  = time.Minute
	retryEvery = 5 * time.Second
)

// ErrNone is told to whoever connects before there is a certificate.
var ErrNone = errors.New("there is no serving certificate yet")

// Options say where the certificate is kept and whom it is for.
type Options struct {
	// Name stands in the certificates: the authority's has "-ca" after it.
	Name string
	// Secret holds tls.crt, tls.key and ca.crt, and the key of a lasting authority as ca.key.
	Secret client.ObjectKey
	// Owner is the value of the label managed-by of a Secret that the Keeper makes; one without it is served as it is. Empty:
	// the Secret is there, and is the Keeper's.
	Owner string
	// Hosts are the names and addresses that the certificate is for.
	Hosts []string
	// LastingAuthority has renewals signed by one authority, in place of one for each.
	LastingAuthority bool
	// Publisher may be nil.
	Publisher Publisher
	// Clock says when to renew. Default: the real one.
	Clock clock.WithTicker
}

// Publisher brings what is in the Secret to those who have to trust it.
type Publisher interface {
	// Complete adds what else has to stand in the Secret, and says whether anything was missing.
	Complete(data map[string][]byte) bool
	// Publish is called before the certificate of a Secret's data is served, with the time at which it ends.
	Publish(ctx context.Context, data map[string][]byte, expires time.Time) error
}

// Keeper keeps one serving certificate. Every replica runs one.
type Keeper struct {
	options Options
	client  client.Client
	reader  client.Reader
	current atomic.Pointer[tls.Certificate]
}

// New makes a Keeper. It serves nothing until Use has given it the cluster and Start runs.
func New(options Options) *Keeper {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Keeper{options: options}
}

// Use gives the Keeper the cluster: a client to write by, and a reader past any cache.
func (k *Keeper) Use(writer client.Client, reader client.Reader) { k.client, k.reader = writer, reader }

// NeedLeaderElection is false: every replica serves.
func (k *Keeper) NeedLeaderElection() bool { return false }

// GetCertificate is for tls.Config. It fails until there is a certificate.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := k.current.Load(); now != nil {
		return now, nil
	}
	return nil, ErrNone
}

// Ready is a readiness check: it fails until there is a certificate.
func (k *Keeper) Ready(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}

// Start looks after the certificate until the context ends. What fails is logged and tried again.
func (k *Keeper) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("secret", k.options.Secret))
	for {
		pause := readEvery
		if err := k.Load(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the serving certificate can't be kept; it is tried again")
			pause = retryEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.options.Clock.After(pause):
		}
	}
}

// Load makes one round: the Secret is read, renewed where that is due, published, and only then served.
func (k *Keeper) Load(ctx context.Context) error {
	data, found, err := k.secret(ctx)
	if err != nil {
		return err
	}
	if k.options.Publisher != nil {
		if err := k.options.Publisher.Publish(ctx, data, found.Leaf.NotAfter); err != nil {
			return err
		}
	}
	if before := k.current.Swap(found); before == nil || !before.Leaf.Equal(found.Leaf) {
		log.FromContext(ctx).Info("another certificate is served", "expires", found.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
