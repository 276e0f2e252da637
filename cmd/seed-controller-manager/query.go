package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	flags "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/serve/certificate"
	"github.com/trellis-addons/trellis/pkg/serve/query"
)

// queryOptions are the flags of the query endpoint.
type queryOptions struct {
	address, tlsFolder, secret string
	url, service               string
	hosts, audiences           []string
	reviewTTL                  time.Duration
}

func (o *queryOptions) register(set *flag.FlagSet) {
	set.StringVar(&o.address, "query-bind-address", ":8443", "address of the query endpoint; 0 turns it off")
	set.StringVar(&o.tlsFolder, "query-tls-folder", "",
		"folder with tls.crt and tls.key of the query endpoint; empty: it generates a certificate")
	set.StringVar(&o.secret, "query-tls-secret", query.CertificateSecret, "Secret that stores the generated certificate of the query endpoint")
	set.StringVar(&o.service, "query-service", "",
		"name:port of the query endpoint's Service in the platform namespace, for ConfigMap addon-query in namespace kube-public, by "+
			"which clients find the endpoint; empty: the ConfigMap is not written")
	set.StringVar(&o.url, "query-url", "", "https URL of the query endpoint outside of the cluster, for ConfigMap addon-query; empty: none")
	flags.ListVar(set, &o.hosts, "query-hosts",
		"host names and addresses, comma-separated, in the query endpoint's generated certificate; localhost is always included", flags.Name)
	flags.ListVar(set, &o.audiences, "query-audiences",
		"audiences, comma-separated; a token must be issued for one of them; empty: the API server's own", flags.Name)
	set.DurationVar(&o.reviewTTL, "query-review-ttl", 10*time.Second, "how long the API server's answers about tokens and rights are cached")
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
	finder, rows, bindings := s.Clusters, query.NewRows(), query.NewBindings()
	held, err := wiring.HeldForQueries(ctx, s)
	if err != nil {
		return fmt.Errorf("watching objects for the query endpoint: %w", err)
	}
	_, err = s.GetCache().GetInformer(ctx, &kubermaticv1.AddonSet{}, cache.BlockUntilSynced(false))
	err = errors.Join(err, rows.Watch(ctx, s.GetCache()), bindings.Watch(ctx, held), finder.Inform(ctx, s.GetCache(), nil))
	if err != nil {
		return fmt.Errorf("watching objects for the query endpoint: %w", err)
	}
	clients, err := wiring.QueryClients(ctx, s)
	if err != nil {
		return err
	}
	counted := query.NewMetrics(metrics.Registry)
	endpoint := query.New(query.Dependencies{
		Catalogue: catalogue, Clusters: finder, Available: held, Rows: rows, Bindings: bindings,
		Installations: s.GetClient(), Certificates: certificates, Clients: clients, Previews: s.previews, Sets: s.sets, Elected: s.Elected(),
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

// newCertificates serves a certificate of a mounted folder, or the endpoint's own, and publishes its authority.
func (s *seed) newCertificates() (query.Certificates, error) {
	published, err := s.options.query.publication(s)
	if err != nil {
		return nil, err
	}
	if folder := s.options.query.tlsFolder; folder != "" {
		watcher, err := certwatcher.New(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading the query endpoint's certificate: %w", err)
		}
		if published != nil {
			err = s.Add(published)
		}
		return watcher, errors.Join(err, s.Add(watcher))
	}
	var publisher certificate.Publisher
	if published != nil {
		publisher = published
	}
	hosts := append([]string{"localhost", "127.0.0.1"}, s.options.query.hosts...)
	own := query.NewCertificate(client.ObjectKey{Namespace: s.options.Namespace, Name: s.options.query.secret}, hosts, publisher)
	own.Use(s.direct, s.direct)
	return own, s.Add(own)
}

var (
	errQueryService = errors.New("write it like trellis-seed-query:443")
	errQueryURL     = errors.New("write it like https://addons.example.com")
)

// publication says where the endpoint is; nil: nowhere.
func (o *queryOptions) publication(s *seed) (*query.Publication, error) {
	if o.service == "" {
		return nil, nil
	}
	name, port, hasPort := strings.Cut(o.service, ":")
	if _, err := strconv.ParseUint(port, 10, 16); !hasPort || name == "" || err != nil {
		return nil, fmt.Errorf("--query-service %q: %w", o.service, errQueryService)
	}
	if parsed, err := url.Parse(o.url); o.url != "" && (err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil) {
		return nil, fmt.Errorf("--query-url: %w", errQueryURL)
	}
	return &query.Publication{
		Writer: s.direct, URL: o.url, Namespace: s.options.Namespace, Service: name, Port: port, Folder: o.tlsFolder,
		Logger: s.GetLogger().WithName("query"),
	}, nil
}
