package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The time between two looks: at a certificate that serves, and after a failure.
const (
	lookEvery = time.Minute
	lookAgain = 5 * time.Second
)

// errNone is told to whoever connects before there is a certificate.
var errNone = errors.New("there is no serving certificate yet")

// expiry is when the certificate that is served ends. Alert below 14 days: it is renewed 30 days before its end.
var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "trellis_webhook_certificate_expiry_timestamp_seconds",
	Help: "When the serving certificate of the admission webhooks ends, in seconds since 1970.",
})

func init() { metrics.Registry.MustRegister(expiry) }

// Options say where the certificate is kept and whom it is for.
type Options struct {
	// Namespace and Secret name the Secret, which exists.
	Namespace, Secret string
	// Configuration is the ValidatingWebhookConfiguration whose caBundles are kept; empty: none.
	Configuration string
	// Paths by the names of webhooks are written to the configuration below the secret path, which stands in the Secret too.
	Paths map[string]string
	// Hosts are the names and addresses that the API server calls.
	Hosts []string
	// Clock says when to renew. Default: the real one.
	Clock clock.WithTicker
}

// Keeper keeps one serving certificate. Every replica runs one.
type Keeper struct {
	options Options
	client  client.Client
	reader  client.Reader
	current atomic.Pointer[pair]
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
		return now.serving, nil
	}
	return nil, errNone
}

// Path is the secret path that the API server is told, without slashes; empty until there is one.
func (k *Keeper) Path() string {
	if now := k.current.Load(); now != nil {
		return now.path
	}
	return ""
}

// Ready is a readiness check: it fails until there is a certificate.
func (k *Keeper) Ready(*http.Request) error {
	_, err := k.GetCertificate(nil)
	return err
}

// Start looks after the certificate until the context ends. What fails is logged and tried again.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		pause := lookEvery
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the webhooks' certificate can't be kept; it is tried again")
			pause = lookAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.options.Clock.After(pause):
		}
	}
}

// look makes one round: nobody is shown a certificate before the configuration has its authority.
func (k *Keeper) look(ctx context.Context) error {
	found, err := k.secret(ctx)
	if err != nil {
		return err
	}
	if err := k.publish(ctx, found); err != nil {
		return fmt.Errorf("writing authorities and paths to ValidatingWebhookConfiguration %q: %w", k.options.Configuration, err)
	}
	if before := k.current.Swap(found); before == nil || !before.expires.Equal(found.expires) {
		log.FromContext(ctx).Info("the webhooks have a serving certificate", "expires", found.expires.UTC().Format(time.RFC3339))
	}
	expiry.Set(float64(found.expires.Unix()))
	return nil
}
