package outbound_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network creates a Network that may reach the servers of a test.
func network(t *testing.T, options outbound.Options) *outbound.Network {
	t.Helper()
	if options.AllowCIDRs == nil {
		options.AllowCIDRs = fetchtest.Loopback
	}
	made := outbound.New(options)
	t.Cleanup(made.Close)
	return made
}

// get requests a URL and reads the answer.
func get(ctx context.Context, from *outbound.Network, request outbound.Request, at string) (string, error) {
	parsed, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	request.Method, request.URL = http.MethodGet, parsed
	if request.Origin == nil {
		request.Origin = parsed
	}
	if request.Limit == 0 {
		request.Limit = 1 << 20
	}
	answer, err := from.Do(ctx, request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return string(content), err
}

func isRefused(err error) bool {
	var refusal *fetch.RefusedError
	return errors.As(err, &refusal)
}

func isUnavailable(err error) bool {
	var unavailable *fetch.UnavailableError
	return errors.As(err, &unavailable)
}

// names is a resolver with answers that a test sets; each look-up uses the next one.
type names struct {
	answers [][]string
	looks   atomic.Int32
}

// LookupNetIP gives the next answer.
func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	look := min(int(n.looks.Add(1)), len(n.answers)) - 1
	addresses := []netip.Addr{}
	for _, text := range n.answers[look] {
		addresses = append(addresses, netip.MustParseAddr(text))
	}
	return addresses, nil
}

// TestDialOfAForbiddenAddressIsRefused (AC14): A forbidden address is refused at the dial, regardless of the name.
func TestDialOfAForbiddenAddressIsRefused(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") }))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	credentials := fetch.Credentials{CA: server.CA}
	for _, test := range []struct {
		why, url string
		answers  [][]string
	}{
		{"an address as it is", server.URL, nil},
		{"mapped into IPv6", "https://[::ffff:127.0.0.1]:" + port, nil},
		{"a decimal spelling is no address, and no name either", "https://2130706433:" + port, [][]string{{"127.0.0.1"}}},
		{"a name that leads inside", "https://example.com:" + port, [][]string{{"127.0.0.1"}}},
		{"a name of the cluster's own, whatever its address", "https://registry.default.svc:" + port, [][]string{{"192.0.2.1"}}},
		{"with the cluster's domain", "https://registry.default.svc.cluster.local.:" + port, [][]string{{"192.0.2.1"}}},
		{"one good address does not open the host", "https://example.com:" + port, [][]string{{"93.184.216.34", "127.0.0.1"}}},
	} {
		t.Run(test.why, func(t *testing.T) {
			closed := network(t, outbound.Options{
				AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Resolver: &names{answers: test.answers},
			})
			got, err := get(t.Context(), closed, outbound.Request{Credentials: credentials}, test.url)
			if !isRefused(err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if seen := server.Requests(); len(seen) != 0 {
		t.Errorf("the server saw %d requests", len(seen))
	}
}

// TestRebindingGainsNothing (AC14): A name that changes its address between check and dial gains nothing.
func TestRebindingGainsNothing(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	// 127.0.0.2 is allowed and no server listens there; a second look-up would lead to the server.
	resolver := &names{answers: [][]string{{"127.0.0.2"}, {"127.0.0.1"}}}
	pinned := network(t, outbound.Options{
		AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolver: resolver,
	})
	_, err := get(t.Context(), pinned, outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, "https://example.com:"+port)
	if !isUnavailable(err) {
		t.Errorf("got %v", err)
	}
	if looks := resolver.looks.Load(); looks != 1 {
		t.Errorf("%d look-ups", looks)
	}
	_, err = get(t.Context(), pinned, outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, "https://example.com:"+port)
	if !isRefused(err) || len(server.Requests()) != 0 {
		t.Errorf("the second time: got %v", err)
	}
}

// TestRedirectToAForbiddenAddressIsRefused (AC14): A redirect to a forbidden address is refused.
func TestRedirectToAForbiddenAddressIsRefused(t *testing.T) {
	inside := fetchtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	outside := fetchtest.Serve(t, http.RedirectHandler("https://127.0.0.3:"+port+"/", http.StatusFound))
	open := network(t, outbound.Options{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	_, err := get(t.Context(), open, outbound.Request{Credentials: fetch.Credentials{CA: outside.CA}, OtherHosts: true}, outside.URL)
	if !isRefused(err) {
		t.Errorf("got %v", err)
	}
}

// TestRedirectsAreFewAndNeverToPlainText (AC15): Redirects are followed a few times, never to plain text, never with
// credentials of another host.
func TestRedirectsAreFewAndNeverToPlainText(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "plain") }))
	t.Cleanup(plain.Close)
	other := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other") }))
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/end":
			fmt.Fprint(w, "end")
		case "/other":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/plain":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default: // /3 leads to /2 and so on
			left := strings.TrimPrefix(r.URL.Path, "/")
			http.Redirect(w, r, map[string]string{"1": "/end", "2": "/1", "3": "/2", "4": "/3"}[left], http.StatusMovedPermanently)
		}
	}))
	for _, test := range []struct {
		why, path  string
		otherHosts bool
		insecure   bool
		want       string // "" means refused
	}{
		{"three are followed", "/3", false, false, "end"},
		{"four are not", "/4", false, false, ""},
		{"nor a thousand", "/loop", true, false, ""},
		{"another host", "/other", false, false, ""},
		{"another port is another host, and allowed where the caller says so", "/other", true, false, ""},
		{"plain http", "/plain", true, false, ""},
		{"plain http is no way down from https in labs either", "/plain", true, true, ""},
		{"another scheme", "/file", true, true, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			ca := append(append([]byte{}, server.CA...), other.CA...)
			got, err := get(t.Context(), network(t, outbound.Options{AllowInsecure: test.insecure}), outbound.Request{
				Credentials: fetch.Credentials{CA: ca}, OtherHosts: test.otherHosts,
			}, server.URL+test.path)
			if test.path == "/other" && test.otherHosts {
				test.want = "other"
			}
			if got != test.want || (test.want == "") != isRefused(err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	post := outbound.Request{
		Method: http.MethodPost, URL: mustParse(t, server.URL+"/1"), Body: []byte("x"), Limit: 10,
		Credentials: fetch.Credentials{CA: server.CA},
	}
	if _, err := network(t, outbound.Options{}).Do(t.Context(), post); !isRefused(err) {
		t.Errorf("a redirected POST: got %v", err)
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestCredentialsStayWithTheirHost (V19): Credentials are sent only to the host that they are for, also after
// redirects and back.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	var home *fetchtest.Server
	away := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/2":
			fmt.Fprint(w, "away")
		case "/back":
			http.Redirect(w, r, home.URL+"/end", http.StatusFound)
		default:
			w.Header().Set("Set-Cookie", "a=b")
			http.Redirect(w, r, "/2", http.StatusFound)
		}
	}))
	home = fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, away.URL+"/1", http.StatusFound)
		case "/back":
			http.Redirect(w, r, away.URL+"/back", http.StatusFound)
		case "/around":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			fmt.Fprint(w, r.Header.Get("Authorization"))
		}
	}))
	ca := append(append([]byte{}, home.CA...), away.CA...)
	basic := fetch.Credentials{Username: "u", Password: "canary", CA: ca}
	open := network(t, outbound.Options{})
	ask := func(credentials fetch.Credentials, path string) string {
		t.Helper()
		got, err := get(t.Context(), open, outbound.Request{Credentials: credentials, OtherHosts: true}, home.URL+path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, test := range []struct {
		why, path   string
		credentials fetch.Credentials
		want        string
	}{
		{"at home", "/end", basic, "Basic dTpjYW5hcnk="},
		{"a token goes before user and password", "/end", fetch.Credentials{BearerToken: "token", Username: "u", CA: ca}, "Bearer token"},
		{"a redirect within the origin keeps them", "/around", basic, "Basic dTpjYW5hcnk="},
		{"the other host answers", "/away", basic, "away"},
		{"they don't come back after a detour", "/back", basic, ""},
	} {
		if got := ask(test.credentials, test.path); got != test.want {
			t.Errorf("%s: got %q", test.why, got)
		}
	}
	for _, seen := range away.Requests() {
		for _, header := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Referer"} {
			if value := seen.Header.Get(header); value != "" {
				t.Errorf("the other host got %s: %s", header, value)
			}
		}
	}
}

func TestCredentialsHosts(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization") != "")
	}))
	address := server.Listener.Addr().String()
	for _, test := range []struct {
		why, origin string
		hosts       []string
		want        string
	}{
		{"no list means the origin", server.URL, nil, "true"},
		{"no list means no other port", "https://127.0.0.1:1", nil, "false"},
		{"no list means no other scheme", "http://" + address, nil, "false"},
		{"the list names the origin", server.URL, []string{"127.0.0.1"}, "true"},
		{"with its port", server.URL, []string{" " + address + " "}, "true"},
		{"with another port", server.URL, []string{"127.0.0.1:1"}, "false"},
		{"the list narrows", server.URL, []string{"example.com"}, "false"},
		{"the list widens, by port", "https://example.com", []string{"example.com", address}, "true"},
		{"without a port it widens to the default port only", "https://example.com", []string{"127.0.0.1"}, "false"},
		{"never to another scheme", "http://example.com", []string{address}, "false"},
	} {
		t.Run(test.why, func(t *testing.T) {
			got, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{
				Origin:      mustParse(t, test.origin),
				Credentials: fetch.Credentials{Username: "u", Password: "p", CA: server.CA, Hosts: test.hosts},
			}, server.URL)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestUnauthorizedSaysWhetherCredentialsWereSent(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	for _, username := range []string{"", "u"} {
		_, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{
			Credentials: fetch.Credentials{Username: username, Password: username, CA: server.CA},
		}, server.URL)
		var refusal *fetch.UnauthorizedError
		if !errors.As(err, &refusal) || refusal.Sent != (username != "") {
			t.Errorf("user %q: %v", username, err)
		}
	}
}

// TestURLsWithCredentialsAreRefused (AC16): URLs with credentials in them, and ambiguous ones, are refused.
func TestURLsWithCredentialsAreRefused(t *testing.T) {
	strict, lab := outbound.New(outbound.Options{}), outbound.New(outbound.Options{AllowInsecure: true})
	for _, test := range []struct {
		why, url    string
		ok, okInLab bool
	}{
		{"https", "https://example.com/a", true, true},
		{"with a port", "https://example.com:8443/a", true, true},
		{"http", "http://example.com/a", false, true},
		{"a password", "https://u:canary@example.com/a", false, false},
		{"a user", "https://canary@example.com/a", false, false},
		{"a query", "https://example.com/a?token=canary", false, false},
		{"a fragment", "https://example.com/a#canary", false, false},
		{"a file", "file:///etc/passwd", false, false},
		{"a path", "/srv/repository", false, false},
		{"the git protocol", "git://example.com/a", false, false},
		{"a remote helper", "ext::sh -c canary", false, false},
		{"scp form", "git@example.com:canary", false, false},
		{"an option for a host", "https://-oProxyCommand=x/a", false, false},
		{"an option", "--upload-pack=x", false, false},
		{"no host", "https:///a", false, false},
		{"a zone", "https://[fe80::1%25eth0]/a", false, false},
		{"a control character", "https://example.com/a\nb", false, false},
		{"a space", "https://example.com/a b", false, false},
		{"an impossible port", "https://example.com:99999/", false, false},
		{"too long", "https://example.com/" + strings.Repeat("a", 4096), false, false},
	} {
		for _, network := range []struct {
			*outbound.Network
			ok bool
		}{{strict, test.ok}, {lab, test.okInLab}} {
			_, err := network.ParseURL(test.url)
			if (err == nil) != network.ok || err != nil && !isRefused(err) {
				t.Errorf("%s: %q: got %v", test.why, test.url, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") && test.why != "scp form" {
				t.Errorf("%s: the error prints it: %v", test.why, err)
			}
		}
	}
}

// TestErrorsHideSecretsOfURLs (AC16): Errors show no credentials and no query of a URL.
func TestErrorsHideSecretsOfURLs(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/user":
			w.Header().Set("Location", "https://user:canary@127.0.0.1:1/x?signature=canary")
			w.WriteHeader(http.StatusFound)
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	credentials := fetch.Credentials{Username: "canary", Password: "canary", CA: server.CA}
	for _, at := range []string{"/user", "/cut", "/forbidden?token=canary"} {
		for _, ca := range [][]byte{server.CA, nil, []byte("canary")} {
			credentials.CA = ca
			_, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{
				Credentials: credentials, OtherHosts: true,
			}, server.URL+at)
			if err == nil || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: got %v", at, err)
			}
		}
	}
}

// certificate creates a self-signed server certificate.
func certificate(t *testing.T, change func(*x509.Certificate)) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, encoded
}

// TestCertificatesThatAreNotTrustedEndTheCall (AC17): A certificate that is expired, for another name or of an
// unknown authority ends the call.
//
// Red when unavailable adds no hint, or adds one if an authority would not help.
func TestCertificatesThatAreNotTrustedEndTheCall(t *testing.T) {
	good := func(*x509.Certificate) {}
	for _, test := range []struct {
		why     string
		change  func(*x509.Certificate)
		trusted bool
		newest  uint16
		want    bool
	}{
		{"a trusted certificate", good, true, tls.VersionTLS13, true},
		{"a self-signed one that nobody trusts", good, false, tls.VersionTLS13, false},
		{"an expired one", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }, true, tls.VersionTLS13, false},
		{"for another name", func(c *x509.Certificate) { c.IPAddresses[0] = net.IPv4(127, 0, 0, 2) }, true, tls.VersionTLS13, false},
		{"TLS 1.2", good, true, tls.VersionTLS12, true},
		{"TLS 1.1", good, true, tls.VersionTLS11, false},
		{"TLS 1.0", good, true, tls.VersionTLS10, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			pair, ca := certificate(t, test.change)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
			server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: test.newest}
			server.Config.ErrorLog = quiet()
			server.StartTLS()
			t.Cleanup(server.Close)
			if !test.trusted {
				_, ca = certificate(t, good)
			}
			got, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{Credentials: fetch.Credentials{CA: ca}}, server.URL)
			if test.want != (got == "ok") || !test.want && !isUnavailable(err) {
				t.Errorf("got %q, %v", got, err)
			}
			if said := err != nil && strings.HasSuffix(err.Error(), ": set caSecretRef to a Secret with the CA certificate"); said == test.trusted {
				t.Errorf("names caSecretRef: %t; %v", said, err)
			}
		})
	}
}

// TestSlowServersAreGivenUp (AC23): A server that is slow, silent or endless is given up after a time.
func TestSlowServersAreGivenUp(t *testing.T) {
	stop := make(chan struct{})
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for {
			_, _ = w.Write([]byte("x"))
			if r.URL.Path == "/pause" {
				ticks.Reset(time.Hour)
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ticks.C:
			case <-r.Context().Done():
				return
			case <-stop:
				return
			}
		}
	}))
	t.Cleanup(func() { close(stop) })
	for _, test := range []struct {
		why, path   string
		total, idle time.Duration
		says        string
	}{
		// The transport has the same deadline for headers, which may come first.
		{"a server that never answers", "/silent", time.Hour, 100 * time.Millisecond, ""},
		{"a server that stops in the middle", "/pause", time.Hour, 200 * time.Millisecond, "no data arrived"},
		{"a byte now and then", "/slow", 300 * time.Millisecond, time.Hour, "did not end within"},
	} {
		t.Run(test.why, func(t *testing.T) {
			_, err := get(t.Context(), network(t, outbound.Options{Timeout: test.total, IdleTimeout: test.idle}), outbound.Request{
				Credentials: fetch.Credentials{CA: server.CA},
			}, server.URL+test.path)
			if !isUnavailable(err) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
}

// TestEndAfterHangingUpIsNoEnd (AC23): A server that sees its client disconnect ends its answer properly, and this
// end may still be read. It does not count.
func TestEndAfterHangingUpIsNoEnd(t *testing.T) {
	cut := outbound.Watched(t.Context(), time.Millisecond, func(hungUp <-chan struct{}) io.Reader {
		return io.MultiReader(strings.NewReader("half of it"), readerFunc(func([]byte) (int, error) {
			<-hungUp
			return 0, io.EOF
		}))
	})
	defer cut.Close()
	if content, err := io.ReadAll(cut); !isUnavailable(err) || !strings.Contains(err.Error(), "no data arrived") {
		t.Errorf("got %q, %v", content, err)
	}
	whole := outbound.Watched(t.Context(), time.Hour, func(<-chan struct{}) io.Reader { return strings.NewReader("all of it") })
	defer whole.Close()
	if content, err := io.ReadAll(whole); err != nil || string(content) != "all of it" {
		t.Errorf("got %q, %v", content, err)
	}
}

type readerFunc func([]byte) (int, error)

// Read is the function.
func (f readerFunc) Read(into []byte) (int, error) { return f(into) }

// TestHalfOpenConnectionsAreGivenUp (AC23): A connection whose other side is gone is given up after a time.
func TestHalfOpenConnectionsAreGivenUp(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() { // accepts connections, reads, and never sends anything: even the handshake does not end
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, bufio.NewReader(connection)) }()
		}
	}()
	_, err = get(t.Context(), network(t, outbound.Options{IdleTimeout: 100 * time.Millisecond}), outbound.Request{},
		"https://"+listener.Addr().String())
	if !isUnavailable(err) {
		t.Errorf("got %v", err)
	}
}

func TestAnswersAreCapped(t *testing.T) {
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/endless" {
			for r.Context().Err() == nil {
				_, _ = w.Write(make([]byte, 32<<10))
			}
			return
		}
		fmt.Fprint(w, "0123456789")
	}))
	for _, test := range []struct {
		path  string
		limit int64
		ok    bool
	}{{"/ten", 10, true}, {"/ten", 9, false}, {"/endless", 1 << 20, false}} {
		got, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{
			Credentials: fetch.Credentials{CA: server.CA}, Limit: test.limit,
		}, server.URL+test.path)
		if (err == nil) != test.ok || !test.ok && !isRefused(err) || int64(len(got)) > test.limit {
			t.Errorf("%s up to %d: %d bytes, %v", test.path, test.limit, len(got), err)
		}
	}
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := fetchtest.Serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("HTTP_PROXY", proxy.URL)
	server := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Accept-Encoding"))
	}))
	got, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{Credentials: fetch.Credentials{CA: server.CA}}, server.URL)
	if err != nil || got != "" || len(proxy.Requests()) != 0 {
		t.Errorf("got %q, %v; the proxy saw %d requests", got, err, len(proxy.Requests()))
	}
}

// TestServersGetNoHTTP2 (AC23): Servers are called over HTTP/1.1, also if they offer HTTP/2: over that they could
// send pings without end, outside of all limits of answers, on idle connections. The test fails when HTTP/2 is
// accepted.
func TestServersGetNoHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	got, err := get(t.Context(), network(t, outbound.Options{}), outbound.Request{Credentials: fetch.Credentials{CA: authority}}, server.URL)
	if err != nil || got != "HTTP/1.1" {
		t.Errorf("got %q, %v", got, err)
	}
}
