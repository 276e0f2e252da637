package charts

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/pod"
	kit "github.com/trellis-addons/trellis/test/world"
)

// programs builds both managers, and what their pods take, once.
var programs = sync.OnceValues(func() (string, error) {
	root, err := binaries.Root()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(fleet.Shared().Folder(), "programs")
	return folder, binaries.BuildOwn(context.Background(), root, folder, "./cmd/...", pod.EnterPackage)
})

// program is the path of the program that a chart runs.
func program(t *testing.T, chart string) string {
	t.Helper()
	folder, err := programs()
	expect.NoError(t, err)
	return filepath.Join(folder, Program(chart))
}

func arguments(t *testing.T, r rendering) []string {
	t.Helper()
	_, objects := render(t, r)
	return deployment(t, objects).Spec.Template.Spec.Containers[0].Args
}

var flagLine = regexp.MustCompile(`(?m)^  -([a-z-]+)`)

func TestManagersKnowTheirArguments(t *testing.T) {
	for _, r := range slices.Concat(renderings, webRenderings) {
		command := exec.CommandContext(t.Context(), program(t, r.chart), "-h")
		usage, err := command.CombinedOutput()
		if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		known := map[string]bool{}
		for _, match := range flagLine.FindAllStringSubmatch(string(usage), -1) {
			known["--"+match[1]] = true
		}
		for _, argument := range arguments(t, r) {
			if name, _, _ := strings.Cut(argument, "="); !known[name] {
				t.Errorf("%s: the manager does not know %s", r, argument)
			}
		}
	}
}

// TestManagersWorkWithTheirRights runs both managers with what the charts grant and nothing more, on one cluster that is
// master, seed and user cluster, installs and removes an add-on, and has KKP's core add-ons out of the chart's catalogue. In
// troubles of all kinds, what they tell answers each query of the charts' dashboards and alerts.
func TestManagersWorkWithTheirRights(t *testing.T) {
	connect(t)
	sources := fleet.SourcesForTest(t)
	commit(t, sources)
	kkpImage(t, sources)
	debug := fleet.Address(t)
	master := rendering{chart: "trellis-master", why: "at work", values: map[string]any{
		"standalone": map[string]any{"enabled": true, "kkpVersion": "2.31.0"},
		"sources":    map[string]any{"allowCIDRs": []any{"127.0.0.0/8"}},
		"coreCatalogue": map[string]any{
			"enabled": true, "image": map[string]any{"repository": sources.Registry + "/kkp/addons", "caSecretRef": "authority"},
		},
	}}
	seed := rendering{chart: "trellis-seed", why: "at work", values: map[string]any{
		"standalone": map[string]any{"enabled": true}, "driftInterval": "5s", "debugBindAddress": debug,
		"sources": map[string]any{"allowCIDRs": []any{"127.0.0.0/8"}},
		"agents":  map[string]any{"enabled": true, "hub": map[string]any{"server": fleet.Shared().Cluster(cluster).Config.Host}},
	}}
	c := platformClient(t)
	places := map[string]string{}
	for _, r := range []rendering{master, seed} {
		crds, objects := render(t, r)
		places[r.chart] = fleet.Address(t)
		expect.NoError(t, AskAt(objects, places[r.chart]))
		for _, object := range append(crds, objects...) {
			apply(t, c, object)
		}
	}
	layOut(t, c, sources)
	metrics := map[string]string{}
	for _, r := range []rendering{master, seed} {
		metrics[r.chart] = run(t, r, places[r.chart])
		expectCertificate(t, c, r.chart)
	}
	expectStrangersUnanswered(t, places)
	installAndRemove(t, c, func() {
		expectMoreLog(t, seed, debug)
		expectFigures(t, c, sources, metrics)
	})
	for _, r := range []rendering{master, seed} {
		expectNoRefusals(t, r)
		expectCheck(t, r, "kinds: ok\nrights: ok\nleader: ok\nwebhooks: ok\n")
	}
	killManagers()
	for _, r := range []rendering{master, seed} {
		expectCheck(t, r, "webhooks: the API server got no answer")
	}
	expectLifeWithoutWebhooks(t, c)
}

// killManagers ends every manager of these tests at once.
func killManagers() {
	for _, process := range fleet.Shared().Processes() {
		if strings.HasPrefix(process.Name(), "trellis-") {
			process.Kill()
		}
	}
}

func platformClient(t *testing.T) client.Client {
	t.Helper()
	return kit.Client(t, fleet.Shared().Cluster(cluster).Config)
}

const repository = "addons"

func commit(t *testing.T, sources *fleet.Sources) {
	t.Helper()
	files := map[string]string{
		"hello/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata: {cluster: '{{ .Cluster.Name }}'}\n",
	}
	if _, err := sources.Commit(repository, files); err != nil {
		t.Fatal(err)
	}
}

// layOut makes what an admin would: a Seed, a catalogue and the Secret with the sources' authority.
func layOut(t *testing.T, c client.Client, sources *fleet.Sources) {
	t.Helper()
	expect.Create(t, c, given.AuthoritySecret(namespace, sources.CA))
	expect.Create(t, c, given.Seed(namespace, "seed", fleet.Shared().Cluster(cluster).Kubeconfig)...)
	credentials := given.Secret(namespace, "credentials", map[string][]byte{"token": []byte("a-token")})
	expect.Create(t, c, catalogue(sources), credentials, onDigitalocean("one"))
}

func catalogue(sources *fleet.Sources) *kubermaticv1.AddonCatalogue {
	version := given.Version("1.0.0", given.Git(sources.GitURL+"/"+repository+".git", "hello"))
	version.Template.FormSpec = []kubermaticv1.FormField{{DisplayName: "Replicas", InternalName: "replicas", Type: kubermaticv1.FormNumber}}
	version.Constraints = &kubermaticv1.Constraints{KKPVersion: ">= 2.28", K8sVersion: ">= 1.30"}
	version.Source.Git.Ref = &kubermaticv1.GitRef{Branch: "main"}
	return given.Catalogue(namespace, "tools", given.Addon("hello", version))
}

// run starts a manager as a node would its Deployment's pod, and gives the address of its metrics.
func run(t *testing.T, r rendering, webhooks string) (metrics string) {
	t.Helper()
	_, objects := render(t, r)
	metrics = fleet.Address(t)
	more := []string{"--health-probe-bind-address=0", "--metrics-bind-address=" + metrics}
	more = append(more, AdmissionFlags(r.chart, namespace, webhooks)...)
	if r.chart == "trellis-seed" {
		more = append(more, "--query-bind-address=127.0.0.1:0")
	}
	path := program(t, r.chart)
	node := nodeOf(t, fleet.Shared().Cluster(cluster), platformClient(t), filepath.Dir(path))
	process, err := node.Run(t.Context(), pod.Container{
		Name: r.chart, Namespace: namespace, Spec: deployment(t, objects).Spec.Template.Spec, Program: path, Arguments: more, Log: logOf(r),
	})
	expect.NoError(t, err)
	t.Cleanup(process.Kill)
	return metrics
}

func logOf(r rendering) string { return filepath.Join(fleet.Shared().Folder(), r.chart+"-rights.log") }

// installAndRemove an add-on; meanwhile is called while it, and the core add-ons, are there.
func installAndRemove(t *testing.T, c client.Client, meanwhile func()) {
	t.Helper()
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-one"}}
	expect.Object(t, c, place, func(*corev1.Namespace) error { return nil })
	expect.Create(t, c, given.Kubeconfig(place.Name, fleet.Shared().Cluster(cluster).Kubeconfig))
	available := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: kubermaticv1.AvailableCatalogue, Namespace: place.Name}}
	expect.Object(t, c, available, func(found *kubermaticv1.AddonCatalogue) error {
		if len(found.Spec.Addons) == 0 {
			return errors.New("nothing is offered yet")
		}
		return nil
	})
	installation := given.Installation(place.Name, "hello", "hello", "hello", given.NewNamespace)
	expectMistakesRefused(t, c)
	expect.Create(t, c, installation)
	expect.HasCondition(t, c, installation, expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady))
	expectCoreAddons(t, c)
	meanwhile()
	expect.Delete(t, c, installation)
	expect.Gone(t, c, installation)
	one := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	expect.Delete(t, c, one)
	expect.Gone(t, c, one)
	expect.Gone(t, c, place)
}

// asEditor is a client of a user that may write both kinds, and no more.
func asEditor(t *testing.T) client.Client {
	t.Helper()
	c := platformClient(t)
	const user = "editor"
	expect.Create(t, c, given.UserRights(user, rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{"addoncatalogues", "addoninstallations"}, Verbs: []string{"create"},
	})...)
	config := rest.CopyConfig(fleet.Shared().Cluster(cluster).Config)
	config.Impersonate.UserName = user
	edits, err := client.New(config, client.Options{Scheme: c.Scheme()})
	expect.NoError(t, err)
	probe := given.Catalogue(namespace, "probe", given.Addon("a", kubermaticv1.AddonVersion{Version: "1"}))
	expect.Eventually(t, expect.Patience, func() error { return edits.Create(t.Context(), probe.DeepCopy(), client.DryRunAll) })
	return edits
}

// expectNoRefusals looks for calls that the API server refused for want of a right.
func expectNoRefusals(t *testing.T, r rendering) {
	t.Helper()
	text, err := os.ReadFile(logOf(r))
	if err != nil || errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("%s was refused a call: %s", r, line)
		}
	}
}
