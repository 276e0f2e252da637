package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"      //nolint:staticcheck // the port-forward of client-go takes its types
	"k8s.io/apimachinery/pkg/util/httpstream/spdy" //nolint:staticcheck // as above
	"k8s.io/client-go/tools/portforward"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	clusters "github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

// served is a seed, which is its own user cluster, with the controller of installations and the query endpoint of a manager. A second
// endpoint is that of a replica that does not lead.
type served struct {
	t    testing.TB
	seed client.Client
	// namespace is the Cluster's, platform that of the endpoint's Service and of merged catalogues, and space that of the add-on's objects.
	namespace, platform, space string
	sources                    *fleet.Sources
	leader, follower           *query.Server
}

func serve(t testing.TB, name string) *served {
	t.Helper()
	config := fleet.Shared().Cluster("seed").Config
	w := &served{
		t: t, seed: world.Client(t, config), namespace: "cluster-" + name, platform: "platform-" + name, space: "web-" + name,
		sources: fleet.SourcesForTest(t),
	}
	folders, err := fleet.CRDFolders()
	expect.NoError(t, err)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, append(folders, "../../pkg/clusters/cluster/testdata/kkp")...))
	world.UserCluster(t, w.seed, name, fleet.Shared().Cluster("seed").Kubeconfig)
	expect.Create(t, w.seed, world.Namespace(w.platform), given.AuthoritySecret(w.platform, w.sources.CA))
	found := published()
	expect.Create(t, w.seed, found)
	t.Cleanup(func() { // other tests have no endpoint
		if err := w.seed.Delete(context.WithoutCancel(t.Context()), found); err != nil {
			t.Error(err)
		}
	})

	made := world.SeedOf(t, config, w.platform, clusters.OnlyKKP, func(options *manager.Options) {
		options.Logger = logr.Discard()
		options.Cache.ByObject[&v1.AddonInstallation{}] = cache.ByObject{Namespaces: map[string]cache.Config{w.namespace: {}}}
	})
	marks := mergedcatalogue.New(logr.Discard())
	dependencies := w.dependencies(made, marks)
	previews := addoninstallation.NewPreviewer(dependencies)
	made.SetUp(addoninstallation.New(dependencies))
	whole := world.Seed(t, config, w.platform, func(options *manager.Options) { options.Logger = logr.Discard() }) // with all installations
	sets := addonset.New(wiring.AddonSet(whole.Seed, marks, addonset.Options{CatalogueNamespace: w.platform}))
	whole.SetUp(sets)
	whole.Run()
	own := query.NewCertificate(client.ObjectKey{Namespace: w.platform, Name: query.CertificateSecret}, []string{"localhost", "127.0.0.1"},
		&query.Publication{Writer: w.seed, Namespace: w.platform, Service: "query", Port: "443", Logger: logr.Discard()})
	own.Use(w.seed, w.seed)
	expect.NoError(t, made.Add(own))
	held, err := wiring.HeldForQueries(made.Context(), made)
	expect.NoError(t, err)
	rows, bindings := query.NewRows(), query.NewBindings()
	expect.NoError(t, errors.Join(rows.Watch(made.Context(), made.GetCache()), bindings.Watch(made.Context(), held)))
	endpoint := func(elected <-chan struct{}) *query.Server {
		catalogue := query.NewCatalogue(w.platform, marks, logr.Discard())
		expect.NoError(t, catalogue.Watch(made.Context(), made.GetCache()))
		server := query.New(query.Dependencies{
			Catalogue: catalogue, Clusters: made.Clusters, Installations: made.GetClient(), Certificates: own, Previews: previews, Sets: sets,
			Elected: elected, Rows: rows, Bindings: bindings, Available: held, Reviews: query.NewReviews(w.seed, query.ReviewOptions{TTL: time.Millisecond}),
		}, query.Options{Address: "127.0.0.1:0", CatalogueNamespace: w.platform, Logger: logr.Discard()})
		expect.NoError(t, made.Add(server))
		return server
	}
	w.leader, w.follower = endpoint(made.Elected()), endpoint(make(chan struct{}))
	made.Run()
	for _, one := range []*query.Server{w.leader, w.follower} {
		expect.Eventually(t, expect.Patience, func() error { return one.Ready(nil) })
	}
	return w
}

func (w *served) dependencies(made *world.Manager, marks *mergedcatalogue.Marks) addoninstallation.Dependencies {
	w.t.Helper()
	kinds := contents.Kinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
	content, err := store.New(store.Options{Folder: disk.TempDir(w.t), Kinds: kinds, Interval: time.Minute})
	expect.NoError(w.t, err)
	renderer := gotemplate.New()
	found, err := wiring.AddonInstallation(made.Context(), made.Seed, marks, wiring.InstallationParts{
		Namespace: w.platform, AllowCIDRs: fetchtest.Loopback, SourceKinds: kinds, Store: content,
		Renders: kept.New(kept.Options{
			Methods: map[string]render.Renderer{string(v1.MethodGoTemplate): renderer}, Values: renderer,
		}),
		Records: wiring.Records(made, []byte("key")), InputsKey: []byte("key"),
		Options: addoninstallation.Options{
			CatalogueNamespace: w.platform, DriftInterval: time.Hour, OrderTimeout: 10 * time.Minute, Limits: fairqueue.Limits{Workers: 2},
		},
	})
	expect.NoError(w.t, err)
	found.Metrics = addoninstallation.NewMetrics(prometheus.NewPedanticRegistry())
	return found
}

// publish offers version 1.0.0 and 2.0.0 of an add-on with these files.
func (w *served) publish(addon string, first, second map[string]string, change ...func(*v1.Addon)) {
	w.t.Helper()
	placed := map[string]string{}
	made := given.Addon(addon)
	made.TargetNamespace, made.CreateNamespace = w.space, true
	origins := map[string]catalogue.Origin{}
	for version, files := range map[string]map[string]string{"1.0.0": first, "2.0.0": second} {
		for name, text := range files {
			placed[version+"/"+name] = text
		}
	}
	_, err := w.sources.Commit(addon, placed)
	expect.NoError(w.t, err)
	for _, version := range []string{"1.0.0", "2.0.0"} {
		made.Versions = append(made.Versions, given.Version(version, given.Git(w.sources.GitURL+"/"+addon+".git", version)))
	}
	for _, one := range change {
		one(&made)
	}
	for _, version := range made.Versions {
		digest, err := catalogue.Digest(version)
		expect.NoError(w.t, err)
		origins[version.Version] = catalogue.Origin{Digest: digest, Catalogue: "test"}
	}
	expect.Create(w.t, w.seed, given.WithOrigins(given.Merged(w.platform, v1.CatalogueCustom, made), origins))
	available := given.Addon(addon, v1.AddonVersion{Version: "2.0.0"}, v1.AddonVersion{Version: "1.0.0"})
	available.TargetNamespace, available.CreateNamespace = made.TargetNamespace, true
	offered(w.t, w.seed, client.ObjectKey{Namespace: w.namespace, Name: v1.AvailableCatalogue}, func(made *v1.AddonCatalogue) {
		made.Spec.Addons = []v1.Addon{available}
	})
}

// at publishes a URL of the endpoint.
func (w *served) at(address string) {
	w.t.Helper()
	expect.Merge(w.t, w.seed, published(), fmt.Appendf(nil, `{"data":{"url":%q}}`, address))
}

// published is ConfigMap addon-query.
func published() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: v1.ConfigMapQuery}}
}

// readable lets all users read ConfigMap addon-query, as the chart does.
func readable(t testing.TB, seed client.Client) {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "addon-query"}
	expect.Ensure(t, seed, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{v1.ConfigMapQuery}},
	}}, &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	})
}

// kubelet is a node's, which forwards ports of its pods to the same ports of this machine. One that breaks ends each connection at the
// first byte.
func (w *served) kubelet(breaks bool) {
	w.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if _, err := httpstream.Handshake(request, writer, []string{portforward.PortForwardProtocolV1Name}); err != nil {
			return
		}
		streams := make(chan httpstream.Stream, 8)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(writer, request, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		if connection == nil {
			return
		}
		defer func() { _ = connection.Close() }()
		for {
			select {
			case stream := <-streams:
				if breaks {
					return
				}
				go forwarded(request.Context(), stream)
			case <-connection.CloseChan():
				return
			}
		}
	}))
	w.t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	expect.NoError(w.t, err)
	number, err := strconv.ParseInt(port, 10, 32)
	expect.NoError(w.t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-previews"}}
	expect.Ensure(w.t, w.seed, node)
	expect.ChangeStatus(w.t, w.seed, node, func(now *corev1.Node) {
		now.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
		now.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	})
}

// forwarded serves one stream of a port-forward.
func forwarded(ctx context.Context, stream httpstream.Stream) {
	defer func() { _ = stream.Close() }()
	if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
		return
	}
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+stream.Headers().Get(corev1.PortHeader))
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(to, stream) }()
	_, _ = io.Copy(stream, to)
}

// pods are those of the Service "query": a follower's and the leader's, each ready.
func (w *served) pods() {
	w.t.Helper()
	for name, server := range map[string]*query.Server{"a-follower": w.follower, "b-leader": w.leader} {
		_, port, err := net.SplitHostPort(server.Address())
		expect.NoError(w.t, err)
		number, err := strconv.ParseInt(port, 10, 32)
		expect.NoError(w.t, err)
		expect.Create(w.t, w.seed, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name},
			Spec:       corev1.PodSpec{NodeName: "node-previews", Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
		}, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: w.platform, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "query"}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(number))}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: w.platform, Name: name},
			}},
		})
	}
}

// strangers is a TLS server with a certificate of another authority, which keeps what it is sent.
func strangers(t testing.TB) (address string, got *strings.Builder) {
	t.Helper()
	got = &strings.Builder{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_ = request.Header.Write(got)
	}))
	t.Cleanup(server.Close)
	return server.URL, got
}
