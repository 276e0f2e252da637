package query

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/serve/certificate"
)

const (
	mostConnections = 1024
	// mostHeaders in bytes, with the request line; net/http allows 4 KiB more. A query of 10 KiB is
	// read, so that its refusal can say why.
	mostHeaders    = 32 << 10
	headerDeadline = 5 * time.Second
	readDeadline   = 10 * time.Second
	answerDeadline = 15 * time.Second
	writeDeadline  = 30 * time.Second
	idleDeadline   = 90 * time.Second
	// endDeadline is how long running requests may take when the manager ends.
	endDeadline = 10 * time.Second
)

// Options are the settings of a Server.
type Options struct {
	Address string
	// CatalogueNamespace has the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// AllowPrereleases lets a pre-release platform match ranges that name no pre-release.
	AllowPrereleases bool
	// Metrics may be nil.
	Metrics *Metrics
	// Logger gets errors that callers must not read.
	Logger logr.Logger
	// Clock is for tests. Default: the real one.
	Clock clock.PassiveClock
}

// Clusters finds the cluster of a Ref, and lists all. Errors of Find: *cluster.UnknownError if there is none, or two.
type Clusters interface {
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
	List(ctx context.Context) ([]target.Description, error)
}

// Certificates returns the current certificate.
type Certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Dependencies of a Server.
type Dependencies struct {
	Catalogue *Catalogue
	Clusters  Clusters
	// Installations reads AddonInstallations and AddonSets from a cache.
	Installations client.Reader
	// Available reads available catalogues from a cache, with condition AddonsReady.
	Available    client.Reader
	Rows         *Rows
	Bindings     *Bindings
	Reviews      *Reviews
	Certificates Certificates
	// Clients verifies client certificates; nil: callers need a token.
	Clients *Clients
	// Previews makes previews; nil: there are none.
	Previews Previews
	// Sets makes previews of AddonSets; nil: there are none.
	Sets SetPreviews
	// Elected is closed once this replica leads: previews need its connections to user clusters.
	Elected <-chan struct{}
}

// Server is the query endpoint: an http.Handler, and a manager.Runnable on every replica.
type Server struct {
	Dependencies
	options Options
	answers *answers
	asked   *queries
	turns   *turnsOf
	// checks is how often a stream's rights are reviewed again.
	checks  time.Duration
	ending  chan struct{}
	logged  atomic.Int64
	address atomic.Pointer[string]
}

// New returns a Server.
func New(dependencies Dependencies, options Options) *Server {
	if options.CatalogueNamespace == "" {
		options.CatalogueNamespace = "addon-catalogue"
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Server{
		Dependencies: dependencies, options: options, answers: newAnswers(options.AllowPrereleases, options.Metrics),
		asked: newQueries(), turns: newTurns(), checks: streamChecks, ending: make(chan struct{}),
	}
}

// NeedLeaderElection is false: every replica answers.
func (s *Server) NeedLeaderElection() bool { return false }

var (
	errNotListening = errors.New("the query endpoint does not listen yet")
	errNotRead      = errors.New("what the query endpoint reads is not in its cache yet")
)

// Ready is a readiness check: whether requests are answered.
func (s *Server) Ready(*http.Request) error {
	switch {
	case s.address.Load() == nil:
		return errNotListening
	case s.Catalogue.now() == nil:
		return errNotRead
	}
	_, err := s.Certificates.GetCertificate(&tls.ClientHelloInfo{})
	return err
}

// Address is the address that the endpoint listens on; empty before that.
func (s *Server) Address() string {
	if address := s.address.Load(); address != nil {
		return *address
	}
	return ""
}

func (s *Server) snapshot() (*snapshot, error) {
	if now := s.Catalogue.now(); now != nil {
		return now, nil
	}
	return nil, &UnavailableError{"the catalogue is being read", errNotRead}
}

// Start serves until the context ends, then lets running requests end.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening on %q for queries: %w", s.options.Address, err)
	}
	server := s.httpServer()
	server.RegisterOnShutdown(func() { close(s.ending) })
	ended := make(chan error, 1)
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	go s.Catalogue.Run(stopping)
	go func() {
		ended <- server.ServeTLS(netutil.LimitListener(listener, mostConnections), "", "")
	}()
	address := listener.Addr().String()
	s.address.Store(&address)
	s.options.Logger.Info("the query endpoint listens", "address", address)
	select {
	case err := <-ended:
		return fmt.Errorf("serving queries: %w", err)
	case <-ctx.Done():
	}
	s.address.Store(nil)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endDeadline)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return errors.Join(fmt.Errorf("ending the query endpoint: %w", err), server.Close())
	}
	return nil
}

func (s *Server) httpServer() *http.Server {
	asks := tls.NoClientCert
	if s.Clients != nil {
		asks = tls.RequestClientCert // Clients verifies it: a refusal is an answer, and no broken connection
	}
	return &http.Server{
		Handler: s,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: s.Certificates.GetCertificate, NextProtos: []string{"http/1.1"},
			ClientAuth:                  asks,
			DynamicRecordSizingDisabled: true, // listings are large, and no client waits for their first line
		},
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
		MaxHeaderBytes:    mostHeaders,
		ReadHeaderTimeout: headerDeadline, ReadTimeout: readDeadline, WriteTimeout: writeDeadline, IdleTimeout: idleDeadline,
		ErrorLog: log.New(quiet{s.options.Logger}, "", 0),
	}
}

// quiet logs net/http's messages about broken connections, which any client can cause, at level 2.
type quiet struct{ logger logr.Logger }

func (q quiet) Write(line []byte) (int, error) {
	q.logger.V(2).Info("a connection to the query endpoint failed", "problem", string(line))
	return len(line), nil
}

// CertificateSecret is the default Secret of the endpoint's certificate, in the platform namespace.
// Clients trust its ca.crt. Endpoints with different host names need a Secret each.
const CertificateSecret = "trellis-query-tls"

// NewCertificate maintains a certificate for host names and addresses in a Secret, which all
// replicas share. Its authority lasts, as clients have copies of it. An existing Secret without our
// label is served and not written. The publisher may be nil.
func NewCertificate(secret client.ObjectKey, hosts []string, publisher certificate.Publisher) *certificate.Rotator {
	return certificate.New(certificate.Options{
		Name: "trellis-query", Secret: secret, Owner: "query-endpoint", Hosts: hosts, LastingAuthority: true, Publisher: publisher,
	})
}

// Document is the OpenAPI document of the endpoint, JSON.
//
//go:embed openapi.json
var Document []byte

var document = newContent(Document)

func (s *Server) openAPI(context.Context, *call) (*content, error) { return &document, nil }
