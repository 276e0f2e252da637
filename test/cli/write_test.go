package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// clusterUser is a terminal of a user with the shipped role cluster-user in one namespace, and nothing else.
func clusterUser(t testing.TB, seed client.Client, namespace string) *terminal {
	t.Helper()
	root, err := binaries.Root()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "charts", "trellis-seed", "templates", "roles.yaml"))
	expect.NoError(t, err)
	var rules []rbacv1.PolicyRule
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		about, list, isRole := strings.Cut(document, "\nrules:\n")
		if !isRole || !strings.Contains(about, `"cluster-user"`) {
			continue
		}
		var found []rbacv1.PolicyRule
		expect.NoError(t, yaml.Unmarshal([]byte(list), &found))
		rules = append(rules, found...)
	}
	if len(rules) != 3 {
		t.Fatalf("the chart's role cluster-user gathers %d rules: %v", len(rules), rules)
	}
	readable(t, seed)
	return as(t, user(t, seed, namespace, rules...))
}

// answering is a terminal whose caller answers every question.
func (c *terminal) answering(text string) *terminal {
	changed := *c
	changed.input = strings.NewReader(text)
	return &changed
}

// shop is a cluster that is offered two add-ons, one version of which does not fit.
func shop(t testing.TB, name string) (client.Client, string) {
	t.Helper()
	return cluster(t, name, func(made *v1.AddonCatalogue) {
		prometheus := given.Addon("prometheus", v1.AddonVersion{Version: "2.0.0"}, v1.AddonVersion{Version: "1.2.0"}, v1.AddonVersion{Version: "1.1.0"})
		prometheus.TargetNamespace = "monitoring"
		made.Spec.Addons = []v1.Addon{given.Addon("podinfo", v1.AddonVersion{Version: "6.0.0"}), prometheus}
		made.Status.ExcludedCount = 2
		made.Status.Excluded = []v1.ExcludedVersion{
			{Addon: "prometheus", Version: "3.0.0", Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes >= 1.38; it is 1.36.3"},
			{Addon: "cilium", Version: "1.17.0", Reason: v1.ExcludedCore, Message: "core add-ons are not offered"},
		}
	})
}

func read(t testing.TB, seed client.Client, namespace, name string) *v1.AddonInstallation {
	t.Helper()
	found := &v1.AddonInstallation{}
	expect.Get(t, seed, client.ObjectKey{Namespace: namespace, Name: name}, found)
	return found
}

// Red when something is written without an answer, something else than shown is written, or a right beyond the role is needed.
func TestInstallShowsAsksAndCreates(t *testing.T) {
	seed, namespace := shop(t, "install")
	shell := clusterUser(t, seed, namespace)
	file := filepath.Join(t.TempDir(), "values.yaml")
	expect.NoError(t, os.WriteFile(file, []byte("replicas: 1\nargs: [a, b]\nretention: {days: 3}\n"), 0o600))
	call := []string{
		"install", "prometheus@1.x", "--cluster", "install", "--values", file, "--set", "replicas=2", "--set", "args[1]=c", "--set", "none=null",
		"--set-string", "retention.size=10", "--create-namespace",
	}
	shell.run(call...).fails(t, cli.ExitRefused, "--yes")
	got := shell.answering("n\n").run(call...)
	golden.Match(t, "testdata/install-asks.txt", got.out+got.err)
	if got.code != cli.ExitRefused {
		t.Errorf("exit code %d", got.code)
	}
	for _, side := range []string{"client", "server"} {
		golden.Match(t, "testdata/install-"+side+".txt", shell.run(append(call, "--dry-run="+side)...).works(t).out)
	}
	if err := seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "prometheus"}, &v1.AddonInstallation{}); !apierrors.IsNotFound(err) {
		t.Fatalf("it is created without an answer: %v", err)
	}
	if got := shell.answering("y\n").run(call...).works(t); got.out != "addoninstallation.kubermatic.k8c.io/prometheus created\n" {
		t.Errorf("output %q", got.out)
	}
	spec := read(t, seed, namespace, "prometheus").Spec
	want := `{"args":["a","c"],"none":null,"replicas":2,"retention":{"days":3,"size":"10"}}`
	if string(spec.Values.Raw) != want || spec.AddonRef.Version != "1.x" || !spec.CreateNamespace {
		t.Errorf("got %s in %q, want %s", spec.Values.Raw, spec.AddonRef.Version, want)
	}
	shell.runWith("a: {b: text}", "install", "podinfo", "-n", namespace, "--name", "second", "--target-namespace", "apps", "--release-name", "web",
		"--values", "-", "-y").works(t)
	spec = read(t, seed, namespace, "second").Spec
	if string(spec.Values.Raw) != `{"a":{"b":"text"}}` || spec.TargetNamespace != "apps" || spec.ReleaseName != "web" {
		t.Errorf("got %+v", spec)
	}
}

// Red when a cluster of Cluster API does not get its own installation.
func TestInstallNamesTheClusterOutsideOfKKP(t *testing.T) {
	seed := world.Client(t, sharedSeed().Config)
	expect.Create(t, seed, world.Namespace("herd"))
	offered(t, seed, client.ObjectKey{Namespace: "herd", Name: "available-one"})
	on(t, "seed").run("install", "some", "--cluster", "herd/one", "--target-namespace", "a", "--yes").works(t)
	if got := read(t, seed, "herd", "one.some").Spec.ClusterName; got != "one" {
		t.Errorf("it is for cluster %q", got)
	}
	on(t, "seed").run("pause", "some", "--cluster", "herd/one").works(t)
	on(t, "seed").run("upgrade", "some", "--cluster", "herd/one", "--version", "9", "--yes").fails(t, cli.ExitNotFound, "it has 1")
	offered(t, seed, client.ObjectKey{Namespace: "herd", Name: "available-two"})
	on(t, "seed").run("pause", "one.some", "--cluster", "herd/two").fails(t, cli.ExitNotFound, `no installation "one.some" of this cluster`)
}

// Red when a wrong installation is not refused with its reason and its exit code in one line, or leaves something behind.
func TestInstallRefusesInOneLine(t *testing.T) {
	seed, namespace := shop(t, "strict")
	expect.Create(t, seed, given.Installation(namespace, "taken", "podinfo", "apps"))
	folder := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(folder, name)
		expect.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	shell := clusterUser(t, seed, namespace)
	for _, test := range []struct {
		why       string
		arguments []string
		code      int
		says      string
	}{
		{"a misspelt add-on", []string{"promethus"}, cli.ExitNotFound, `did you mean "prometheus"?`},
		{"an add-on that does not fit", []string{"cilium"}, cli.ExitNo, "core add-ons are not offered"},
		{"a version that does not fit", []string{"prometheus@3.0.0"}, cli.ExitNo, "needs Kubernetes >= 1.38"},
		{"a range that does not fit", []string{"prometheus@>=3"}, cli.ExitNo, `version "3.0.0" of add-on "prometheus" does not fit`},
		{"an unknown version", []string{"prometheus@1.3.0"}, cli.ExitNotFound, "it has 2.0.0, 1.2.0, 1.1.0"},
		{"a broken range", []string{"prometheus@>=x.y"}, cli.ExitUsage, "1.x"},
		{"no version", []string{"prometheus@"}, cli.ExitUsage, "@"},
		{"a hostile add-on", []string{"a\x1b[2J/../b"}, cli.ExitUsage, "not a valid name of an add-on"},
		{"a hostile name", []string{"podinfo", "--name", "../a\x1b[2J"}, cli.ExitUsage, "not a valid name of an installation"},
		{"a missing file", []string{"podinfo", "-f", filepath.Join(folder, "none")}, cli.ExitUsage, "no such file"},
		{"no YAML", []string{"podinfo", "-f", write("broken", "a: [b")}, cli.ExitUsage, "broken"},
		{"a list", []string{"podinfo", "-f", write("list", "[a]")}, cli.ExitUsage, "not a map"},
		{"a large file", []string{"podinfo", "-f", write("large", strings.Repeat("#", 256<<10+1))}, cli.ExitUsage, "256 KiB"},
		{"an endless file", []string{"podinfo", "-f", "/dev/zero"}, cli.ExitUsage, "256 KiB"},
		{"deep values", []string{"podinfo", "--set", "a=" + strings.Repeat("[", 40)}, cli.ExitUsage, "--set a"},
		{"a set without a value", []string{"podinfo", "--set", "replicas"}, cli.ExitUsage, "replicas=2"},
		{"a broken path", []string{"podinfo", "--set", "a..b=1"}, cli.ExitUsage, "a..b"},
		{"a path through a text", []string{"podinfo", "--set", "a=b", "--set", "a.c=1"}, cli.ExitUsage, "set the whole value"},
		{"a reserved key", []string{"podinfo", "--set", "kkp.a=1"}, cli.ExitUsage, "reserved"},
		{"a name in use", []string{"prometheus", "--name", "taken"}, cli.ExitRefused, `of add-on "podinfo"`},
		{"an installation that exists", []string{"podinfo", "--name", "taken"}, cli.ExitRefused, "kubectl addons upgrade"},
		{"a name that the API server refuses", []string{"podinfo", "--release-name", strings.Repeat("a", 60)}, cli.ExitRefused, "spec.releaseName"},
		{"an unknown dry run", []string{"podinfo", "--dry-run", "all"}, cli.ExitUsage, "client or server"},
		{"a table of an object", []string{"podinfo", "--dry-run", "client", "-o", "wide"}, cli.ExitUsage, "yaml or json"},
		{"no time to wait", []string{"podinfo", "--timeout", "0s"}, cli.ExitUsage, "--timeout"},
		{"another cluster", []string{"podinfo", "--cluster", "theirs"}, cli.ExitForbidden, `get addoncatalogues.kubermatic.k8c.io in namespace "cluster-theirs"`},
	} {
		t.Run(test.why, func(t *testing.T) {
			got := shell.run(append([]string{"install", "--yes", "--cluster", "strict"}, test.arguments...)...)
			got.fails(t, test.code, test.says)
			if strings.Contains(got.err, "\x1b") {
				t.Errorf("a control character is printed: %q", got.err)
			}
		})
	}
	on(t, "other").run("install", "podinfo", "--cluster", "strict", "--yes").fails(t, cli.ExitContext, "--context")
	shell.answering("y").run("install", "podinfo", "--cluster", "strict", "-f", "-").fails(t, cli.ExitUsage, "--yes")
	_, readable := shop(t, "readable")
	reader := as(t, user(t, seed, readable, rbacv1.PolicyRule{
		APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"addoninstallations", "addoncatalogues"}, Verbs: []string{"get", "list"},
	}))
	reader.run("install", "podinfo", "--cluster", "readable", "--yes").
		fails(t, cli.ExitForbidden, `create addoninstallations.kubermatic.k8c.io in namespace "cluster-readable"`)
	var all v1.AddonInstallationList
	expect.List(t, seed, &all, client.InNamespace(namespace))
	if len(all.Items) != 1 {
		t.Errorf("there are %d installations", len(all.Items))
	}
}

// Red when an add-on is refused that the catalogue may have left out, since the names of all are too long.
func TestACatalogueThatIsCutRefusesNothing(t *testing.T) {
	cluster(t, "cut", func(made *v1.AddonCatalogue) {
		made.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonSelected,
			LastTransitionTime: metav1.Now(), Message: "7 versions " + catalogue.NotListed + ", since names take at most 256 KiB"}}
	})
	shell := on(t, "seed")
	for _, wanted := range []string{"other", "some@2", "some@>=2"} {
		shell.run("install", wanted, "--cluster", "cut", "--dry-run", "client").works(t)
	}
}

// Red when a value that the form refuses is not found before the write, or the error has the value.
func TestValuesAreCheckedAgainstTheForm(t *testing.T) {
	seed, namespace := shop(t, "form")
	expect.Ensure(t, seed, world.Namespace("kubermatic"))
	version := given.Version("6.0.0", given.Git("https://git.example/a", ""))
	version.Template.FormSpec = []v1.FormField{
		{DisplayName: "Size", InternalName: "size", Type: v1.FormSelect, Options: []string{"small", "large"}, Required: true},
		{DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormInteger},
	}
	expect.Create(t, seed, given.Merged("kubermatic", v1.CatalogueCustom, given.Addon("podinfo", version)))
	shell := on(t, "seed")
	call := []string{"install", "podinfo@6.0.0", "--cluster", "form", "--target-namespace", "a", "--yes"}
	shell.run(append(call, "--set", "size=huge-secret")...).fails(t, cli.ExitRefused, `field "Size" (size) must be one of ["small" "large"]`)
	shell.run(call...).fails(t, cli.ExitRefused, "(size) is required")
	shell.run(append(call, "--set", "size=small", "--set-string", "replicas=2")...).fails(t, cli.ExitRefused, "(replicas) must be a whole number")
	if got := shell.run(append(call, "--set", "size=huge-secret")...); strings.Contains(got.err, "secret") {
		t.Errorf("the error has the value: %q", got.err)
	}
	shell.run(append(call, "--set", "size=small")...).works(t)
	shell.run("upgrade", "podinfo", "-n", namespace, "--set", "size=tiny", "--yes").fails(t, cli.ExitRefused, "(size) must be one of")
}

// meanwhile answers a question after another client did something.
type meanwhile struct{ does func() }

func (m meanwhile) Read(into []byte) (int, error) {
	m.does()
	return copy(into, "y\n"), io.EOF
}

// Red when a value that is not named changes, old and new are not shown, or a change of another client is overwritten.
func TestUpgradeChangesWhatItShows(t *testing.T) {
	seed, namespace := shop(t, "upgrade")
	shell := clusterUser(t, seed, namespace)
	inState(t, seed, given.Installation(namespace, "prometheus", "prometheus", "monitoring", given.In("1.1.0"),
		given.Values(`{"replicas":2,"image":{"tag":"a","null":null},"args":["x"]}`), func(made *v1.AddonInstallation) {
			made.Spec.AddonRef.Digest = "sha256:" + strings.Repeat("a", 64)
		}), ready, at("1.1.0"))
	upgrade := func(arguments ...string) []string {
		return append([]string{"upgrade", "prometheus", "--cluster", "upgrade"}, arguments...)
	}
	got := shell.answering("y\n").run(upgrade("--version", "1.2.0", "--set", "replicas=3", "--set-string", "image.digest=b")...).works(t)
	golden.Match(t, "testdata/upgrade-asks.txt", got.out+got.err)
	now := read(t, seed, namespace, "prometheus")
	want := `{"args":["x"],"image":{"digest":"b","null":null,"tag":"a"},"replicas":3}`
	if string(now.Spec.Values.Raw) != want || now.Spec.AddonRef != (v1.AddonReference{Name: "prometheus", Version: "1.2.0"}) {
		t.Errorf("got %+v with %s, want %s", now.Spec.AddonRef, now.Spec.Values.Raw, want)
	}
	shell.run(upgrade("--version", "1.2.0", "--set", "replicas=3", "--yes")...).fails(t, cli.ExitNo, "nothing changes")
	shell.run(upgrade("--set", "replicas=3")...).fails(t, cli.ExitRefused, "--yes")
	shell.run(upgrade("--version", "1.3.0", "--yes")...).fails(t, cli.ExitNotFound, "it has 2.0.0")
	shell.run(upgrade("--version", "3.0.0", "--yes")...).fails(t, cli.ExitNo, "needs Kubernetes >= 1.38")
	shell.run(upgrade("--version", "9.9", "--reset-values", "--reuse-values", "--yes")...).fails(t, cli.ExitUsage, "reset-values")
	shell.run("upgrade", "prometheu", "--cluster", "upgrade", "--version", "2.0.0", "--yes").fails(t, cli.ExitNotFound, `did you mean "prometheus"?`)

	expect.ChangeStatus(t, seed, now, func(now *v1.AddonInstallation) { now.Status.Version = "1.2.0" })
	shell.run(upgrade("--version", "1.1.0", "--yes")...).fails(t, cli.ExitRefused, "--allow-downgrade")
	shell.run(upgrade("--version", "1.1.0", "--allow-downgrade", "--yes", "--reset-values")...).works(t)
	now = read(t, seed, namespace, "prometheus")
	if now.Annotations[v1.AnnotationAllowDowngrade] != "true" || now.Spec.AddonRef.Version != "1.1.0" || now.Spec.Values != nil {
		t.Errorf("got %v, %+v", now.Annotations, now.Spec)
	}

	raced := *shell
	raced.input = meanwhile{func() {
		expect.Change(t, seed, read(t, seed, namespace, "prometheus"), func(now *v1.AddonInstallation) {
			now.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"theirs":1}`)}
		})
	}}
	if got := raced.run(upgrade("--set", "ours=1")...); got.code != cli.ExitFailed || !strings.Contains(got.err, "another client changed the object") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	if now = read(t, seed, namespace, "prometheus"); string(now.Spec.Values.Raw) != `{"theirs":1}` {
		t.Errorf("the other client's values are lost: %s", now.Spec.Values.Raw)
	}
}

// Red when an installation that others own is changed or removed, or the error does not say who owns it.
func TestOthersOwnCoreAddonsAndThoseOfSets(t *testing.T) {
	seed, namespace := shop(t, "owned")
	expect.Create(t, seed, given.Installation(namespace, "core", "prometheus", "monitoring", given.Core),
		given.Installation(namespace, "fleet", "prometheus", "fleet", func(made *v1.AddonInstallation) {
			made.Labels = map[string]string{v1.LabelSet: "everywhere"}
		}))
	shell := clusterUser(t, seed, namespace)
	for name, says := range map[string]string{"core": "custom-core-addons", "fleet": `AddonSet "everywhere"`} {
		for _, call := range [][]string{
			{"uninstall", name, "--yes"}, {"upgrade", name, "--version", "2.0.0", "--yes"}, {"upgrade", name, "--allow-downgrade", "--yes"},
		} {
			shell.run(append(call, "--cluster", "owned")...).fails(t, cli.ExitRefused, says)
		}
		shell.run("upgrade", name, "--cluster", "owned", "--set", "a=1", "--yes").works(t)
	}
	shell.run("pause", "core", "-n", namespace).fails(t, cli.ExitRefused, "core add-on")
	shell.run("adopt", "fleet", "-n", namespace, "--yes").fails(t, cli.ExitRefused, `AddonSet "everywhere"`)
	shell.run("pause", "fleet", "-n", namespace).works(t)
}

// Red when a removal does not say what it removes, removes without an answer, or ignores a flag.
func TestUninstallRemoves(t *testing.T) {
	seed, namespace := shop(t, "leaving")
	shell := clusterUser(t, seed, namespace)
	for _, name := range []string{"one", "two"} {
		inState(t, seed, given.Installation(namespace, name, "podinfo", name, func(made *v1.AddonInstallation) {
			made.Finalizers = []string{"tests.example/hold"}
		}), ready, at("6.0.0"), func(made *v1.AddonInstallation) {
			made.Status.Objects = &v1.ObjectCounts{Total: 12}
			made.Status.LastApplied = &v1.AppliedState{VolumeClaims: 1}
		})
	}
	call := []string{"uninstall", "one", "two", "--cluster", "leaving", "--orphan", "--skip-hooks"}
	shell.run(call...).fails(t, cli.ExitRefused, "--yes")
	got := shell.answering("\n").run(call...)
	golden.Match(t, "testdata/uninstall-asks.txt", got.out+got.err)
	shell.run("uninstall", "one", "three", "--cluster", "leaving", "--yes").fails(t, cli.ExitNotFound, `no installation "three" of this cluster`, "one, two")
	if now := read(t, seed, namespace, "one"); now.DeletionTimestamp != nil || now.Spec.DeletionPolicy != v1.DeletionDelete {
		t.Fatalf("it is removed without an answer: %+v", now)
	}
	done := shell.start(append(call, "--yes", "--wait")...)
	for _, name := range []string{"one", "two"} {
		now := read(t, seed, namespace, name)
		expect.Eventually(t, expect.Patience, func() error { return deleting(t, seed, now) })
		if now.Spec.DeletionPolicy != v1.DeletionOrphan || now.Annotations[v1.AnnotationSkipHooks] != "true" {
			t.Errorf("got %s, %v", now.Spec.DeletionPolicy, now.Annotations)
		}
		expect.Change(t, seed, now, func(now *v1.AddonInstallation) { now.Finalizers = nil })
	}
	if got := (<-done).works(t); !strings.HasSuffix(got.out, "/one is gone\naddoninstallation.kubermatic.k8c.io/two is gone\n") {
		t.Errorf("output %q", got.out)
	}
}

// Red when Ctrl-C does not end a question at once, or something is written after it.
func TestInterruptingAQuestionChangesNothing(t *testing.T) {
	seed, namespace := shop(t, "interrupted")
	shell := clusterUser(t, seed, namespace)
	silent, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	ctx, interrupt := context.WithCancel(t.Context())
	shell.input, shell.ctx, shell.notes = silent, ctx, interrupting{interrupt}
	if got := shell.run("install", "podinfo", "--cluster", "interrupted"); got.code != cli.ExitRefused || !strings.Contains(got.err, "nothing was changed") {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
	var all v1.AddonInstallationList
	if expect.List(t, seed, &all, client.InNamespace(namespace)); len(all.Items) != 0 {
		t.Errorf("there are %d installations", len(all.Items))
	}
}
