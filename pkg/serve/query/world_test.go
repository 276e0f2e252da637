package query_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

// world is a seed with a catalogue namespace of the test's own, and the endpoint over it.
type world struct {
	t testing.TB
	// on is the name of the seed's API server.
	on        string
	number    int
	catalogue string
	marks     *mergedcatalogue.Marks
	seed      client.Client
	clock     *clocktesting.FakePassiveClock
	counted   *counting
	registry  *prometheus.Registry
	audiences []string
	// kinds of clusters; none are KKP's.
	kinds    cluster.Kinds
	logger   logr.Logger
	endpoint *query.Server
	rows     *query.Rows
	browser  *http.Client
	stop     func()
}

var worlds int

// counting counts the questions to the API server.
type counting struct {
	query.Creator
	tokens, accesses atomic.Int32
}

func (c *counting) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	switch object.(type) {
	case *authenticationv1.TokenReview:
		c.tokens.Add(1)
	case *authorizationv1.SubjectAccessReview:
		c.accesses.Add(1)
	}
	return c.Creator.Create(ctx, object, options...)
}

func (c *counting) calls() int32 { return c.tokens.Load() + c.accesses.Load() }

// newWorld lays a seed out; start starts the endpoint.
func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, "seed")
}

func newWorldOn(t testing.TB, server string) *world {
	t.Helper()
	worlds++
	w := &world{
		t: t, on: server, number: worlds, catalogue: fmt.Sprintf("catalogue-%d", worlds),
		clock: clocktesting.NewFakePassiveClock(time.Now()), registry: prometheus.NewRegistry(),
		logger: logr.Discard(), marks: mergedcatalogue.New(logr.Discard()),
	}
	w.seed = kit.Client(t, fleet.Shared().Cluster(w.on).Config)
	expect.Create(w.t, w.seed, kit.Namespace(w.catalogue))
	return w
}

// start runs the endpoint in a manager, as the seed's does, until the end of the test, and waits
// until it is ready.
func (w *world) start() {
	w.t.Helper()
	if w.kinds.Served == nil {
		w.kinds = cluster.OnlyKKP
	}
	made := kit.SeedOf(w.t, fleet.Shared().Cluster(w.on).Config, w.catalogue, w.kinds)
	w.counted = &counting{Creator: w.seed}
	metrics := query.NewMetrics(w.registry)
	catalogue := query.NewCatalogue(w.catalogue, w.marks, logr.Discard())
	expect.NoError(w.t, catalogue.Watch(made.Context(), made.GetCache()))
	clients, err := wiring.QueryClients(made.Context(), made)
	expect.NoError(w.t, err)
	held, err := wiring.HeldForQueries(made.Context(), made)
	expect.NoError(w.t, err)
	w.rows = query.NewRows()
	bindings := query.NewBindings()
	expect.NoError(w.t, errors.Join(w.rows.Watch(made.Context(), made.GetCache()), bindings.Watch(made.Context(), held)))
	secret := client.ObjectKey{Namespace: w.catalogue, Name: query.CertificateSecret}
	own := query.NewCertificate(secret, []string{"127.0.0.1"}, nil)
	own.Use(w.seed, w.seed)
	w.endpoint = query.New(query.Dependencies{
		Catalogue: catalogue, Clusters: made.Clusters, Rows: w.rows, Bindings: bindings, Available: held,
		Installations: made.GetClient(), Certificates: own, Clients: clients,
		Reviews: query.NewReviews(w.counted, query.ReviewOptions{Clock: w.clock, Metrics: metrics, Audiences: w.audiences}),
	}, query.Options{
		Address: "127.0.0.1:0", CatalogueNamespace: w.catalogue, Metrics: metrics, Logger: w.logger,
	})
	for _, runnable := range []manager.Runnable{own, w.endpoint} {
		expect.NoError(w.t, made.Add(runnable))
	}
	made.Run()
	w.stop = made.Stop
	expect.Eventually(w.t, expect.Patience, func() error { return w.endpoint.Ready(nil) })
	w.browser = w.newBrowser()
}

// newBrowser trusts the authority in the endpoint's Secret and nobody else.
func (w *world) newBrowser() *http.Client {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: query.CertificateSecret}}
	expect.Object(w.t, w.seed, secret, func(*corev1.Secret) error { return nil })
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		w.t.Fatal("the Secret has no authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// response is what came back.
type response struct {
	status int
	header http.Header
	body   []byte
}

// withoutType in place of a header lets a body go without its type.
const withoutType = "-"

// ask sends a request; headers come as pairs.
func (w *world) ask(method, path, token, body string, headers ...string) response {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+w.endpoint.Address()+path, strings.NewReader(body))
	expect.NoError(w.t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == withoutType {
			request.Header.Del("Content-Type")
			continue
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := w.browser.Do(request)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, shortened(path), err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	expect.NoError(w.t, err)
	got := response{answer.StatusCode, answer.Header, content}
	if err := conforms(method, path, got); err != nil {
		w.t.Errorf("%s %s does not conform to the OpenAPI document: %v\n%s", method, shortened(path), err, shortened(string(content)))
	}
	return got
}

func (w *world) get(path, token string, headers ...string) response {
	w.t.Helper()
	return w.ask(http.MethodGet, path, token, "", headers...)
}

func shortened(text string) string { return text[:min(len(text), 100)] }

// expectStatus also looks at every refusal: it is a Status as the API server has them.
func (r response) expectStatus(t testing.TB, why string, status int) {
	t.Helper()
	if r.status != status {
		t.Errorf("%s: got %d, want %d: %s", why, r.status, status, shortened(string(r.body)))
	}
	if status >= 400 {
		problem := decode[metav1.Status](t, r)
		if problem.Kind != "Status" || problem.APIVersion != "v1" || problem.Status != metav1.StatusFailure ||
			int(problem.Code) != status || problem.Reason == "" || problem.Message == "" {
			t.Errorf("%s: the refusal %q is no whole Status", why, shortened(string(r.body)))
		}
	}
}

// decode reads an answer strictly.
func decode[T any](t testing.TB, r response) T {
	t.Helper()
	var into T
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		t.Fatalf("%d %s: %v", r.status, shortened(string(r.body)), err)
	}
	return into
}

// account makes a ServiceAccount in the catalogue namespace and returns a token of it.
func (w *world) account(name string, audiences ...string) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: name}}
	expect.Ensure(w.t, w.seed, account)
	return expect.Token(w.t, w.seed, account, audiences...)
}

// grant lets an account list resources in a namespace, and waits until the authorizer knows.
func (w *world) grant(account, namespace string, resources ...string) {
	w.t.Helper()
	name := fmt.Sprintf("%s-%s-%d", w.catalogue, account, len(resources))
	expect.Create(w.t, w.seed, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{"kubermatic.k8c.io"}, Resources: resources}},
	}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.catalogue, Name: account}},
	})
	for _, resource := range resources {
		w.expectRight(account, namespace, resource, true)
	}
}

// expectRight waits until the authorizer says so: it follows roles by watches of its own.
func (w *world) expectRight(account, namespace, resource string, allowed bool) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: fmt.Sprintf("system:serviceaccount:%s:%s", w.catalogue, account),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Group: "kubermatic.k8c.io", Resource: resource, Namespace: namespace,
			},
		}}
		if err := w.seed.Create(w.t.Context(), review); err != nil {
			return err
		}
		if review.Status.Allowed != allowed {
			return fmt.Errorf("%s may list %s in %s: %t, want %t", account, resource, namespace, review.Status.Allowed, allowed)
		}
		return nil
	})
}

// cluster makes a Cluster with a namespace and gives the namespace.
func (w *world) cluster(name, version string) string {
	w.t.Helper()
	name = fmt.Sprintf("%s-%d", name, w.number)
	namespace := "cluster-" + name
	expect.Create(w.t, w.seed, kit.Namespace(namespace))
	w.claim(name, namespace, version)
	return namespace
}

// claim makes a Cluster that says that a namespace is its own.
func (w *world) claim(name, namespace, version string) {
	w.t.Helper()
	object := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Create(w.t, w.seed, object)
	w.t.Cleanup(func() {
		if err := w.seed.Delete(context.Background(), object); err != nil {
			w.t.Error(err)
		}
	})
	before := object.DeepCopy()
	object.Status.NamespaceName, object.Status.Versions.ControlPlane = namespace, version
	expect.PatchStatus(w.t, w.seed, object, client.MergeFrom(before))
}

// merged makes a merged catalogue object; versions are given with their range of Kubernetes
// versions.
func (w *world) merged(name string, kind v1.CatalogueType, versions ...[2]string) *v1.AddonCatalogue {
	w.t.Helper()
	object := mergedObject(w.catalogue, name, kind, versions...)
	expect.Create(w.t, w.seed, object)
	return object
}

func mergedObject(namespace, name string, kind v1.CatalogueType, versions ...[2]string) *v1.AddonCatalogue {
	addon := v1.Addon{Name: v1.AddonName(name), DisplayName: strings.ToUpper(name), Description: "Says <hello> & more."}
	origins := map[string]map[string]string{}
	for _, version := range versions {
		added := given.Version(version[0], &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/addons.git"}})
		added.Template.FormSpec = []v1.FormField{{DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormInteger, Required: true}}
		if version[1] != "" {
			added.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(version[1])}
		}
		addon.Versions = append(addon.Versions, added)
		origins[version[0]] = map[string]string{"digest": "sha256:" + version[0], "catalogue": "tools"}
	}
	return given.WithOrigins(given.Merged(namespace, kind, addon), origins)
}
