package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Times between two reads of the Secret: with a certificate, and after a failure.
const (
	readEvery  = time.Minute
	retryEvery = 5 * time.Second
)

// ErrNone is the error of connections before there is a certificate.
var ErrNone = errors.New("there is no serving certificate yet")

// Options of a Rotator.
type Options struct {
	// Name is the certificate's name; the authority's has "-ca" appended.
	Name string
	// Secret has tls.crt, tls.key and ca.crt, and ca.key for a lasting authority.
	Secret client.ObjectKey
	// Owner is the value of label managed-by on a Secret that the Rotator creates; others are not written. Empty: the
	// Secret must exist, and belongs to the Rotator.
	Owner string
	// Hosts are the names and addresses of the certificate.
	Hosts []string
	// LastingAuthority signs all renewals with one authority.
	LastingAuthority bool
	// Publisher may be nil.
	Publisher Publisher
	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Publisher gives the Secret's data to clients that must trust it.
type Publisher interface {
	// Complete adds further data to the Secret, and says whether any was missing.
	Complete(data map[string][]byte) bool
	// Publish is called before a certificate is served, with the time at which it expires.
	Publish(ctx context.Context, data map[string][]byte, expires time.Time) error
}

// Rotator maintains one serving certificate. Every replica runs one.
type Rotator struct {
	options Options
	client  client.Client
	reader  client.Reader
	current atomic.Pointer[tls.Certificate]
}

// New makes a Rotator. It serves nothing until Use was called and Start runs.
func New(options Options) *Rotator {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Rotator{options: options}
}

// Use sets the client to write with, and the reader, which must bypass caches.
func (r *Rotator) Use(writer client.Client, reader client.Reader) {
	r.client, r.reader = writer, reader
}

// NeedLeaderElection is false: every replica serves.
func (r *Rotator) NeedLeaderElection() bool { return false }

// GetCertificate is for tls.Config. It fails until there is a certificate.
func (r *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := r.current.Load(); now != nil {
		return now, nil
	}
	return nil, ErrNone
}

// Ready is a readiness check: it fails until there is a certificate.
func (r *Rotator) Ready(*http.Request) error {
	_, err := r.GetCertificate(nil)
	return err
}

// Start reads and renews the certificate until the context ends. It logs failures and retries.
func (r *Rotator) Start(ctx context.Context) error {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("secret", r.options.Secret))
	for {
		pause := readEvery
		if err := r.Load(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the serving certificate can't be read or renewed; trying again")
			pause = retryEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.options.Clock.After(pause):
		}
	}
}

// Load reads the Secret, renews it if necessary, publishes it, and then serves it.
func (r *Rotator) Load(ctx context.Context) error {
	data, found, err := r.secret(ctx)
	if err != nil {
		return err
	}
	if r.options.Publisher != nil {
		if err := r.options.Publisher.Publish(ctx, data, found.Leaf.NotAfter); err != nil {
			return err
		}
	}
	if before := r.current.Swap(found); before == nil || !before.Leaf.Equal(found.Leaf) {
		log.FromContext(ctx).Info("serving a new certificate", "expires", found.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// attempts to write the Secret; a failed one means that another replica has written it.
const attempts = 3

func (r *Rotator) secret(ctx context.Context) (data map[string][]byte, found *tls.Certificate, err error) {
	for range attempts {
		data, found, err = r.readOrRenew(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("certificate in Secret %q: %w", r.options.Secret, err)
	}
	return data, found, nil
}

func (r *Rotator) readOrRenew(ctx context.Context) (map[string][]byte, *tls.Certificate, error) {
	held, absent, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.options.Owner != "" && !absent && held.Labels[v1.LabelManagedBy] != r.options.Owner {
		found, err := keyPair(held.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("another client created the Secret, and its certificate can't be used: correct the certificate, or "+
				"delete the Secret: %w", err)
		}
		return held.Data, found, nil
	}
	if held.Data == nil {
		held.Data = map[string][]byte{}
	}
	now := r.options.Clock.Now()
	found, err := readPair(held.Data, r.options.Hosts, now)
	changed := false
	if err != nil || isDue(found, now) {
		if unusable, ok := errors.AsType[*unusableError](err); ok {
			log.FromContext(ctx).Info("creating a new certificate", "problem", unusable.Error())
		}
		if found, err = r.options.renew(held.Data, now); err != nil {
			return nil, nil, err
		}
		changed = true
	}
	if r.options.Publisher != nil && r.options.Publisher.Complete(held.Data) {
		changed = true
	}
	switch {
	case absent:
		err = r.client.Create(ctx, held)
	case changed:
		err = r.client.Update(ctx, held)
	}
	return held.Data, found, err
}

func (r *Rotator) read(ctx context.Context) (held *corev1.Secret, absent bool, err error) {
	held = &corev1.Secret{}
	err = r.reader.Get(ctx, r.options.Secret, held)
	switch {
	case err == nil:
		return held, false, nil
	case !apierrors.IsNotFound(err):
		return nil, false, err
	case r.options.Owner == "":
		return nil, false, fmt.Errorf("the chart creates this Secret: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.options.Secret.Namespace, Name: r.options.Secret.Name,
			Labels: map[string]string{v1.LabelManagedBy: r.options.Owner},
		},
		Type: corev1.SecretTypeTLS,
	}, true, nil
}
