package query_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

// asClient has requests come with a client certificate.
func (w *world) asClient(authority *fleet.Authority, name string, groups []string, changes ...func(*x509.Certificate)) {
	w.t.Helper()
	certificate, key, err := authority.Client(name, groups, changes...)
	expect.NoError(w.t, err)
	pair, err := tls.X509KeyPair(certificate, key)
	expect.NoError(w.t, err)
	w.browser = w.newBrowser()
	w.browser.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{pair}
}

// Red when a certificate counts that the API server would refuse or that is for servers, when its user or groups are not those of the
// reviews, or when it counts beside a token.
func TestClientCertificates(t *testing.T) {
	w := newWorldOn(t, "certified")
	w.layOutWeb()
	mine := w.cluster("mine", "v1.36.3")
	w.start()
	ours := fleet.Shared().Cluster("certified").ClientAuthority()
	other, err := fleet.NewAuthority("other")
	expect.NoError(t, err)
	named := metav1.ObjectMeta{Namespace: mine, Name: "team"}
	expect.Create(t, w.seed, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"list"}, APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{catalogues}},
	}}, &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "team"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "team"}, {APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"},
		},
	})
	path := "/api/v1/namespaces/" + mine + "/addons"
	w.asClient(ours, "alice", nil)
	expect.Eventually(t, expect.Patience, func() error { // the authorizer follows roles, and the endpoint the authorities
		w.clock.SetTime(w.clock.Now().Add(time.Minute)) // kept answers end
		if got := w.get(path, ""); got.status != http.StatusOK {
			return fmt.Errorf("alice gets %d: %s", got.status, got.body)
		}
		return nil
	})
	usage := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(made *x509.Certificate) { made.ExtKeyUsage = usages }
	}
	for _, test := range []struct {
		why, user string
		groups    []string
		authority *fleet.Authority
		change    func(*x509.Certificate)
		status    int
	}{
		{"a group with the right", "bob", []string{"others", "team"}, ours, nil, http.StatusOK},
		{"no right", "bob", []string{"others"}, ours, nil, http.StatusNotFound},
		{"admins of the API server", "carol", []string{"system:masters"}, ours, nil, http.StatusOK},
		{"another authority", "alice", []string{"system:masters"}, other, nil, http.StatusUnauthorized},
		{"an expired one", "alice", nil, ours, func(made *x509.Certificate) { made.NotAfter = time.Now().Add(-time.Minute) }, http.StatusUnauthorized},
		{"one of a server", "alice", nil, ours, usage(x509.ExtKeyUsageServerAuth), http.StatusUnauthorized},
		{"one without a usage", "alice", nil, ours, usage(), http.StatusUnauthorized},
		{"one without a user", "", []string{"team"}, ours, nil, http.StatusUnauthorized},
	} {
		change := test.change
		if change == nil {
			change = func(*x509.Certificate) {}
		}
		w.asClient(test.authority, test.user, test.groups, change)
		w.get(path, "").expectStatus(t, test.why, test.status)
	}
	w.asClient(ours, "alice", nil)
	w.get(path, "wrong").expectStatus(t, "a wrong token beside a certificate", http.StatusUnauthorized)
	w.get(path, "", "Impersonate-User", "bob").expectStatus(t, "impersonation", http.StatusBadRequest)

	// The API server's ConfigMap gets another authority, and loses it.
	published := &corev1.ConfigMap{}
	expect.Get(t, w.seed, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: query.ClientAuthorities}, published)
	before := published.Data["client-ca-file"]
	w.asClient(other, "alice", nil)
	expect.Change(t, w.seed, published, func(now *corev1.ConfigMap) { now.Data["client-ca-file"] = before + string(other.PEM) })
	expect.Eventually(t, expect.Patience, func() error { return w.answers(path, http.StatusOK) })
	expect.Change(t, w.seed, published, func(now *corev1.ConfigMap) { now.Data["client-ca-file"] = before })
	expect.Eventually(t, expect.Patience, func() error { return w.answers(path, http.StatusUnauthorized) })
}

func (w *world) answers(path string, status int) error {
	if got := w.get(path, ""); got.status != status {
		return fmt.Errorf("got %d, want %d: %s", got.status, status, got.body)
	}
	return nil
}

// Red when the certificate of a folder is published without the authority that verifies it, without a name that it has, or with a URL that
// is no longer set.
func TestTheCertificateOfAFolderIsPublished(t *testing.T) {
	w := newWorld(t)
	authority, err := fleet.NewAuthority("corporate")
	expect.NoError(t, err)
	serving, key, err := authority.Serving("addons", nil, "addons.example.com")
	expect.NoError(t, err)
	folder := t.TempDir()
	write := func(name string, content []byte) {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
	write("tls.crt", append(serving, authority.PEM...))
	write("tls.key", key)
	held := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: v1.ConfigMapQuery},
		Data:       map[string]string{v1.QueryURL: "https://earlier.example.com"},
	}
	expect.Create(t, w.seed, held)
	published := &query.Publication{
		Writer: w.seed, Namespace: "kubermatic", Service: "trellis-seed-query", Port: "443", Folder: folder, Logger: logr.Discard(),
	}
	begin := func() (stop func()) {
		made := kit.Seed(t, fleet.Shared().Cluster("seed").Config, w.catalogue)
		expect.NoError(t, made.Add(published))
		made.Run()
		return made.Stop
	}
	stop := begin()
	has := func(authorities []byte) {
		t.Helper()
		expect.Object(t, w.seed, held, func(now *corev1.ConfigMap) error {
			if url, isThere := now.Data[v1.QueryURL]; isThere || now.Data[v1.QueryCA] != string(authorities) ||
				now.Data[v1.QueryServerName] != "localhost" || now.Data[v1.QueryService] != "trellis-seed-query" {
				return fmt.Errorf("got %q and %v", url, now.Data)
			}
			return nil
		})
	}
	has(authority.PEM)
	stop()
	another, err := fleet.NewAuthority("another")
	expect.NoError(t, err)
	write("ca.crt", another.PEM)
	begin()
	has(another.PEM)
}
