package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// unhealthy gives an installation conditions and objects that are not healthy.
func unhealthy(made *v1.AddonInstallation) {
	at("6.0.0")(made)
	made.Status.Conditions = append(made.Status.Conditions,
		metav1.Condition{
			Type: v1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1.ReasonApplied, LastTransitionTime: metav1.Now(),
		},
		metav1.Condition{
			Type: v1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: v1.ReasonUnhealthy, LastTransitionTime: metav1.Now(),
			Message: "Deployment apps/podinfo: the image can't be pulled",
		})
	made.Status.Objects = &v1.ObjectCounts{Total: 4, Healthy: 3, Failing: 1, Summary: "3/4"}
	made.Status.Unhealthy = []v1.UnhealthyObject{{Ref: "Deployment apps/podinfo", Reason: "ImagePullBackOff", Message: "podinfo:6.0.0"}}
	made.Status.Failures = 3
	made.Status.LastApplied = &v1.AppliedState{Addon: "podinfo", Version: "6.0.0", K8sVersion: "1.36.3", Time: new(metav1.Now())}
	made.Status.Release = &v1.HelmReleaseState{Name: "podinfo", Revision: 2, Status: "deployed"}
}

// Red when a condition, its advice or an object is not shown, or a line is longer than the terminal.
func TestStatusShowsConditionsAndWhatToDo(t *testing.T) {
	seed, namespace := cluster(t, "sick")
	inState(t, seed, given.Installation(namespace, "podinfo", "podinfo", "apps", given.In("6.x")),
		notReady(v1.ReasonUnhealthy, "Deployment apps/podinfo: the image can't be pulled"), unhealthy)
	shell := on(t, "seed")
	golden.Match(t, "testdata/status.txt", shell.run("status", "podinfo", "--cluster", "sick").works(t).out)
	shell.width = 40
	narrow := shell.run("status", "podinfo", "--cluster", "sick").works(t).out
	golden.Match(t, "testdata/status-narrow.txt", narrow)
	for line := range strings.Lines(narrow) {
		if len([]rune(line)) > shell.width+1 {
			t.Errorf("the line %q is longer than the terminal", line)
		}
	}
	shell.run("status", "podinf", "--cluster", "sick").fails(t, cli.ExitNotFound, `is "podinfo" meant?`)
	shell.run("status", "podinfo").fails(t, cli.ExitUsage, "--cluster")
}

// printed is an output that is read while it is written.
type printed struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (p *printed) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.Write(text)
}

func (p *printed) String() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.text.String()
}

// until waits for a text.
func (p *printed) until(t testing.TB, text string) {
	t.Helper()
	expect.Eventually(t, expect.Patience, func() error {
		if got := p.String(); !strings.Contains(got, text) {
			return fmt.Errorf("%q is not in %q", text, got)
		}
		return nil
	})
}

// Red when a change is not printed, one of a neighbour is, or the watch does not end with its context.
func TestStatusWatchesChanges(t *testing.T) {
	seed, namespace := cluster(t, "changing")
	made := given.Installation(namespace, "podinfo", "podinfo", "apps")
	expect.Create(t, seed, made, given.Installation(namespace, "other", "redis", "cache"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &printed{}
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	arguments := []string{"--kubeconfig", on(t, "seed").kubeconfig, "status", "podinfo", "--cluster", "changing", "--watch"}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, tool, arguments, verbs.All()...)
	}()
	out.until(t, namespace+"/podinfo UnderWay\n")
	setReady := func(ready metav1.Condition) {
		expect.ChangeStatus(t, seed, made, func(made *v1.AddonInstallation) {
			ready.Type, ready.LastTransitionTime = v1.ConditionReady, metav1.Now()
			made.Status.Conditions = []metav1.Condition{ready}
		})
	}
	setReady(notReady(v1.ReasonFetching, "the chart is being fetched"))
	out.until(t, "UnderWay Fetching the chart is being fetched\n")
	setReady(ready)
	out.until(t, "/podinfo Ready\n")
	expect.Delete(t, seed, made)
	out.until(t, "/podinfo Gone\n")
	cancel()
	if code := <-ended; code != cli.ExitDone || strings.Contains(out.String(), "other") {
		t.Errorf("exit code %d, printed %q", code, out.String())
	}
}

// Red when an installation that is deleted while no watch is open is never printed as gone.
func TestStatusNoticesWhatGoesBetweenWatches(t *testing.T) {
	seed, namespace := cluster(t, "between")
	made := given.Installation(namespace, "podinfo", "podinfo", "apps")
	expect.Create(t, seed, made)
	proxy, calls := gate.New(t, fleet.Shared().Cluster("seed")), atomic.Int32{}
	isOurs := func(call gate.Call) bool {
		return strings.HasSuffix(call.Path, "/namespaces/"+namespace+"/addoninstallations")
	}
	proxy.Watch("reader", gate.Guard{
		Before: func(call gate.Call) bool {
			if isOurs(call) && calls.Add(1) == 3 { // the next list
				if err := seed.Delete(t.Context(), made); err != nil {
					t.Error(err)
				}
			}
			return true
		},
		Instead: func(call gate.Call) []byte {
			if isOurs(call) && calls.Load() == 2 { // the first watch ends at once
				return []byte("\n")
			}
			return nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := &printed{}, make(chan int, 1)
	tool := cli.NewTool(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	arguments := []string{"--kubeconfig", as(t, proxy.Kubeconfig(t, "reader")).kubeconfig, "status", "--cluster", "between", "--watch"}
	go func() { ended <- cli.Run(ctx, tool, arguments, verbs.All()...) }()
	out.until(t, namespace+"/podinfo UnderWay\n")
	out.until(t, "/podinfo Gone\n")
	cancel()
	if code := <-ended; code != cli.ExitDone {
		t.Errorf("exit code %d, printed %q", code, out.String())
	}
}

// event is one about an installation, some minutes ago.
func event(namespace, about, reason, note string, ago time.Duration) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: about + "-"}, EventTime: metav1.NewMicroTime(time.Now().Add(-ago)),
		ReportingController: "trellis", ReportingInstance: "test", Action: "Apply", Reason: reason, Type: corev1.EventTypeNormal, Note: note,
		Regarding: corev1.ObjectReference{Kind: "AddonInstallation", Namespace: namespace, Name: about},
	}
}

// Red when events of other objects are shown, their order changes, or history shows events about problems.
func TestEventsAndHistory(t *testing.T) {
	seed, namespace := cluster(t, "eventful")
	inState(t, seed, given.Installation(namespace, "podinfo", "podinfo", "apps"), ready, unhealthy)
	foreign := event(namespace, "podinfo", "Scaled", "is no event of an installation", time.Hour)
	foreign.Regarding.Kind = "Deployment"
	expect.Create(t, seed, foreign,
		event(namespace, "podinfo", v1.EventApplied, "version 5.0.0 is applied", 3*time.Hour),
		event(namespace, "podinfo", v1.ReasonUnhealthy, "the image can't be pulled", time.Hour),
		event(namespace, "podinfo", v1.EventApplied, "version 6.0.0 is applied", 2*time.Hour),
		event(namespace, "cache", v1.EventApplied, "version 1.0.0 is applied", time.Hour))
	shell := on(t, "seed")
	golden.Match(t, "testdata/events.txt", shell.run("events", "--cluster", "eventful").works(t).out)
	golden.Match(t, "testdata/history.txt", shell.run("history", "podinfo", "--cluster", "eventful").works(t).out)
	if got := shell.run("events", "podinfo", "--cluster", "eventful", "-o", "name").works(t).out; strings.Count(got, "\n") != 3 {
		t.Errorf("events of podinfo: %q", got)
	}
}

// Red when an installation is at another place in the tree, twice, or not in it at all because of a cycle.
func TestTreeShowsOriginsAndDependencies(t *testing.T) {
	seed, namespace := cluster(t, "grown")
	after := func(names ...v1.InstallationName) func(*v1.AddonInstallation) {
		return func(made *v1.AddonInstallation) { made.Spec.DependsOn = names }
	}
	inState(t, seed, given.Installation(namespace, "cilium", "cilium", "kube-system", given.Core), ready, at("1.17.0"))
	inState(t, seed, given.Installation(namespace, "monitoring", "prometheus", "monitoring", func(made *v1.AddonInstallation) {
		made.Labels = map[string]string{v1.LabelSet: "all-clusters"}
	}), ready, at("1.2.0"))
	inState(t, seed, given.Installation(namespace, "base", "cert-manager", "certs"), ready, at("1.0.0"))
	inState(t, seed, given.Installation(namespace, "on-base", "podinfo", "apps", after("gone", "base")), ready, unhealthy)
	inState(t, seed, given.Installation(namespace, "on-top", "podinfo", "apps", after("on-base")), ready, at("6.0.0"))
	inState(t, seed, given.Installation(namespace, "round-a", "redis", "apps", after("round-b")), ready)
	inState(t, seed, given.Installation(namespace, "round-b", "redis", "apps", after("round-a")), ready)
	golden.Match(t, "testdata/tree.txt", on(t, "seed").run("tree", "--cluster", "grown").works(t).out)
}

// catalogued is a merged catalogue in the platform namespace.
func catalogued(t testing.TB, seed client.Client, addon v1.Addon) {
	t.Helper()
	expect.Create(t, seed, given.Merged("platform", v1.CatalogueCustom, addon))
}

// versioned has a source and constraints.
func versioned(version, kubernetes string, change ...func(*v1.AddonVersion)) v1.AddonVersion {
	made := given.Version(version, given.Git("https://git.example.com/addons", version))
	made.Constraints = &v1.Constraints{K8sVersion: v1.VersionRange(kubernetes)}
	for _, one := range change {
		one(&made)
	}
	return made
}

// Red when a version, a reason, an installation or a field of the form is missing.
func TestShowAndWhyExplainAnAddon(t *testing.T) {
	seed, namespace := cluster(t, "curious", func(made *v1.AddonCatalogue) {
		made.Spec.Addons = []v1.Addon{given.Addon("prometheus", v1.AddonVersion{Version: "1.2.0"}, v1.AddonVersion{Version: "1.1.0"})}
		made.Spec.Addons[0].SupportedBy = "Team Observability"
		made.Status.Excluded = []v1.ExcludedVersion{
			{Addon: "cilium", Version: "1.17.0", Reason: v1.ExcludedCore, Message: "core add-ons are not offered to users"},
			{Addon: "prometheus", Version: "2.0.0", Reason: v1.ExcludedK8sVersion, Message: "needs Kubernetes >= 1.38; it is 1.36.3"},
		}
		made.Status.ExcludedCount = 2
	})
	inState(t, seed, given.Installation(namespace, "prometheus", "prometheus", "monitoring", given.In("1.2.0")),
		notReady(v1.ReasonUnhealthy, "StatefulSet monitoring/prometheus is not ready"), at("1.2.0"))
	expect.Create(t, seed, world.Namespace("platform"))
	catalogued(t, seed, given.Addon("prometheus", versioned("2.0.0", ">= 1.38", func(made *v1.AddonVersion) {
		made.Template.FormSpec = []v1.FormField{
			{DisplayName: "Replicas", InternalName: "replicas", Type: v1.FormInteger, Required: true, HelpText: "Servers for queries"},
		}
	}), versioned("1.2.0", "*", func(made *v1.AddonVersion) { made.Deprecated = "use 2.0.0" })))
	shell := on(t, "seed")
	golden.Match(t, "testdata/show.txt", shell.run("show", "prometheus", "--cluster", "curious").works(t).out)
	golden.Match(t, "testdata/show-seed.txt", shell.run("show", "prometheus", "--platform-namespace", "platform").works(t).out)
	golden.Match(t, "testdata/show-version.txt", shell.run("show", "prometheus@2.0.0", "--platform-namespace", "platform").works(t).out)
	shell.run("show", "prometheus@3", "--platform-namespace", "platform").fails(t, cli.ExitNotFound, "1.2.0, 2.0.0")
	for file, argument := range map[string]string{
		"why.txt": "prometheus", "why-range.txt": "prometheus@2.x", "why-down.txt": "prometheus@1.1.0", "why-core.txt": "cilium",
		"why-none.txt": "prometheus@9",
	} {
		got := shell.run("why", argument, "--cluster", "curious")
		golden.Match(t, "testdata/"+file, got.out+got.err)
		if got.code != cli.ExitNo {
			t.Errorf("why %s: exit code %d", argument, got.code)
		}
	}
	expect.ChangeStatus(t, seed, given.Installation(namespace, "prometheus", "prometheus", ""), func(made *v1.AddonInstallation) {
		made.Status.Conditions[0].Status, made.Status.Conditions[0].Reason = metav1.ConditionTrue, v1.ReasonReady
	})
	got := shell.run("why", "prometheus@1.2.0", "--cluster", "curious", "-o", "jsonpath={.fits} {.version}").works(t)
	if got.out != "true 1.2.0" {
		t.Errorf("why: %q", got.out)
	}
	shell.run("why", "promethues", "--cluster", "curious").fails(t, cli.ExitNotFound, `is "prometheus" meant?`)
	shell.run("show", "promethues", "--platform-namespace", "platform").fails(t, cli.ExitNotFound, `is "prometheus" meant?`)
}

// Red when a group, a pending change or a failing cluster is not shown.
func TestSetsAreShown(t *testing.T) {
	seed, _ := cluster(t, "waved")
	expect.Create(t, seed, world.Namespace("sets"))
	made := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "sets", Name: "monitoring"}, Spec: v1.AddonSetSpec{
		Type: v1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{},
		Addons: []v1.AddonSetItem{{Name: "prometheus", AddonRef: v1.AddonReference{Name: "prometheus"}, TargetNamespace: "monitoring"}},
	}}
	expect.Create(t, seed, made)
	made.Status = v1.AddonSetStatus{
		Conditions: []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonHalted, Message: "group canary: 1 cluster failed",
			LastTransitionTime: metav1.Now(),
		}},
		Counts: &v1.ClusterCounts{Selected: 5, Current: 3, Failed: 1, Behind: 1},
		Groups: []v1.GroupStatus{
			{Name: "canary", State: v1.GroupHalted, Counts: v1.ClusterCounts{Selected: 2, Current: 1, Failed: 1}},
			{Name: "rest", State: v1.GroupWaiting, Counts: v1.ClusterCounts{Selected: 3, Current: 2, Behind: 1}},
		},
		Pending:      []v1.PendingChange{{Item: "prometheus", Change: v1.ChangeUpdate, From: "1.2.0", To: "2.0.0", Clusters: 1, Example: "aaaa"}},
		PendingCount: 1,
		Clusters: []v1.SetClusterStatus{
			{Name: "bbbb", Seed: "fra", State: v1.ClusterFailed, Item: "prometheus", Reason: v1.ReasonRolledBack, Message: "timed out"},
		},
		Removal: &v1.PendingRemoval{Word: "abc", Count: 4},
	}
	expect.UpdateStatus(t, seed, made)
	shell := on(t, "seed")
	golden.Match(t, "testdata/sets.txt", shell.run("set", "list", "-n", "sets").works(t).out)
	golden.Match(t, "testdata/set.txt", shell.run("set", "show", "monitoring", "-n", "sets").works(t).out)
	shell.run("set", "show", "monitorin", "-n", "sets").fails(t, cli.ExitNotFound, `is "monitoring" meant?`)
}
