package ocm

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values/images"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/pod"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	// addon is what upstream calls it: the agent looks for its ManagedClusterAddOn and its Lease by that name.
	addon = "helloworld"
	// cluster is the namespace of the Cluster on the hub, place that of the add-on in the user cluster.
	cluster, place = "cluster-ocm", "helloworld"
	// platformNamespace has catalogues and keys.
	platformNamespace = "kubermatic"
	// manager is who the controller is at the gate before the user cluster.
	manager = "manager"
	// staleAfter is more than the 60 to 75 s that upstream's agent takes between two renewals of its Lease, which no flag changes.
	staleAfter = 80 * time.Second
)

// platform is a hub and one user cluster.
type platform struct {
	t       *testing.T
	hub     *hub
	seed    client.WithWatch
	user    client.WithWatch
	sources *fleet.Sources
	calls   *gate.Gate
	node    *pod.Node
	// manager runs the controller.
	manager   *kit.Manager
	agentPath string
	// ahead is how many seconds the controller's keeper of credentials is ahead.
	ahead atomic.Int64
}

// newPlatform lays out what there is before the controller starts. The rules of a list are what agents may have.
func newPlatform(t *testing.T, rules ...rbacv1.PolicyRule) *platform {
	t.Helper()
	made, err := programs()
	expect.NoError(t, err)
	seed, user := fleet.Shared().Cluster(hubName), fleet.Shared().Cluster(userName)
	p := &platform{
		t: t, hub: newHub(t, seed), seed: kit.Client(t, seed.Config), user: kit.Client(t, user.Config),
		sources: fleet.SourcesForTest(t), calls: gate.New(t, user), agentPath: made.agent,
	}
	p.node = &pod.Node{Fleet: fleet.Shared(), Cluster: user, Client: p.user, Folder: disk.TempDir(t), Enter: made.enter}
	t.Cleanup(p.node.Wait)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), seed.Config, made.kinds))
	managed := &unstructured.Unstructured{}
	managed.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
	managed.SetKind("ManagedClusterAddOn")
	managed.SetNamespace(cluster)
	managed.SetName(addon)
	expect.NoError(t, unstructured.SetNestedMap(managed.Object, map[string]any{}, "spec"))
	kit.UserCluster(t, p.seed, "ocm", p.calls.Kubeconfig(t, manager))
	expect.Create(t, p.seed, kit.Namespace(platformNamespace), managed, given.AgentRights("agents", rules...), given.AuthoritySecret(platformNamespace, p.sources.CA))
	return p
}

// offer puts the add-on into the merged catalogue, as the distributor would. Its agent asks for the rules.
func (p *platform) offer(rules ...kubermaticv1.AccessRule) {
	p.t.Helper()
	files, err := filepath.Glob("testdata/helloworld/*.yaml")
	expect.NoError(p.t, err)
	manifests := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		expect.NoError(p.t, err)
		manifests[filepath.Base(file)] = string(content)
	}
	if _, err := p.sources.Commit(addon, manifests); err != nil {
		p.t.Fatal(err)
	}
	version := given.Version("1.3.0", given.Git(p.sources.GitURL+"/"+addon+".git", ""))
	version.Template.Access = []kubermaticv1.Access{{Name: "hub", Lifetime: &metav1.Duration{Duration: time.Hour}, Rules: rules}}
	version.Template.Health = &kubermaticv1.HealthCheck{
		Mode: kubermaticv1.HealthByLease, Lease: &kubermaticv1.HealthLease{StaleAfter: &metav1.Duration{Duration: staleAfter}},
	}
	digest, err := catalogue.Digest(version)
	expect.NoError(p.t, err)
	made := given.Merged(platformNamespace, kubermaticv1.CatalogueCustom, given.Addon(addon, version))
	origins := map[string]catalogue.Origin{version.Version: {Digest: digest, Catalogue: "test"}}
	expect.Create(p.t, p.seed, given.WithOrigins(made, origins))
}

// start runs the controller until the end of the test.
func (p *platform) start() {
	p.t.Helper()
	made := kit.Seed(p.t, fleet.Shared().Cluster(hubName).Config, platformNamespace)
	kinds := contents.Kinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
	content, err := store.New(store.Options{Folder: disk.TempDir(p.t), Kinds: kinds, Interval: time.Minute})
	expect.NoError(p.t, err)
	key, templates := []byte("key"), gotemplate.New()
	dependencies, err := wiring.AddonInstallation(made.Context(), made.Seed, mergedcatalogue.New(logr.Discard()), wiring.InstallationParts{
		Namespace: platformNamespace, SourceKinds: kinds, Store: content, Images: images.Rules{},
		Records: wiring.Records(made, key), InputsKey: key,
		Renders: kept.New(kept.Options{
			Methods: map[string]render.Renderer{string(kubermaticv1.MethodGoTemplate): templates}, Values: templates,
		}),
		Agents: &access.Options{Hub: func() (access.Hub, error) { return p.hub.address, nil }},
		Options: addoninstallation.Options{
			CatalogueNamespace: platformNamespace, DriftInterval: 10 * time.Minute, OrderTimeout: 10 * time.Minute,
			Limits: fairqueue.Limits{Workers: 2},
		},
	})
	expect.NoError(p.t, err)
	dependencies.Access = ahead{dependencies.Access, &p.ahead}
	made.SetUp(addoninstallation.New(dependencies))
	made.Run()
	p.manager = made
}

// ahead is a keeper of credentials whose clock is ahead by so many seconds.
type ahead struct {
	addoninstallation.Access
	seconds *atomic.Int64
}

func (a ahead) Keep(
	ctx context.Context, holder access.Holder, asked []kubermaticv1.Access, memory *access.Memory, now time.Time,
) ([]access.Status, error) {
	return a.Access.Keep(ctx, holder, asked, memory, now.Add(time.Duration(a.seconds.Load())*time.Second))
}
