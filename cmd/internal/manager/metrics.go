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
	"github.com/trellis-addons/trellis/pkg/query"
)

// metricsFlags say where metrics are served, and to whom.
type metricsFlags struct {
	address, certificates string
	secure                bool
}

func (m *metricsFlags) register(set *flag.FlagSet) {
	set.StringVar(&m.address, "metrics-bind-address", "127.0.0.1:8085", "address of the metrics endpoint; 0 turns it off")
	set.BoolVar(&m.secure, "metrics-secure", false, "serve metrics over TLS, to whoever shows a token that may get path /metrics")
	set.StringVar(&m.certificates, "metrics-cert-dir", "",
		"folder with tls.crt and tls.key of the metrics endpoint, which are followed; empty: a certificate of its own")
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

// guardMetrics asks the API server who may read metrics.
func guardMetrics(config *rest.Config, web *http.Client) (metricsserver.Filter, error) {
	asks, err := client.New(config, client.Options{HTTPClient: web, Scheme: wiring.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making the client that asks who reads metrics: %w", err)
	}
	reviews := query.NewReviews(asks, query.ReviewOptions{})
	return func(_ logr.Logger, handler http.Handler) (http.Handler, error) {
		return query.Guard(reviews, "/metrics", handler), nil
	}, nil
}
