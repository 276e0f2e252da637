package manager

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/serve/query"
)

// metricsFlags configure the address of metrics, and who can read them.
type metricsFlags struct {
	address, certificates string
	secure                bool
}

func (m *metricsFlags) register(set *flag.FlagSet) {
	set.StringVar(&m.address, "metrics-bind-address", "127.0.0.1:8085", "address of the metrics endpoint; 0 turns it off")
	set.BoolVar(&m.secure, "metrics-secure", false, "serve metrics over TLS, to clients with a token that may get path /metrics")
	set.StringVar(&m.certificates, "metrics-cert-dir", "",
		"folder with tls.crt and tls.key of the metrics endpoint, reloaded when they change; empty: a generated certificate")
}

// options of the endpoint. It serves HTTP/1.1 only, as the query endpoint does.
func (m *metricsFlags) options() metricsserver.Options {
	options := metricsserver.Options{BindAddress: m.address, SecureServing: m.secure}
	if !m.secure {
		return options
	}
	options.CertDir, options.FilterProvider = m.certificates, guardMetrics
	options.TLSOpts = []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion, config.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
	}}
	return options
}

// guardMetrics lets the API server decide who can read metrics.
func guardMetrics(config *rest.Config, web *http.Client) (metricsserver.Filter, error) {
	asks, err := client.New(config, client.Options{HTTPClient: web, Scheme: wiring.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("creating the client that authenticates readers of metrics: %w", err)
	}
	reviews := query.NewReviews(asks, query.ReviewOptions{})
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) {
		return query.Guard(reviews, "/metrics", handler), nil
	}, nil
}
