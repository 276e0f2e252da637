package addoninstallation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

func TestProjectSaysHowFarAReconciliationCame(t *testing.T) {
	for _, test := range []struct {
		why     string
		outcome *loop.Outcome
		ready   string
		want    map[string]string
	}{
		{
			why: "done: everything is true", outcome: &loop.Outcome{Kind: loop.Done}, ready: "True Ready",
			want: map[string]string{
				"Compatible": "True", "ValuesResolved": "True", "Fetched": "True", "Rendered": "True", "Applied": "True", "Healthy": "True",
			},
		},
		{
			why:     "a refused value: what comes after is not spoken of",
			outcome: &loop.Outcome{Kind: loop.Stalled, Condition: "ValuesResolved", Reason: "ValuesInvalid", Message: "field x"}, ready: "False ValuesInvalid",
			want: map[string]string{"Compatible": "True", "ValuesResolved": "False"},
		},
		{
			why:     "waiting for a stage",
			outcome: &loop.Outcome{Kind: loop.Waiting, Condition: "Applied", Reason: "WaitingForStage"}, ready: "False WaitingForStage",
			want: map[string]string{"Compatible": "True", "ValuesResolved": "True", "Fetched": "True", "Rendered": "True", "Applied": "False"},
		},
		{
			why:     "an unreachable cluster says nothing about the steps",
			outcome: &loop.Outcome{Kind: loop.RetryAt, Condition: "Ready", Reason: "ClusterUnreachable", Unknown: true}, ready: "Unknown ClusterUnreachable",
			want: map[string]string{},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
			project(f, test.outcome, time.Now())
			conditions := f.installation.Status.Conditions
			got := map[string]string{}
			for _, condition := range conditions {
				if condition.Type != kubermaticv1.ConditionReady {
					got[condition.Type] = string(condition.Status)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			ready := meta.FindStatusCondition(conditions, kubermaticv1.ConditionReady)
			if got := string(ready.Status) + " " + ready.Reason; got != test.ready {
				t.Errorf("Ready is %q, want %q", got, test.ready)
			}
		})
	}
}

// TestConditionsAreInOneOrder fails if the order of the conditions depends on their history.
func TestConditionsAreInOneOrder(t *testing.T) {
	want := []string{"Ready", "Compatible", "ValuesResolved", "Fetched", "Rendered", "Applied", "Healthy", "DeletionBlocked", "Drifted"}
	conditions := []metav1.Condition{}
	for i := range want {
		conditions = append(conditions, metav1.Condition{Type: want[(i*4+2)%len(want)]})
	}
	inOrder(conditions)
	var got []string
	for _, condition := range conditions {
		got = append(got, condition.Type)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProjectKeepsLaterConditions(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	project(f, &loop.Outcome{Kind: loop.Done}, time.Now())
	project(f, &loop.Outcome{Kind: loop.Stalled, Condition: "Compatible", Reason: "Withdrawn", Message: "removed from the catalogue"}, time.Now())
	if !meta.IsStatusConditionTrue(f.installation.Status.Conditions, kubermaticv1.ConditionHealthy) {
		t.Error("a withdrawn version says nothing about the health of what is installed")
	}
}

// TestFailuresBehindAnEarlierOneAreUnknown fails if a failure of an earlier attempt is still reported next to one of an
// earlier step, such as RenderFailed next to ValuesMissing; and if conditions of the clusters, or a wait that has its
// clock there, are lost with it.
func TestFailuresBehindAnEarlierOneAreUnknown(t *testing.T) {
	const progressing = "Unknown Progressing"
	for _, test := range []struct {
		why          string
		before       []metav1.Condition
		now          *loop.Outcome
		want         map[string]string
		isTriedAgain string
	}{
		{
			"RenderFailed, and then a value is missing",
			[]metav1.Condition{{Type: "Rendered", Status: "False", Reason: "RenderFailed"}, {Type: "Applied", Status: "True", Reason: "Applied"}},
			&loop.Outcome{Kind: loop.Waiting, Condition: "ValuesResolved", Reason: "ValuesMissing"},
			map[string]string{"ValuesResolved": "False ValuesMissing", "Rendered": progressing, "Applied": "True Applied"}, "ValuesResolved",
		},
		{
			"everything failed once, and then the version is withdrawn",
			[]metav1.Condition{
				{Type: "ValuesResolved", Status: "False", Reason: "ValuesInvalid"}, {Type: "Fetched", Status: "False", Reason: "FetchFailed"},
				{Type: "Rendered", Status: "False", Reason: "RenderFailed"}, {Type: "Applied", Status: "False", Reason: "ObjectExists"},
				{Type: "Healthy", Status: "False", Reason: "Unhealthy"},
			},
			&loop.Outcome{Kind: loop.Stalled, Condition: "Compatible", Reason: "Withdrawn"},
			map[string]string{
				"Compatible": "False Withdrawn", "ValuesResolved": progressing, "Fetched": progressing, "Rendered": progressing,
				"Applied": progressing, "Healthy": "False Unhealthy",
			}, "Compatible",
		},
		{
			"it waits for others, and then its content is fetched",
			[]metav1.Condition{{Type: "Applied", Status: "False", Reason: kubermaticv1.ReasonWaitingForOrder}},
			&loop.Outcome{Kind: loop.Waiting, Condition: "Fetched", Reason: kubermaticv1.ReasonFetching},
			map[string]string{"Fetched": "False Fetching", "Applied": "False WaitingForOrder"}, "",
		},
		{
			"a cluster that can't be reached says nothing of the steps",
			[]metav1.Condition{{Type: "Rendered", Status: "False", Reason: "RenderFailed"}},
			&loop.Outcome{Kind: loop.RetryAt, Condition: "Ready", Reason: "ClusterUnreachable", Unknown: true},
			map[string]string{"Rendered": "False RenderFailed"}, "",
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			f := factsFor(&kubermaticv1.AddonInstallation{Status: kubermaticv1.AddonInstallationStatus{Conditions: test.before}}, &memory{})
			project(f, test.now, time.Now())
			got := map[string]string{}
			for _, one := range f.installation.Status.Conditions {
				if _, asked := test.want[one.Type]; asked {
					got[one.Type] = string(one.Status) + " " + one.Reason
				}
				if one.Reason == kubermaticv1.ReasonProgressing && !strings.Contains(one.Message, "once condition "+test.isTriedAgain+" is True") {
					t.Errorf("%s says %q", one.Type, one.Message)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestContentThatIsFetchedAgainIsNotSaid fails if a restart with an empty store writes the status of all installed and
// Ready installations, or if an edit, another version or a failure is not reported while content is being fetched.
func TestContentThatIsFetchedAgainIsNotSaid(t *testing.T) {
	fetching := &loop.Outcome{Kind: loop.Waiting, Condition: kubermaticv1.ConditionFetched, Reason: kubermaticv1.ReasonFetching}
	connecting := &loop.Outcome{Kind: loop.RetryAt, Condition: kubermaticv1.ConditionFetched, Reason: kubermaticv1.ReasonClusterNotReady}
	refused := &loop.Outcome{Kind: loop.Stalled, Condition: kubermaticv1.ConditionFetched, Reason: kubermaticv1.ReasonValuesInvalid}
	for _, test := range []struct {
		why    string
		change func(*facts)
		// outcome of the reconciliation; nil: it waits for content.
		outcome *loop.Outcome
		said    bool
	}{
		{"a restart", func(*facts) {}, nil, false},
		{"the cluster was not asked", func(f *facts) { f.run.Health = nil }, nil, true},
		{"the cluster is not connected yet", func(f *facts) { f.run.Health, f.connecting = nil, true }, nil, false},
		{"only that the cluster is not connected yet", func(f *facts) { f.run.Health, f.connecting = nil, true }, connecting, false},
		{"the cluster is not ready by its own status", func(f *facts) { f.run.Health = nil }, connecting, true},
		{"trouble, while the cluster is not connected yet", func(f *facts) { f.run.Health, f.connecting = nil, true }, refused, true},
		{"an edit", func(f *facts) { f.installation.Generation++ }, nil, true},
		{"another version", func(f *facts) { f.choice.Version.Version = "2.0.0" }, nil, true},
		{"other content", func(f *facts) { f.choice.Origin.Digest = "other" }, nil, true},
		{"a person asks", func(f *facts) { f.run.Asked.ReconcileAt = "now" }, nil, true},
		{"it does not work", func(f *facts) { f.run.Health = &survey.Health{Total: 1} }, nil, true},
		{"it is not applied to its end", func(f *facts) { f.run.State.Record.State = revision.StateIntent }, nil, true},
		{"it was not Ready", func(f *facts) {
			f.installation.Status.Conditions[0].Status = metav1.ConditionFalse
		}, nil, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
			project(f, &loop.Outcome{Kind: loop.Done}, time.Now())
			f.choice = resolution.Choice{Version: &kubermaticv1.AddonVersion{Version: "1.0.0"}, Origin: catalogue.Origin{Digest: "d"}}
			f.run.State.Record = &revision.Record{State: revision.StateApplied, Version: "1.0.0", EntryDigest: "d"}
			f.run.Health = &survey.Health{Total: 1, Healthy: 1}
			f.run.Compared = &installer.Comparison{Drifted: []ownership.Key{{Kind: "ConfigMap", Name: "a"}}}
			test.change(f)
			if test.outcome == nil {
				test.outcome = fetching
			}
			project(f, test.outcome, time.Now())
			if said := !meta.IsStatusConditionTrue(f.installation.Status.Conditions, kubermaticv1.ConditionFetched); said != test.said {
				t.Errorf("Fetched says that content is fetched: %v, want %v", said, test.said)
			}
			if !meta.IsStatusConditionTrue(f.installation.Status.Conditions, kubermaticv1.ConditionDrifted) {
				t.Error("the drift that this pass found is not said")
			}
		})
	}
}

// TestOutcomesBesideSuccessAndFailure fails if a reconciliation of another worker's installation writes its conditions,
// or if one that is saved first reports success.
func TestOutcomesBesideSuccessAndFailure(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	project(f, &loop.Outcome{Kind: loop.NotMine}, time.Now())
	if diff := cmp.Diff(kubermaticv1.AddonInstallationStatus{}, f.installation.Status); diff != "" {
		t.Errorf("the status of another worker's:\n%s", diff)
	}
	project(f, &loop.Outcome{Kind: loop.Checkpoint, Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonProgressing, Message: "the installation belongs to cluster c"}, time.Now())
	ready := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != kubermaticv1.ReasonProgressing {
		t.Errorf("Ready is %v", ready)
	}
}

func TestDriftNeverMakesReadyFalse(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	f.run.Compared = &installer.Comparison{Fights: []ownership.Key{{Kind: "ConfigMap", Name: "a"}}}
	project(f, &loop.Outcome{Kind: loop.Done}, time.Now())
	conditions := f.installation.Status.Conditions
	if drifted := meta.FindStatusCondition(conditions, kubermaticv1.ConditionDrifted); drifted == nil || drifted.Reason != kubermaticv1.ReasonFight {
		t.Errorf("Drifted is %+v", drifted)
	}
	if !meta.IsStatusConditionTrue(conditions, kubermaticv1.ConditionReady) {
		t.Error("Ready is not True")
	}
}

// TestARemovalThatWaitsForItsCluster fails if a removal is blocked by an unreachable cluster, and does not report that
// and the solution.
func TestARemovalThatWaitsForItsCluster(t *testing.T) {
	for reason, waits := range map[string]bool{
		kubermaticv1.ReasonClusterUnreachable: true, kubermaticv1.ReasonKubeconfigInvalid: true, kubermaticv1.ReasonClusterSwapped: true,
		kubermaticv1.ReasonRemoving: false,
	} {
		f := factsFor(&kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now()}}}, &memory{})
		project(f, &loop.Outcome{Kind: loop.Waiting, Condition: kubermaticv1.ConditionReady, Reason: reason, Message: "m"}, time.Now())
		ready := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionReady)
		if ready == nil || !strings.HasPrefix(ready.Message, "m") || waits != strings.Contains(ready.Message, "set deletionPolicy to Orphan") {
			t.Errorf("%s: got %+v", reason, ready)
		}
	}
}

func TestMaintenanceIsLookedAtInTime(t *testing.T) {
	stalled := &loop.Outcome{Kind: loop.Stalled, Condition: kubermaticv1.ConditionCompatible, Reason: kubermaticv1.ReasonWithdrawn}
	got := earlier(stalled, &loop.Outcome{Kind: loop.Done, Recheck: time.Minute})
	if loop.RequeueAfter(got) != time.Minute {
		t.Errorf("comes back after %s", loop.RequeueAfter(got))
	}
}

// TestMisbehaviourIsUnknown fails if the answers of a misbehaving API server count as failures of the objects, or get
// no back-off.
func TestMisbehaviourIsUnknown(t *testing.T) {
	err := fmt.Errorf("listing the ConfigMap objects of add-ons: %w", &calls.MisbehavesError{Did: "a list has more than 400 pages"})
	want := &loop.Outcome{
		Kind: loop.RetryAt, Condition: "Ready", Reason: "ClusterMisbehaves", Unknown: true,
		Message: "listing the ConfigMap objects of add-ons: the API server misbehaves: a list has more than 400 pages",
	}
	if diff := cmp.Diff(want, callOutcome(kubermaticv1.ConditionHealthy, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestObjectsAreCountedByKind fails if status.inventory does not have the numbers of the record, if it has more kinds than its schema
// allows, or if an upgrade of the manager writes the status of an installation only to add it.
func TestObjectsAreCountedByKind(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	f.run.State.Loaded = true
	f.run.State.Record = &revision.Record{State: revision.StateApplied, Version: "1.0.0"}
	done := func() *loop.Outcome { return &loop.Outcome{Kind: loop.Done} }
	project(f, done(), time.Now())
	status := &f.installation.Status
	if status.LastApplied == nil || status.Inventory != nil {
		t.Fatalf("without objects the inventory is %v", status.Inventory)
	}
	add := func(group, kind string, number int) {
		for i := range number {
			key := ownership.Key{Group: group, Kind: kind, Name: fmt.Sprint(i)}
			f.run.State.Record.Inventory = append(f.run.State.Record.Inventory, ownership.Entry{Key: key})
		}
	}
	add("", "ConfigMap", 2)
	add("apps", "Deployment", 1)
	add("", "Service", 2)
	add("other.example.com", "Service", 3)
	project(f, done(), time.Now())
	if status.Inventory != nil {
		t.Errorf("the inventory alone changes the status of an earlier release: %v", status.Inventory)
	}
	f.installation.Generation++
	project(f, done(), time.Now())
	want := []kubermaticv1.KindCount{
		{Group: "other.example.com", Kind: "Service", Count: 3}, {Kind: "ConfigMap", Count: 2}, {Kind: "Service", Count: 2},
		{Group: "apps", Kind: "Deployment", Count: 1},
	}
	if diff := cmp.Diff(want, status.Inventory); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range maxInventory {
		add("many.example.com", fmt.Sprintf("Kind%02d", i), 1)
	}
	f.run.State.Record.State = revision.StateIntent // objects are being written
	project(f, done(), time.Now())
	if diff := cmp.Diff(want, status.Inventory); diff != "" {
		t.Errorf("before the end of an apply (-want +got):\n%s", diff)
	}
	f.run.State.Record.State = revision.StateApplied
	project(f, done(), time.Now())
	if got := len(status.Inventory); got != maxInventory || status.Inventory[0] != want[0] {
		t.Errorf("%d kinds are listed, from %v", got, status.Inventory[0])
	}
}
