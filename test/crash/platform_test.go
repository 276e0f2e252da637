package crash_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

// platform is a seed with a catalogue, and a user cluster that stands for those of all Clusters, both behind gates.
type platform struct {
	catalogue          string
	sources            *fleet.Sources
	seed, user         client.Client
	seedGate, userGate *gate.Gate
	// pull is the name of the platform's pull Secret; "": there is none.
	pull string
	// hub is where agents reach the seed; the zero one: none gets a credential.
	hub access.Hub
	// later is by how much it is later for credentials, in nanoseconds, with controllers that start from now on.
	later atomic.Int64
	// requests are those for certificates that were made.
	requests    requests
	userClients kubernetes.Interface
	userDynamic dynamic.Interface
}

var platforms atomic.Int32

func newPlatform(t testing.TB) *platform {
	t.Helper()
	return newPlatformOn(t, fleet.Shared().Cluster(seedName))
}

func newPlatformOn(t testing.TB, seed *fleet.Cluster) *platform {
	t.Helper()
	user := fleet.Shared().Cluster(userName)
	expect.NoError(t, fleet.InstallCRDs(t.Context(), seed.Config, fleet.CRDs(t)...))
	clients, err := kubernetes.NewForConfig(user.Config)
	expect.NoError(t, err)
	resources, err := dynamic.NewForConfig(user.Config)
	expect.NoError(t, err)
	p := &platform{
		catalogue: fmt.Sprintf("catalogue-%d", platforms.Add(1)), sources: fleet.SourcesForTest(t),
		seed: newClient(t, seed), user: newClient(t, user), seedGate: gate.New(t, seed), userGate: gate.New(t, user),
		userClients: clients, userDynamic: resources,
	}
	expect.Create(t, p.seed, world.Namespace(p.catalogue), given.AuthoritySecret(p.catalogue, p.sources.CA))
	return p
}

func newClient(t testing.TB, cluster *fleet.Cluster) client.Client {
	t.Helper()
	made, err := client.New(cluster.Config, client.Options{Scheme: wiring.Scheme()})
	expect.NoError(t, err)
	return client.WithFieldOwner(made, "test")
}

// publish makes the merged catalogue of an add-on.
func (p *platform) publish(t testing.TB, name string, versions ...kubermaticv1.AddonVersion) {
	t.Helper()
	expect.Create(t, p.seed, given.Merged(p.catalogue, kubermaticv1.CatalogueCustom, given.Addon(name, versions...)))
}

// templates is a version made of the files in a folder of a repository.
func (p *platform) templates(version, repository, path string) kubermaticv1.AddonVersion {
	return given.Version(version, given.Git(p.sources.GitURL+"/"+repository+".git", path))
}

// chart is a version made of a chart of that version.
func (p *platform) chart(version, name string) kubermaticv1.AddonVersion {
	return given.Version(version, given.Chart(p.sources.ChartsURL, name, version))
}

// subject is one installation in a cluster of its own, and everything of it is named after it: its Cluster, its target
// namespace, what it has of cluster-scoped objects. The name is also by what gates know the cluster's client.
type subject struct {
	*platform
	name, story string
	cluster     *kkpv1.Cluster
	// before are the UIDs of what the user cluster had when the story began.
	before map[ownership.Key]types.UID
	// adopts: its installation takes over what is there.
	adopts bool
	// agent is what its agent had when the story began.
	agent previousAgent
}

var subjects atomic.Int32

// newSubject makes the Cluster. Names are such as occur nowhere else, so that they can be taken out of what is compared.
func (p *platform) newSubject(t testing.TB, story string) *subject {
	t.Helper()
	s := &subject{platform: p, story: story, name: fmt.Sprintf("k%04dz", subjects.Add(1))}
	s.cluster = world.UserCluster(t, p.seed, s.name, p.userGate.Kubeconfig(t, s.name), func(made *kkpv1.Cluster) {
		made.Status.Versions.ControlPlane = "v" + fleet.Shared().Cluster(userName).Release
	})
	return s
}

func (s *subject) namespace() string { return "cluster-" + s.name }

func (s *subject) owner() ownership.Owner {
	return ownership.Owner{ClusterUID: s.cluster.UID, Installation: s.name}
}

// controller starts a process that works on this installation alone.
func (s *subject) controller(t testing.TB) *fleet.Process {
	t.Helper()
	return s.start(t, s.name, map[string]string{labelCase: s.name})
}

// start has a process work on some installations. Gates know it by its name.
func (p *platform) start(t testing.TB, name string, installations map[string]string) *fleet.Process {
	t.Helper()
	config := p.seedGate.Config(name)
	return startController(t, name, assignment{
		Server: config.Host, CA: config.CAData, Token: config.BearerToken, Catalogue: p.catalogue, Installations: installations,
		PullSecret: p.pull, Hub: p.hub, Later: time.Duration(p.later.Load()),
	})
}

// install asks for an add-on in that version.
func (s *subject) install(t testing.TB, addon, version string) {
	t.Helper()
	s.installAs(t, s.name, addon, version)
}

func (s *subject) installAs(t testing.TB, name, addon, version string) {
	t.Helper()
	made := given.Installation(s.namespace(), name, addon, name, given.In(version), given.NewNamespace, given.Values(fmt.Sprintf(`{"name":%q}`, s.name)))
	made.Labels = map[string]string{labelStory: s.story, labelCase: s.name}
	made.Annotations = map[string]string{kubermaticv1.AnnotationAdopt: strconv.FormatBool(s.adopts)}
	expect.Create(t, s.seed, made)
}

func (s *subject) installation() *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.name}}
}

// want asks for another version.
func (s *subject) want(t testing.TB, version string) {
	t.Helper()
	expect.Merge(t, s.seed, s.installation(), fmt.Appendf(nil, `{"spec":{"addonRef":{"version":%q}}}`, version))
}

func (s *subject) remove(t testing.TB) {
	t.Helper()
	expect.Delete(t, s.seed, s.installation())
}

// anonymous takes out of a text what differs from subject to subject. YAML inside of JSON quotes an ID that would read as a number.
func (s *subject) anonymous(text string) string {
	id := s.owner().ID()
	return strings.NewReplacer(
		s.name, "NAME", s.owner().LongID(), "OWNER", `\"`+id+`\"`, "OWNER", id, "OWNER", string(s.cluster.UID), "CLUSTER",
		s.copiesOwner().LongID(), "COPIES", `\"`+s.copiesOwner().ID()+`\"`, "COPIES", s.copiesOwner().ID(), "COPIES",
		s.siblingOwner().LongID(), "SIBLING", `\"`+s.siblingOwner().ID()+`\"`, "SIBLING", s.siblingOwner().ID(), "SIBLING",
	).Replace(text)
}
