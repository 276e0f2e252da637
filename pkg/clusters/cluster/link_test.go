package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// foreign is an API server with a tenant's code.
func foreign(t *testing.T, handler http.HandlerFunc) *Connection {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	l, err := newLink(&rest.Config{
		Host: server.URL, BearerToken: canary,
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
		})},
	}, remote.Options{Budget: remote.NewBudget(answersAtOnce)}, func(*link, error) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close("", "", "") })
	connection, err := newConnection(l)
	if err != nil {
		t.Fatal(err)
	}
	return connection
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer elsewhere.Close()
	connection := foreign(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := connection.greet(t.Context()); err == nil {
		t.Error("a redirect was taken for an answer")
	}
	if followed.Load() > 0 {
		t.Error("the redirect was followed")
	}
}

func TestRetryAfterIsNotObeyed(t *testing.T) {
	connection := foreign(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2147483647")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	if _, err := connection.greet(ctx); err == nil {
		t.Error("429 was taken for an answer")
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestGreetingDoesNotTrustTheAnswer(t *testing.T) {
	many := &strings.Builder{}
	for i := range kindLimit + 1 {
		fmt.Fprintf(many, `%s{"name":"k%d","kind":"K%d","namespaced":true,"verbs":["get"]}`, comma(i), i, i)
	}
	for _, test := range []struct {
		why, version, resources string
		want                    error
	}{
		{"a version that is none", canary, "", &VersionError{}},
		{"a version without end", "v1.36.0-" + strings.Repeat("a", 100), "", &VersionError{}},
		{"more kinds than are kept", "v1.36.0", many.String(), &TooManyKindsError{Count: kindLimit + 1}},
	} {
		t.Run(test.why, func(t *testing.T) {
			connection := foreign(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/version":
					fmt.Fprintf(w, `{"gitVersion":%q}`, test.version)
				case "/api":
					fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
				case "/apis":
					fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
				default:
					fmt.Fprintf(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[%s]}`, test.resources)
				}
			})
			_, err := connection.greet(t.Context())
			if diff := cmp.Diff(fmt.Sprint(test.want), fmt.Sprint(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func TestDescribeQuotesNobody(t *testing.T) {
	status := apierrors.NewGenericServerResponse(500, "get", v1Resource, "x", canary, 0, true)
	for _, err := range []error{status, errors.New(canary), fmt.Errorf("x: %w", &remote.MisbehavesError{Asked: "GET /api", Did: "x"})} {
		if text := DescribeFailure(err); strings.Contains(text, canary) || text == "" {
			t.Errorf("got %q", text)
		}
	}
}

// TestACertificateThatEndedIsReported fails when an expired certificate is reported as one of another authority.
func TestACertificateThatEndedIsReported(t *testing.T) {
	for reason, want := range map[x509.InvalidReason]string{
		x509.Expired: "the API server's certificate has expired, or is not valid yet", x509.NotAuthorizedToSign: "is not one that the kubeconfig trusts",
	} {
		err := &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: reason, Detail: canary}}
		if text := DescribeFailure(fmt.Errorf("x: %w", err)); !strings.Contains(text, want) || strings.Contains(text, canary) {
			t.Errorf("%d: %q", reason, text)
		}
	}
}

var v1Resource = schema.GroupResource{Resource: "namespaces"}

func corev1Conflict() error { return apierrors.NewConflict(v1Resource, "x", errors.New("changed")) }

func TestClientCertificatesAreShown(t *testing.T) {
	certificate, key := selfSigned(t, "kubermatic-controllers")
	var shown atomic.Value
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		shown.Store(r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	tree := plainKubeconfig()
	part(tree, "clusters", "cluster")["server"] = server.URL
	part(tree, "clusters", "cluster")["certificate-authority-data"] = base64.StdEncoding.EncodeToString(ca)
	user := part(tree, "users", "user")
	delete(user, "token")
	user["client-certificate-data"] = base64.StdEncoding.EncodeToString(certificate)
	user["client-key-data"] = base64.StdEncoding.EncodeToString(key)
	file, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	config, err := ParseKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLink(config, remote.Options{Budget: remote.NewBudget(answersAtOnce)}, func(*link, error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close("", "", "")
	response, err := l.remote.HTTP.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if diff := cmp.Diff("kubermatic-controllers", shown.Load()); diff != "" {
		t.Errorf("shown as (-want +got):\n%s", diff)
	}
}

func selfSigned(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}
