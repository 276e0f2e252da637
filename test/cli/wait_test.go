package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

func sharedSeed() *fleet.Cluster { return fleet.Shared().Cluster("seed") }

// start runs the command beside the test.
func (c *terminal) start(arguments ...string) <-chan answered {
	done := make(chan answered, 1)
	go func() { done <- c.run(arguments...) }()
	return done
}

// deleting reads an installation, and says that it is not being deleted.
func deleting(t testing.TB, seed client.Client, now *v1.AddonInstallation) error {
	if err := seed.Get(t.Context(), client.ObjectKeyFromObject(now), now); err != nil {
		return err
	}
	if now.DeletionTimestamp == nil {
		return errors.New("it is not being deleted")
	}
	return nil
}

// report writes conditions as the manager does, for the present generation.
func report(t testing.TB, seed client.Client, now *v1.AddonInstallation, version string, conditions ...metav1.Condition) {
	t.Helper()
	expect.ChangeStatus(t, seed, now, func(now *v1.AddonInstallation) {
		for _, one := range conditions {
			one.ObservedGeneration = now.Generation
			meta.SetStatusCondition(&now.Status.Conditions, one)
		}
		now.Status.ObservedGeneration, now.Status.Version = now.Generation, version
	})
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// Red when --wait ends before the new generation is Ready, never ends, or a step is missing or printed twice.
func TestWaitEndsWhenTheNewGenerationIsReady(t *testing.T) {
	seed, namespace := shop(t, "waiting")
	shell := clusterUser(t, seed, namespace)
	made := given.Installation(namespace, "prometheus", "prometheus", "monitoring", given.In("1.1.0"))
	expect.Create(t, seed, made)
	report(t, seed, made, "1.1.0", condition(v1.ConditionFetched, metav1.ConditionTrue, v1.ReasonFetched, "the content is fetched"),
		condition(v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady, "all objects are healthy"))
	before := made.Generation
	done := shell.start("upgrade", "prometheus", "--cluster", "waiting", "--version", "2.0.0", "--yes", "--wait")
	expect.Eventually(t, expect.Patience, func() error {
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil || made.Generation > before {
			return err
		}
		return errors.New("it is not changed yet")
	})
	report(t, seed, made, "1.1.0", condition(v1.ConditionFetched, metav1.ConditionFalse, v1.ReasonFetching, "the chart is being\x1b[2J fetched"),
		condition(v1.ConditionReady, metav1.ConditionFalse, v1.ReasonFetching, "the chart is being fetched"))
	report(t, seed, made, "1.1.0", condition(v1.ConditionFetched, metav1.ConditionTrue, v1.ReasonFetched, "the content is fetched"))
	report(t, seed, made, "2.0.0", condition(v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady, "all objects are healthy"))
	got := (<-done).works(t)
	if want := "addoninstallation.kubermatic.k8c.io/prometheus changed\naddoninstallation.kubermatic.k8c.io/prometheus is ready: version 2.0.0\n"; got.out != want {
		t.Errorf("output %q, want %q", got.out, want)
	}
	if strings.Contains(got.err, "\x1b") || !strings.Contains(got.err, "Ready True: Ready all objects are healthy") {
		t.Errorf("steps: %q", got.err)
	}
}

// Red when the end of the time or of the caller is not an error with what the installation waits for.
func TestWaitEndsWithTheLastReason(t *testing.T) {
	seed, namespace := shop(t, "stuck")
	shell := clusterUser(t, seed, namespace)
	made := inState(t, seed, given.Installation(namespace, "broken", "podinfo", "apps"),
		notReady(v1.ReasonObjectExists, `Deployment "apps/podinfo" exists`))
	got := shell.run("reconcile", "broken", "--cluster", "stuck", "--wait", "--timeout", "1s")
	golden.Match(t, "testdata/wait-timeout.txt", got.out+got.err)
	if got.code != cli.ExitTimeout {
		t.Errorf("exit code %d", got.code)
	}
	first := read(t, seed, namespace, "broken").Annotations[v1.AnnotationReconcileAt]
	ctx, interrupt := context.WithCancel(t.Context())
	shell.ctx, shell.notes = ctx, interrupting{interrupt}
	done := shell.start("reconcile", "broken", "--cluster", "stuck", "--wait")
	expect.Eventually(t, expect.Patience, func() error {
		if read(t, seed, namespace, made.Name).Annotations[v1.AnnotationReconcileAt] == first {
			return errors.New("no second reconciliation is requested")
		}
		return nil
	})
	report(t, seed, made, "", condition(v1.ConditionApplied, metav1.ConditionFalse, v1.ReasonProgressing, "objects are being written"))
	if got := <-done; got.code != cli.ExitNo || !strings.Contains(got.err, `stopped waiting for installation "broken": Trellis continues the work`) {
		t.Errorf("exit code %d: %s", got.code, got.err)
	}
}

// interrupting ends a call at the first step that it prints.
type interrupting struct{ interrupt func() }

func (i interrupting) Write(text []byte) (int, error) {
	i.interrupt()
	return len(text), nil
}

// Red when a verb writes another field or value, or asks no question before an approval.
func TestVerbsOfOneFieldWriteIt(t *testing.T) {
	seed, namespace := shop(t, "fields")
	shell := clusterUser(t, seed, namespace)
	made := given.Installation(namespace, "prometheus", "prometheus", "monitoring")
	expect.Create(t, seed, made)
	call := func(verb string, more ...string) answered {
		return shell.run(append([]string{verb, "prometheus", "--cluster", "fields"}, more...)...)
	}
	const kind = "addoninstallation.kubermatic.k8c.io/prometheus "
	for _, one := range []struct{ verb, says string }{
		{"pause", "paused"}, {"pause", "unchanged: it is paused already"}, {"resume", "resumed"}, {"resume", "unchanged: it was not paused"}, {"pause", "paused"},
		{"reconcile", "reconciliation requested"},
	} {
		if got := call(one.verb).works(t); got.out != kind+one.says+"\n" {
			t.Errorf("%s: output %q", one.verb, got.out)
		}
	}
	now := read(t, seed, namespace, "prometheus")
	if !now.Spec.Paused || now.Annotations[v1.AnnotationReconcileAt] == "" {
		t.Errorf("got %+v, %v", now.Spec, now.Annotations)
	}
	call("approve", "--yes").fails(t, cli.ExitNo, "waits for approval")
	report(t, seed, now, "1.2.0", condition(v1.ConditionApplied, metav1.ConditionFalse, v1.ReasonPruneNeedsApproval,
		"no longer part of the add-on, and waiting to be removed since each holds more than itself: annotate the installation with "+
			v1.AnnotationPruneApproved+": 0123456789abcdef to let them go: Namespace a"))
	call("approve").fails(t, cli.ExitRefused, "--yes")
	got := shell.answering("yes\n").run("approve", "prometheus", "--cluster", "fields").works(t)
	golden.Match(t, "testdata/approve-asks.txt", got.out+got.err)
	report(t, seed, now, "1.2.0", condition(v1.ConditionApplied, metav1.ConditionFalse, v1.ReasonObjectExists, `Deployment "a/b" exists`))
	got = shell.answering("y\n").run("adopt", "prometheus", "--cluster", "fields").works(t)
	golden.Match(t, "testdata/adopt-asks.txt", got.out+got.err)
	now = read(t, seed, namespace, "prometheus")
	if now.Annotations[v1.AnnotationPruneApproved] != "0123456789abcdef" || now.Annotations[v1.AnnotationAdopt] != "true" {
		t.Errorf("annotations %v", now.Annotations)
	}
	for _, verb := range []string{"pause", "reconcile", "approve", "adopt", "upgrade", "uninstall"} {
		got := shell.answering("y\n").run(verb, "prom\x1b[2J", "--cluster", "fields")
		got.fails(t, cli.ExitUsage, "not a valid name of an installation")
	}
}

// Red when another group is opened than the one that is shown, an approval is not for the revision, or a copy is written.
func TestSetsAreApprovedAndPaused(t *testing.T) {
	master := world.Client(t, sharedSeed().Config)
	expect.Ensure(t, master, world.Namespace("kubermatic"))
	set := given.Set("kubermatic", "monitoring", "prometheus")
	set.Spec.Rollout = &v1.Rollout{Groups: []v1.RolloutGroup{
		{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}}},
		{Name: "early", Start: v1.StartApproved, ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "1"}}},
	}}
	duplicate := given.Set("kubermatic", "copied", "prometheus")
	duplicate.Labels = map[string]string{v1.LabelRole: v1.RoleCopy}
	expect.Create(t, master, set, duplicate)
	shell := on(t, "seed")
	shell.run("set", "approve", "monitoring", "--yes").fails(t, cli.ExitNo, "does not include its last change")
	expect.ChangeStatus(t, master, set, func(set *v1.AddonSet) {
		set.Status.ObservedGeneration, set.Status.Revision = set.Generation, "abc"
		set.Status.Groups = []v1.GroupStatus{{Name: "canary", State: v1.GroupDone}, {
			Name: "early", State: v1.GroupAwaitingApproval, Counts: v1.ClusterCounts{Selected: 3, Behind: 2},
		}}
		set.Status.Pending = []v1.PendingChange{{Item: "prometheus", Change: v1.ChangeUpdate, From: "1.1.0", To: "1.2.0", Clusters: 2}}
	})
	shell.run("set", "approve", "monitorin", "--yes").fails(t, cli.ExitNotFound, `did you mean "monitoring"?`)
	shell.run("set", "approve", "copied", "--yes").fails(t, cli.ExitContext, "copy")
	shell.run("set", "approve", "monitoring", "--group", "late", "--yes").fails(t, cli.ExitNotFound, "canary, early")
	shell.run("set", "approve", "monitoring", "--removal", "--yes").fails(t, cli.ExitNo, "no removal")
	shell.run("set", "approve", "monitoring").fails(t, cli.ExitRefused, "--yes")
	got := shell.answering("y\n").run("set", "approve", "monitoring").works(t)
	golden.Match(t, "testdata/set-approve.txt", got.out+got.err)
	expect.ChangeStatus(t, master, set, func(set *v1.AddonSet) {
		set.Status.Removal = &v1.PendingRemoval{Word: "token", Count: 6, Clusters: []string{"one", "two"}}
	})
	got = shell.run("set", "approve", "monitoring", "--removal", "--yes").works(t)
	golden.Match(t, "testdata/set-removal.txt", got.out+got.err)
	shell.run("set", "pause", "monitoring").works(t)
	expect.Read(t, master, set)
	if set.Annotations[v1.AnnotationApprove] != "abc/early" || set.Annotations[v1.AnnotationRemovalApproved] != "token" || !set.Spec.Paused {
		t.Errorf("got %v, %+v", set.Annotations, set.Spec)
	}
	shell.run("set", "resume", "monitoring").works(t)
	if expect.Read(t, master, set); set.Spec.Paused {
		t.Error("it is still paused")
	}
}
