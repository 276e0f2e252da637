package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	flags "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/query"
)

// queryOptions are the flags of the query endpoint.
type queryOptions struct {
	address, tlsFolder, secret string
	hosts, audiences           []string
	reviewTTL                  time.Duration
}

func (o *queryOptions) register(set *flag.FlagSet) {
	set.StringVar(&o.address, "query-bind-address", ":8443", "address of the query endpoint; 0 turns it off")
	set.StringVar(&o.tlsFolder, "query-tls-folder", "",
		"folder with tls.crt and tls.key of the query endpoint; empty: it makes its own")
	set.StringVar(&o.secret, "query-tls-secret", query.CertificateSecret, "Secret that the query endpoint keeps its own certificate in")
	flags.ListVar(set, &o.hosts, "query-hosts",
		"host names and addresses, comma-separated, of the query endpoint's own certificate; localhost is always one", flags.Name)
	flags.ListVar(set, &o.audiences, "query-audiences",
		"audiences, comma-separated, one of which a token must be for; empty: the API server's own", flags.Name)
	set.DurationVar(&o.reviewTTL, "query-review-ttl", 10*time.Second, "how long the API server's answers about tokens and rights are kept")
}

// addQuery puts the query endpoint into the manager, on every replica.
func (s *seed) addQuery(ctx context.Context) error {
	logger, options := s.GetLogger(), s.options
	if options.query.address == "0" {
		return nil
	}
	certificates, err := s.newCertificates()
	if err != nil {
		return err
	}
	catalogue := query.NewCatalogue(options.CatalogueNamespace, s.marks, logger)
	if err := catalogue.Watch(ctx, s.GetCache()); err != nil {
		return err
	}
	// Every replica reads these from its cache, also one that does not lead.
	finder := s.Clusters
	_, err = s.GetCache().GetInformer(ctx, &kubermaticv1.AddonInstallation{}, cache.BlockUntilSynced(false))
	if err = errors.Join(err, finder.Inform(ctx, s.GetCache(), nil)); err != nil {
		return fmt.Errorf("watching what the query endpoint reads: %w", err)
	}
	counted := query.NewMetrics(metrics.Registry)
	endpoint := query.New(query.Dependencies{
		Catalogue: catalogue, Clusters: finder,
		Installations: s.GetClient(), Certificates: certificates,
		Reviews: query.NewReviews(s.GetClient(), query.ReviewOptions{
			Audiences: options.query.audiences, TTL: options.query.reviewTTL, Metrics: counted,
		}),
	}, query.Options{
		Address: options.query.address, CatalogueNamespace: options.CatalogueNamespace,
		AllowPrereleases: options.allowPrereleases, Metrics: counted, Logger: logger.WithName("query"),
	})
	if err := s.AddReadyzCheck("query", endpoint.Ready); err != nil {
		return fmt.Errorf("adding the readiness check: %w", err)
	}
	return s.Add(endpoint)
}

// newCertificates serves a certificate of a mounted folder, or the endpoint's own.
func (s *seed) newCertificates() (query.Certificates, error) {
	if folder := s.options.query.tlsFolder; folder != "" {
		watcher, err := certwatcher.New(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading the query endpoint's certificate: %w", err)
		}
		return watcher, s.Add(watcher)
	}
	hosts := append([]string{"localhost", "127.0.0.1"}, s.options.query.hosts...)
	own := query.NewCertificate(client.ObjectKey{Namespace: s.options.Namespace, Name: s.options.query.secret}, hosts)
	own.Use(s.direct, s.direct)
	return own, s.Add(own)
}
