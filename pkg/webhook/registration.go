package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/certificate"
)

// expiry is when the certificate that is served ends. Alert below 14 days: it is renewed 30 days before its end.
var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "trellis_webhook_certificate_expiry_timestamp_seconds",
	Help: "When the serving certificate of the admission webhooks ends, in seconds since 1970.",
})

func init() { metrics.Registry.MustRegister(expiry) }

// Registration tells the API server how to ask the webhooks: it writes the authorities of their certificate to the caBundles
// of the webhook configuration, and the webhooks' paths below a secret one, where they differ. The secret path stands in the
// certificate's Secret. It is made once and stays, for all replicas: it is what tells the API server from others who reach the
// port. A Secret that is emptied gets a new one.
//
// The configuration comes with the chart; it is changed by its name and never created.
type Registration struct {
	// Configuration is the ValidatingWebhookConfiguration; empty: none.
	Configuration string
	// Client writes it, and Reader reads it past any cache.
	Client client.Client
	Reader client.Reader

	path atomic.Pointer[string]
}

var _ certificate.Publisher = (*Registration)(nil)

// Path is the secret path that the API server is told, without slashes; empty until there is one.
func (r *Registration) Path() string {
	if now := r.path.Load(); now != nil {
		return *now
	}
	return ""
}

// keyPath of the Secret has the secret path, in hexadecimal digits.
const keyPath = "path"

// pathSize is the size of the secret path, in bytes of randomness.
const pathSize = 32

// Complete makes the secret path where there is none.
func (r *Registration) Complete(data map[string][]byte) bool {
	if isSecretPath(string(data[keyPath])) {
		return false
	}
	content := make([]byte, pathSize)
	_, _ = rand.Read(content) // never fails
	data[keyPath] = []byte(hex.EncodeToString(content))
	return true
}

func isSecretPath(path string) bool {
	content, err := hex.DecodeString(path)
	return err == nil && len(content) == pathSize
}

// Publish writes the authorities and the paths to every webhook of the configuration that has others. Without the
// configuration nobody asks the webhooks anything; it may come later.
func (r *Registration) Publish(ctx context.Context, data map[string][]byte, expires time.Time) error {
	path := string(data[keyPath])
	if err := r.write(ctx, data[certificate.KeyAuthorities], path); err != nil {
		return fmt.Errorf("writing authorities and paths to ValidatingWebhookConfiguration %q: %w", r.Configuration, err)
	}
	r.path.Store(&path)
	expiry.Set(float64(expires.Unix()))
	return nil
}

func (r *Registration) write(ctx context.Context, authorities []byte, path string) error {
	if r.Configuration == "" {
		return nil
	}
	held := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: r.Configuration}, held); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := held.DeepCopy()
	differs := false
	for i := range held.Webhooks {
		asked := &held.Webhooks[i].ClientConfig
		wanted := "/" + path + paths[held.Webhooks[i].Name]
		differs = differs || !bytes.Equal(authorities, asked.CABundle) || pathOf(asked) != wanted
		asked.CABundle = authorities
		setPath(asked, wanted)
	}
	if !differs {
		return nil
	}
	return r.Client.Patch(ctx, held, client.StrategicMergeFrom(before))
}

// pathOf is where the API server asks a webhook, by a Service or by a URL.
func pathOf(asked *admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case asked.Service != nil && asked.Service.Path != nil:
		return *asked.Service.Path
	case asked.URL != nil:
		if address, err := url.Parse(*asked.URL); err == nil {
			return address.Path
		}
	}
	return ""
}

func setPath(asked *admissionregistrationv1.WebhookClientConfig, path string) {
	if asked.Service != nil {
		asked.Service.Path = &path
		return
	}
	if asked.URL == nil {
		return
	}
	if address, err := url.Parse(*asked.URL); err == nil {
		address.Path = path
		asked.URL = new(address.String())
	}
}
