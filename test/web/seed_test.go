package web_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	clusters "github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "seed", Controllers: true}, fleet.ClusterOptions{Name: "other"})
}

// seed is a seed, which is its own user cluster and master, with the controller of installations and the query endpoint of a manager.
type seed struct {
	t testing.TB
	client.Client
	// namespace is that of the test's Cluster, platform has merged catalogues, and space the add-on's objects.
	name, namespace, platform, space string
	sources                          *fleet.Sources
	endpoint                         *query.Server
	authority                        string
}

// newSeed starts the manager for the Cluster of a name.
func newSeed(t testing.TB, name string) *seed {
	t.Helper()
	config := fleet.Shared().Cluster("seed").Config
	w := &seed{
		t: t, Client: world.Client(t, config), name: name, namespace: "cluster-" + name, platform: "platform-" + name, space: "web-" + name,
		sources: fleet.SourcesForTest(t),
	}
	folders, err := fleet.CRDFolders()
	expect.NoError(t, err)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, append(folders, "../../pkg/clusters/cluster/testdata/kkp")...))
	world.UserCluster(t, w, name, fleet.Shared().Cluster("seed").Kubeconfig)
	expect.Create(t, w, world.Namespace(w.platform), given.AuthoritySecret(w.platform, w.sources.CA))
	made := world.SeedOf(t, config, w.platform, clusters.OnlyKKP, func(options *manager.Options) {
		options.Logger = logr.Discard()
		options.Cache.ByObject[&v1.AddonInstallation{}] = cache.ByObject{Namespaces: map[string]cache.Config{w.namespace: {}}}
	})
	marks := mergedcatalogue.New(logr.Discard())
	dependencies := w.dependencies(made, marks)
	previews := addoninstallation.NewPreviewer(dependencies)
	made.SetUp(addoninstallation.New(dependencies))
	key := client.ObjectKey{Namespace: w.platform, Name: query.CertificateSecret}
	own := query.NewCertificate(key, []string{"localhost", "127.0.0.1"}, nil)
	own.Use(w, w)
	held, err := wiring.HeldForQueries(made.Context(), made)
	expect.NoError(t, errors.Join(err, made.Add(own)))
	rows, bindings, listed := query.NewRows(), query.NewBindings(), query.NewCatalogue(w.platform, marks, logr.Discard())
	expect.NoError(t, errors.Join(rows.Watch(made.Context(), made.GetCache()), bindings.Watch(made.Context(), held),
		listed.Watch(made.Context(), made.GetCache())))
	w.endpoint = query.New(query.Dependencies{
		Catalogue: listed, Clusters: made.Clusters, Installations: made.GetClient(), Certificates: own, Previews: previews,
		Elected: made.Elected(), Rows: rows, Bindings: bindings, Available: held,
		Reviews: query.NewReviews(w, query.ReviewOptions{TTL: time.Millisecond}),
	}, query.Options{Address: "127.0.0.1:0", CatalogueNamespace: w.platform, Logger: logr.Discard()})
	expect.NoError(t, made.Add(w.endpoint))
	made.Run()
	expect.Eventually(t, expect.Patience, func() error { return w.endpoint.Ready(nil) })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: query.CertificateSecret}}
	expect.Object(t, w, secret, func(*corev1.Secret) error { return nil })
	w.authority = string(secret.Data["ca.crt"])
	return w
}

func (w *seed) dependencies(made *world.Manager, marks *mergedcatalogue.Marks) addoninstallation.Dependencies {
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

// publish offers versions 1.0.0 and 2.0.0 of an add-on with one ConfigMap, and a form with a number of replicas.
func (w *seed) publish(addon string, change ...func(*v1.Addon)) {
	w.t.Helper()
	made := given.Addon(addon)
	made.DisplayName, made.Description, made.SupportedBy = "Web server", "Serves pages of a team.", "Team Web"
	made.TargetNamespace, made.CreateNamespace = w.space, true
	files := map[string]string{}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		files[version+"/settings.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: " + w.space + "}\n" +
			"data: {version: '" + version + "', replicas: '{{ .Variables.replicas }}', mode: '{{ .Variables.mode }}'}\n"
	}
	_, err := w.sources.Commit(addon, files)
	expect.NoError(w.t, err)
	origins := map[string]catalogue.Origin{}
	for _, version := range []string{"2.0.0", "1.0.0"} {
		one := given.Version(version, given.Git(w.sources.GitURL+"/"+addon+".git", version))
		one.Template.FormSpec = []v1.FormField{
			{
				DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormInteger, HelpText: "How many pods serve pages.", Required: true,
				Default: &runtime.RawExtension{Raw: []byte("1")},
			},
			{DisplayName: "Mode", InternalName: "mode", Type: v1.FormSelect, Options: []string{"fast", "safe"}},
		}
		made.Versions = append(made.Versions, one)
	}
	for _, one := range change {
		one(&made)
	}
	for _, version := range made.Versions {
		digest, err := catalogue.Digest(version)
		expect.NoError(w.t, err)
		origins[version.Version] = catalogue.Origin{Digest: digest, Catalogue: "tools"}
	}
	expect.Create(w.t, w, given.WithOrigins(given.Merged(w.platform, v1.CatalogueCustom, made), origins))
	available := given.Available(client.ObjectKey{Namespace: w.namespace, Name: v1.AvailableCatalogue})
	offered := given.Addon(addon, v1.AddonVersion{Version: "2.0.0"}, v1.AddonVersion{Version: "1.0.0"})
	offered.TargetNamespace, offered.CreateNamespace = made.TargetNamespace, true
	available.Spec.Addons = []v1.Addon{offered}
	expect.Create(w.t, w, available)
}

// user is the token of a user with the shipped role cluster-user in one namespace, and no other right.
func (w *seed) user(namespace, name string) string {
	w.t.Helper()
	root, err := binaries.Root()
	expect.NoError(w.t, err)
	text, err := os.ReadFile(filepath.Join(root, "charts", "trellis-seed", "templates", "roles.yaml"))
	expect.NoError(w.t, err)
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if about, list, isRole := strings.Cut(document, "\nrules:\n"); isRole && strings.Contains(about, `"cluster-user"`) {
			var found []rbacv1.PolicyRule
			expect.NoError(w.t, yaml.Unmarshal([]byte(list), &found))
			rules = append(rules, found...)
		}
	}
	return w.userWith(namespace, name, rules...)
}

// rulesOfGuide are those of the ClusterRole that the guide shows, as enough for a user of a cluster.
func rulesOfGuide(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	root, err := binaries.Root()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "guides", "web.md"))
	expect.NoError(t, err)
	var role rbacv1.ClusterRole
	for _, block := range markdown.Read(text).Blocks {
		if block.Info == "yaml" && strings.Contains(block.Text, "kind: ClusterRole\n") {
			expect.NoError(t, yaml.UnmarshalStrict([]byte(block.Text), &role))
		}
	}
	if len(role.Rules) == 0 {
		t.Fatal("docs/guides/web.md shows no ClusterRole")
	}
	return role.Rules
}

// userWith is the token of a user with these rights in one namespace.
func (w *seed) userWith(namespace, name string, rules ...rbacv1.PolicyRule) string {
	w.t.Helper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: named}
	expect.Create(w.t, w, account)
	if len(rules) > 0 {
		expect.Create(w.t, w, &rbacv1.Role{ObjectMeta: named, Rules: rules}, &rbacv1.RoleBinding{
			ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: named.Name}},
		})
	}
	return expect.Token(w.t, w, account)
}

// admin is the token of an admin.
func admin() string { return fleet.Shared().Cluster("seed").Config.BearerToken }

// named is an installation of the test's Cluster.
func (w *seed) named(name string) *v1.AddonInstallation {
	return &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}
