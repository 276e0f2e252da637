package query

import (
	"context"
	"crypto/tls"
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

	"github.com/trellis-addons/trellis/pkg/target"
)

// Limits of a connection.
const (
	mostConnections = 1024
	// mostHeaders in bytes, the request line included; net/http allows 4 KiB more. A query of 10 KiB is read, so that its
	// refusal can say why.
	mostHeaders    = 32 << 10
	headerDeadline = 5 * time.Second
	readDeadline   = 10 * time.Second
	answerDeadline = 15 * time.Second
	writeDeadline  = 30 * time.Second
	idleDeadline   = 90 * time.Second
	// endDeadline is how long requests under way may take when the manager ends.
	endDeadline = 10 * time.Second
)

// Options are the endpoint's settings.
type Options struct {
	// Address to listen on.
	Address string
	// CatalogueNamespace holds the merged catalogues. Default: addon-catalogue.
	CatalogueNamespace string
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
	// Metrics counts requests; nil: nobody does.
	Metrics *Metrics
	// Logger is told what nobody who asks is told.
	Logger logr.Logger
	// Clock is for tests. Default: the real one.
	Clock clock.PassiveClock
}

// Clusters finds the cluster that a Ref means. Errors: *cluster.UnknownError where there is none, or two.
type Clusters interface {
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
}

// Certificates gives the certificate that is served at this moment.
type Certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Dependencies are what the endpoint works with.
type Dependencies struct {
	Catalogue *Catalogue
	Clusters  Clusters
	// Installations reads AddonInstallations from a cache.
	Installations client.Reader
	Reviews       *Reviews
	Certificates  Certificates
}

// Server is the query endpoint. It is an http.Handler and, for the manager, a Runnable on every replica.
type Server struct {
	Dependencies
	options Options
	answers *answers
	asked   *queries
	logged  atomic.Int64
	address atomic.Pointer[string]
}

// New makes the endpoint.
func New(dependencies Dependencies, options Options) *Server {
	if options.CatalogueNamespace == "" {
		options.CatalogueNamespace = "addon-catalogue"
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Server{
		Dependencies: dependencies, options: options, answers: newAnswers(options.AllowPrereleases, options.Metrics),
		asked: newQueries(),
	}
}

// NeedLeaderElection is false: it answers on every replica.
func (s *Server) NeedLeaderElection() bool { return false }

var (
	errNotListening = errors.New("the query endpoint does not listen yet")
	errNotRead      = errors.New("the catalogue was not read yet")
)

// Ready says whether requests are answered; it is a readiness check.
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

// Address is where the endpoint listens; empty before it does.
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

// Start serves until the context ends, and lets requests under way end.
func (s *Server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return fmt.Errorf("listening on %q for queries: %w", s.options.Address, err)
	}
	server := s.httpServer()
	ended := make(chan error, 1)
	stopping, stop := context.WithCancel(ctx)
	defer stop()
	go s.Catalogue.Run(stopping)
	go func() {
		ended <- server.ServeTLS(netutil.LimitListener(listener, mostConnections), "", "")
	}()
	address := listener.Addr().String()
	s.address.Store(&address)
	s.options.Logger.Info("queries are answered", "address", address)
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
	return &http.Server{
		Handler: s,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: s.Certificates.GetCertificate, NextProtos: []string{"http/1.1"},
			DynamicRecordSizingDisabled: true, // listings are large, and nobody waits for their first line
		},
		TLSNextProto:      map[string]func(*http.Server, *tls.Conn, http.Handler){}, // no HTTP/2
		MaxHeaderBytes:    mostHeaders,
		ReadHeaderTimeout: headerDeadline, ReadTimeout: readDeadline, WriteTimeout: writeDeadline, IdleTimeout: idleDeadline,
		ErrorLog: log.New(quiet{s.options.Logger}, "", 0),
	}
}

// quiet takes what net/http says of broken connections, which anybody can cause, and tells it only to who looks closely.
type quiet struct{ logger logr.Logger }

func (q quiet) Write(line []byte) (int, error) {
	q.logger.V(2).Info("a connection to the query endpoint failed", "problem", string(line))
	return len(line), nil
}
