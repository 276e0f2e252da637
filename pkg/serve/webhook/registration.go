package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/pkg/serve/certificate"
)

// expiry is when the served certificate ends. Alert below 14 days: it is renewed 30 days before.
var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "trellis_webhook_certificate_expiry_timestamp_seconds",
	Help: "When the serving certificate of the admission webhooks expires, in seconds since 1970.",
})

func init() { metrics.Registry.MustRegister(expiry) }

// Registration configures the API server: it writes the certificate's authorities (caBundle) and
// the webhooks' paths to the webhook configuration. The paths are below a secret one, which
// distinguishes the API server from other clients. It is created once, for all replicas, in the
// certificate's Secret.
//
// The chart creates the configuration; Registration only updates it, by its name.
type Registration struct {
	// Configuration is the ValidatingWebhookConfiguration; empty: none.
	Configuration string
	// Client writes it, and Reader reads it past caches.
	Client client.Client
	Reader client.Reader

	path atomic.Pointer[string]
}

var _ certificate.Publisher = (*Registration)(nil)

// Path is the secret path without slashes; empty until it exists.
func (r *Registration) Path() string {
	if now := r.path.Load(); now != nil {
		return *now
	}
	return ""
}

const keyPath = "path"

const pathSize = 32

// Complete creates the secret path if it is missing.
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

// Publish writes authorities and paths to the webhooks of the configuration if they differ. The configuration may be
// missing.
func (r *Registration) Publish(ctx context.Context, data map[string][]byte, expires time.Time) error {
	path := string(data[keyPath])
	if err := r.write(ctx, data[certificate.KeyAuthorities], path); err != nil {
		return fmt.Errorf("writing CA certificates and paths to ValidatingWebhookConfiguration %q: %w", r.Configuration, err)
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

// pathOf is the path at which the API server calls a webhook, by a Service or a URL.
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

// Gate passes on requests with the path that only the API server knows. Others get 404.
type Gate struct {
	// Path returns the current path, without slashes; empty: none yet, and all requests get 404.
	Path func() string
	// Handlers by the rest of the path.
	Handlers map[string]http.Handler
}

func (g *Gate) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	given, rest, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
	want := g.Path()
	isRight := subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1 && want != ""
	if handler, known := g.Handlers["/"+rest]; isRight && known {
		handler.ServeHTTP(writer, request)
		return
	}
	http.NotFound(writer, request)
}
