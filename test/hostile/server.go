package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-addons/trellis/test/fleet"
)

// Canary is the token in a Server's kubeconfig. It must occur nowhere else.
const Canary = "CANARY-token-of-a-hostile-API-server-0123456789"

// Server is an API server whose owner controls its answers. It speaks HTTP/2 only.
type Server struct {
	address  string
	ca       []byte
	listener net.Listener
	serving  sync.WaitGroup

	mutex       sync.Mutex
	target      *url.URL
	forward     *httputil.ReverseProxy
	mode        Mode
	dose        Dose
	counts      map[string]int
	connections map[net.Conn]bool
	closed      bool
}

// New starts a server in front of a cluster, in mode Truth; it is closed with the test.
func New(t testing.TB, cluster *fleet.Cluster) *Server {
	t.Helper()
	s, err := Start(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server in front of a cluster, in mode Truth, for a caller that closes it.
func Start(cluster *fleet.Cluster) (*Server, error) {
	authority, err := fleet.NewAuthority("hostile")
	if err != nil {
		return nil, err
	}
	secured, err := authority.TLS("hostile")
	if err != nil {
		return nil, err
	}
	secured.NextProtos = []string{http2.NextProtoTLS}
	s := &Server{ca: authority.PEM, mode: Truth, counts: map[string]int{}, connections: map[net.Conn]bool{}}
	if err := s.leadTo(cluster); err != nil {
		return nil, err
	}
	listener, err := fleet.Listen()
	if err != nil {
		return nil, err
	}
	s.address, s.listener = listener.Addr().String(), tls.NewListener(listener, secured)
	s.serving.Go(s.accept)
	return s, nil
}

// leadTo connects the server to a cluster.
func (s *Server) leadTo(cluster *fleet.Cluster) error {
	transport, err := rest.TransportFor(cluster.Config)
	if err != nil {
		return fmt.Errorf("making the transport to cluster %q: %w", cluster.Name, err)
	}
	target, err := url.Parse(cluster.URL())
	if err != nil {
		return fmt.Errorf("reading the address of cluster %q: %w", cluster.Name, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.target = target
	s.forward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: s.rewrite, ModifyResponse: s.change,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return nil
}

// rewrite forwards a request with the cluster's own credentials. Lists of metadata are requested as JSON, which modes
// can change.
func (s *Server) rewrite(request *httputil.ProxyRequest) {
	s.mutex.Lock()
	target := s.target
	s.mutex.Unlock()
	request.SetURL(target)
	request.Out.Host = target.Host
	request.Out.Header.Del("Authorization")
	request.Out.Header.Set("Accept-Encoding", "identity")
	accept := request.Out.Header.Get("Accept")
	for _, kind := range []string{"PartialObjectMetadataList", "PartialObjectMetadata"} {
		if strings.Contains(accept, "protobuf") && strings.Contains(accept, "as="+kind+";") {
			request.Out.Header.Set("Accept", "application/json;as="+kind+";g=meta.k8s.io;v=v1")
			break
		}
	}
}

// Kubeconfig leads to the server; its token is Canary.
func (s *Server) Kubeconfig() []byte {
	config := s.Config()
	// A configuration with only strings always encodes.
	content, _ := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"x": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"x": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "x", AuthInfo: "x"}},
		CurrentContext: "x",
	})
	return content
}

// Config is Kubeconfig for clients of tests.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: "https://" + s.address, BearerToken: Canary, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
	}
}

// Set makes the server answer in a mode from now on, with the mode's own dose, and resets the counts.
func (s *Server) Set(mode Mode) { s.SetDose(mode, mode.Dose) }

// SetDose is Set with another dose.
func (s *Server) SetDose(mode Mode, dose Dose) {
	s.mutex.Lock()
	s.mode, s.dose, s.counts = mode, dose, map[string]int{}
	s.mutex.Unlock()
}

// Mode is the one in which the server answers.
func (s *Server) Mode() Mode {
	mode, _ := s.now()
	return mode
}

// Count is the number of events since the last Set: "requests", "writes", "lies", or one that a mode counts.
func (s *Server) Count(what string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.counts[what]
}

// Counts are all counts since the last Set.
func (s *Server) Counts() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return maps.Clone(s.counts)
}

func (s *Server) count(what string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.counts[what]++
	return s.counts[what]
}

func (s *Server) now() (Mode, Dose) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.mode, s.dose
}

// Close cuts all connections and accepts no new ones. It may be called more than once.
func (s *Server) Close() {
	s.mutex.Lock()
	s.closed = true
	for connection := range s.connections {
		_ = connection.Close()
	}
	s.mutex.Unlock()
	_ = s.listener.Close()
	s.serving.Wait()
}

func (s *Server) accept() {
	server := &http2.Server{MaxConcurrentStreams: 1000} //nolint:staticcheck // net/http serves no single connection by HTTP/2
	for {
		connection, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil && s.keep(connection) {
			s.serving.Go(func() { s.serve(server, connection) })
		}
	}
}

// keep stores a connection, so that Close can cut it.
func (s *Server) keep(connection net.Conn) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed {
		_ = connection.Close()
		return false
	}
	s.connections[connection] = true
	return true
}

func (s *Server) serve(server *http2.Server, connection net.Conn) { //nolint:staticcheck // net/http serves no single connection by HTTP/2
	flooded := newFlooder(connection, s)
	defer func() {
		_ = flooded.Close()
		s.mutex.Lock()
		delete(s.connections, connection)
		s.mutex.Unlock()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if secured, ok := connection.(*tls.Conn); !ok || secured.HandshakeContext(ctx) != nil {
		return
	}
	server.ServeConn(flooded, &http2.ServeConnOpts{ //nolint:staticcheck // net/http serves no single connection by HTTP/2
		BaseConfig: &http.Server{ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}, Handler: http.HandlerFunc(s.answer),
	})
}

// answer handles one exchange: by the mode, or with the true answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	mode, dose := s.now()
	s.count("requests")
	x := &exchange{server: s, w: w, r: r, dose: dose, asked: askedFor(r)}
	if x.asked == forWrite {
		s.count("writes")
	}
	if mode.answer != nil {
		lie := &lying{ResponseWriter: w, begins: sync.OnceFunc(func() { s.count("lies") })}
		if x.w = lie; mode.answer(x) {
			lie.begins()
			return
		}
	}
	s.mutex.Lock()
	forward := s.forward
	s.mutex.Unlock()
	forward.ServeHTTP(w, r)
}

// lying counts a lie when it begins: a client may read a part of it and check the counts before it ends.
type lying struct {
	http.ResponseWriter
	begins func()
}

func (l *lying) WriteHeader(code int) {
	l.begins()
	l.ResponseWriter.WriteHeader(code)
}

func (l *lying) Write(text []byte) (int, error) {
	l.begins()
	return l.ResponseWriter.Write(text)
}

// Unwrap lets a response controller flush.
func (l *lying) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// change rewrites true answers in a mode that lies about objects.
func (s *Server) change(response *http.Response) error {
	mode, dose := s.now()
	isJSON := strings.Contains(response.Header.Get("Content-Type"), "json")
	if mode.change == nil || response.StatusCode >= http.StatusMultipleChoices || !isJSON {
		return nil
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading the true answer: %w", err)
	}
	if changed := mode.change(dose, askedFor(response.Request), text); changed != nil {
		s.count("lies")
		text = changed
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	response.ContentLength = int64(len(text))
	response.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}
