// Package web is the web view: catalogues, installations, sets and clusters of a platform in a browser. It serves pages of
// one configuration (package pages), and replaces them as a whole when the configuration changes.
//
// It has no rights, no storage and no state but caches: package login keeps a user's token in a sealed cookie, and package
// upstream sends it to API servers and query endpoints.
package web

import (
	"bytes"
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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/trellis-addons/trellis/pkg/base/buildinfo"
	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/pkg/web/pages"
)

const (
	mostConnections = 1024
	// mostHeaders has space for four cookies of 4 KiB.
	mostHeaders    = 48 << 10
	headerDeadline = 5 * time.Second
	readDeadline   = 15 * time.Second
	writeDeadline  = 40 * time.Second
	idleDeadline   = 90 * time.Second
	// endDeadline is how long running requests may take when the program ends.
	endDeadline = 10 * time.Second
)

// Options are the flags of the program.
type Options struct {
	// File has the configuration.
	File string
	// Address is for browsers, OwnAddress for metrics and /healthz.
	Address, OwnAddress string
	Logger              logr.Logger
	// Ticks are when the configuration is compared with its files; nil: every few seconds.
	Ticks <-chan time.Time
	// Started gets the addresses that the program listens on; may be nil.
	Started func(address, own string)
}

// server serves the site of the present configuration.
type server struct {
	Options
	site    atomic.Pointer[pages.Site]
	loaded  atomic.Pointer[config.Loaded]
	shared  pages.Options
	metrics *prometheus.Registry
}

// Run serves until the context ends, then lets running requests end.
func Run(ctx context.Context, options Options) error {
	first, err := config.Load(options.File)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	ending := make(chan struct{})
	made := &server{Options: options, metrics: prometheus.NewRegistry()}
	made.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildinfo.Read().Metric())
	made.shared = pages.Options{
		Logger: options.Logger, Metrics: pages.NewMetrics(made.metrics), Streams: &pages.Streams{}, Ending: ending, Now: time.Now,
	}
	if err := made.apply(first); err != nil {
		return err
	}
	listeners, err := made.listen(ctx, first.Certificate != nil)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ticks := options.Ticks
	if ticks == nil {
		ticker := time.NewTicker(config.Interval)
		defer ticker.Stop()
		ticks = ticker.C
	}
	go config.Follower{File: options.File, Present: first, Apply: made.apply, Report: made.report}.Follow(following, ticks)
	return made.serve(ctx, ending, listeners)
}

// apply makes the site of a configuration the present one.
func (s *server) apply(next *config.Loaded) error {
	site, err := pages.New(next, s.shared)
	if err != nil {
		return err
	}
	s.loaded.Store(next)
	if before := s.site.Swap(site); before != nil {
		before.Close()
	}
	return nil
}

func (s *server) report(err error) {
	s.shared.Metrics.Configured(err)
	if err != nil {
		s.Logger.Error(err, "the configuration is invalid, and the one before stays")
		return
	}
	s.Logger.Info("the configuration is applied")
}

// listeners are those of both ports.
type listeners struct{ pages, own net.Listener }

func (s *server) listen(ctx context.Context, isTLS bool) (made listeners, err error) {
	listening := net.ListenConfig{}
	if made.pages, err = listening.Listen(ctx, "tcp", s.Address); err != nil {
		return made, err
	}
	if made.own, err = listening.Listen(ctx, "tcp", s.OwnAddress); err != nil {
		return made, errors.Join(err, made.pages.Close())
	}
	if s.Started != nil {
		s.Started(made.pages.Addr().String(), made.own.Addr().String())
	}
	s.Logger.Info("trellis-web listens", "address", made.pages.Addr().String())
	made.pages = netutil.LimitListener(made.pages, mostConnections)
	if isTLS {
		made.pages = tls.NewListener(made.pages, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.loaded.Load().Certificate, nil },
		})
	}
	return made, nil
}

// serve serves both ports until the context ends or one of them fails.
func (s *server) serve(ctx context.Context, ending chan struct{}, on listeners) error {
	front := s.http(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) { s.site.Load().ServeHTTP(writer, request) }))
	front.RegisterOnShutdown(func() { close(ending) })
	own := http.NewServeMux()
	own.Handle("GET /metrics", promhttp.HandlerFor(s.metrics, promhttp.HandlerOpts{}))
	own.HandleFunc("GET /healthz", func(writer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(writer, "ok") })
	back := s.http(own)
	failed := make(chan error, 2)
	go func() { failed <- front.Serve(on.pages) }()
	go func() { failed <- back.Serve(on.own) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endDeadline)
	defer cancel()
	if ended := front.Shutdown(limited); ended != nil {
		err = errors.Join(err, ended, front.Close())
	}
	return errors.Join(err, back.Close())
}

func (s *server) http(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: mostHeaders, ReadHeaderTimeout: headerDeadline, ReadTimeout: readDeadline,
		WriteTimeout: writeDeadline, IdleTimeout: idleDeadline, ErrorLog: log.New(quiet{s.Logger}, "", 0),
	}
}

// quiet logs net/http's messages about broken connections, which any client can cause, at level 2, and panics as errors.
type quiet struct{ logger logr.Logger }

func (q quiet) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte("http: panic")) {
		q.logger.Error(nil, "a page failed", "problem", string(line))
		return len(line), nil
	}
	q.logger.V(2).Info("a connection failed", "problem", string(line))
	return len(line), nil
}
