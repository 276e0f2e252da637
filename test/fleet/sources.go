package fleet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
)

// Sources are real sources on one https port of 127.0.0.1, with a private certificate authority: git, a Helm
// repository and an OCI registry; also git by ssh, on a separate port.
type Sources struct {
	// GitURL is the address above all repositories: repository NAME.git of GitFolder is GitURL/NAME.git.
	GitURL string
	// ChartsURL is the address of the Helm repository.
	ChartsURL string
	// Registry is host:port of the OCI registry.
	Registry string
	// CA is the certificate authority of all three, in PEM.
	CA []byte
	// SSH serves the same repositories as GitURL: NAME.git is SSH.URL/NAME.git. It has the client's key and the
	// host's key.
	SSH *fetchtest.SSH
	// GitFolder has bare repositories; a new one is served at once.
	GitFolder string
	// ChartsFolder has chart archives, *.tgz; the index follows its content.
	ChartsFolder string

	ports       *Ports
	place       *folder
	server      *http.Server
	images      http.Handler
	mutex       sync.Mutex
	connections map[net.Conn]bool
	counts      Requests
	logins      map[Source]login
	index       chartIndex
	stop        sync.Once
}

// Source is one of the three sources.
type Source string

// The sources.
const (
	SourceGit      Source = "git"
	SourceCharts   Source = "charts"
	SourceRegistry Source = "registry"
)

// Requests counts the requests of clients, including refused ones.
type Requests struct {
	// GitRefs are requests for a repository's branches and tags, GitPacks those for commits.
	GitRefs, GitPacks int
	// Index are requests for index.yaml, Charts those for an archive.
	Index, Charts int
	// Registry are all requests to the OCI registry.
	Registry int
}

type login struct{ user, password string }

// StartSources starts the sources over the folders git, charts and registry of the given one. It creates missing
// folders, and Stop keeps them: content that was pushed to the registry exists again at the next start. Without a
// folder they use a temporary one, which Stop removes. Ports may be nil.
func StartSources(parent string, ports *Ports) (*Sources, error) {
	s := &Sources{connections: map[net.Conn]bool{}, logins: map[Source]login{}, ports: ports}
	if parent == "" {
		place, err := claim("")
		if err != nil {
			return nil, err
		}
		s.place, parent = place, place.path
	}
	s.GitFolder, s.ChartsFolder = filepath.Join(parent, "git"), filepath.Join(parent, "charts")
	if err := s.serve(filepath.Join(parent, "registry")); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// SourcesForTest starts sources that end with the test.
func SourcesForTest(t testing.TB) *Sources {
	t.Helper()
	s, err := StartSources("", nil)
	if err != nil {
		t.Fatalf("starting sources: %v", err)
	}
	t.Cleanup(endWithProcess(s.Stop))
	return s
}

// Transport trusts the authority of the sources. Its connections end with the test.
func (s *Sources) Transport(t testing.TB) *http.Transport {
	t.Helper()
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(s.CA) {
		t.Fatal("the sources' certificate authority is no PEM")
	}
	made := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}
	t.Cleanup(made.CloseIdleConnections)
	return made
}

func (s *Sources) serve(blobs string) error {
	for _, folder := range []string{s.GitFolder, s.ChartsFolder, blobs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("making a folder of sources: %w", err)
		}
	}
	authority, err := NewAuthority("trellis-sources")
	if err != nil {
		return err
	}
	configuration, err := authority.TLS("sources")
	if err != nil {
		return err
	}
	if s.SSH, err = fetchtest.StartSSH(s.GitFolder); err != nil {
		return err
	}
	listener, err := s.ports.Listen("sources")
	if err != nil {
		return err
	}
	s.CA, s.Registry = authority.PEM, listener.Addr().String()
	s.GitURL, s.ChartsURL = "https://"+s.Registry+"/git", "https://"+s.Registry+"/charts"
	handler, err := s.handler(blobs)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	quiet := log.New(io.Discard, "", 0)
	s.server = &http.Server{
		Handler: handler, TLSConfig: configuration, ErrorLog: quiet, ConnState: s.track, ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }()
	return nil
}

func (s *Sources) handler(blobs string) (http.Handler, error) {
	git, err := gitHandler(s.GitFolder)
	if err != nil {
		return nil, err
	}
	s.images, err = keepManifests(filepath.Join(blobs, "manifests"), registry.New(registry.Logger(log.New(io.Discard, "", 0)),
		registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs))))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/git/", s.guard(SourceGit, git))
	mux.Handle("/charts/", s.guard(SourceCharts, http.HandlerFunc(s.serveCharts)))
	mux.Handle("/v2/", s.guard(SourceRegistry, s.images))
	return mux, nil
}

// guard counts requests and requires a user name and password if RequireLogin set them.
func (s *Sources) guard(source Source, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, guarded := s.count(source, r)
		user, password, _ := r.BasicAuth()
		if guarded && (user != want.user || password != want.password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="trellis"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Sources) count(source Source, r *http.Request) (login, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	switch {
	case source == SourceRegistry:
		s.counts.Registry++
	case source == SourceGit && strings.HasSuffix(r.URL.Path, "/info/refs"):
		s.counts.GitRefs++
	case source == SourceGit:
		s.counts.GitPacks++
	case strings.HasSuffix(r.URL.Path, "/index.yaml"):
		s.counts.Index++
	default:
		s.counts.Charts++
	}
	want, guarded := s.logins[source]
	return want, guarded
}

// RequireLogin makes one source require basic authentication from now on.
func (s *Sources) RequireLogin(source Source, user, password string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logins[source] = login{user, password}
}

// Requests returns the counts so far.
func (s *Sources) Requests() Requests {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.counts
}

func (s *Sources) track(connection net.Conn, state http.ConnState) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if state == http.StateClosed || state == http.StateHijacked {
		delete(s.connections, connection)
		return
	}
	s.connections[connection] = true
}

// CloseConnections cuts every connection, also in the middle of an answer.
func (s *Sources) CloseConnections() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for connection := range s.connections {
		_ = connection.Close()
	}
}

// Stop ends the server. It may be called more than once.
func (s *Sources) Stop() {
	s.stop.Do(func() {
		if s.server != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s.CloseConnections()
			_ = s.server.Shutdown(ctx)
			_ = s.server.Close()
		}
		if s.SSH != nil {
			s.SSH.Close()
		}
		if s.place != nil {
			s.place.release()
		}
	})
}
