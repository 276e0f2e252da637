package installer

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// fullRecords refuses further records.
type fullRecords struct{ fakeRecords }

var errFull = errors.New("there is no room")

// SaveIntent keeps nothing.
func (*fullRecords) SaveIntent(context.Context, string, *revision.Record) error { return errFull }

// runWithHook is a reconciliation of a revision whose only hook succeeded, which is not on record yet.
func runWithHook(state revision.State, event string) *Run {
	record := &revision.Record{State: state, Timeout: metav1.Duration{Duration: time.Minute}, Set: hooks.Set{
		Action: hooks.ActionInstall, HooksState: hooks.State{Event: event, Attempt: 1},
		Hooks: []hooks.Hook{{
			Path: "hook.yaml", Events: []string{event}, Run: &hooks.Run{Event: event, Attempt: 1, Phase: hooks.PhaseSucceeded},
			Object: json.RawMessage(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hook","namespace":"shop"}}`),
		}},
	}}
	kept := &fullRecords{}
	p := (&Installer{Reads: kept, Writes: kept, Interval: time.Minute}).NewRun(
		&State{Loaded: true, Record: record}, "cluster-a", Asked{TargetNamespace: "shop"}, Seed{})
	p.Now, p.Connection = time.Now(), &cluster.Connection{}
	return &p
}

// TestRolloutEndsWhereAHookCannotBeRecorded fails if a rollout continues with a record that has to be read again
// because a save failed.
func TestRolloutEndsWhereAHookCannotBeRecorded(t *testing.T) {
	p := runWithHook(revision.StateIntent, hooks.ActionInstall.Pre())
	stop := p.Advance(t.Context())
	if !stop.Is(loop.RetryAt) || stop.Reason != v1.ReasonFailed || stop.Message != errFull.Error() {
		t.Errorf("got %+v, want the save's failure", stop)
	}
	if p.State.Loaded || p.Record() != nil {
		t.Error("the record is not read again")
	}
}

// TestHealthIsReportedWithoutARecord fails if messages about health need the record.
func TestHealthIsReportedWithoutARecord(t *testing.T) {
	p := runWithHook(revision.StateIntent, hooks.ActionInstall.Post())
	p.Health = &survey.Health{Total: 2, Healthy: 1}
	if stop := p.LastHooks(t.Context()); stop == nil || stop.Message != errFull.Error() || p.Record() != nil {
		t.Fatalf("got %+v, want the save's failure, and no record", stop)
	}
	if failing, stop := p.Failing(), p.Unhealthy(); failing != 0 || stop.Reason != v1.ReasonProgressing {
		t.Errorf("%d failing, %+v; want none that is late", failing, stop)
	}
}

// TestHealthIsReadAgainWithTheRecord fails if the health of the previous revision counts for one whose save as applied
// seemed lost: it would be recorded as healthy, and never be rolled back.
func TestHealthIsReadAgainWithTheRecord(t *testing.T) {
	kept := &fakeRecords{record: &revision.Record{Revision: 2, State: revision.StateApplied, Atomic: true}}
	p := (&Installer{Reads: kept}).NewRun(&State{health: &survey.Health{Total: 1, Healthy: 1}}, "cluster-a", Asked{}, Seed{})
	if err := p.Load(t.Context()); err != nil || p.State.health != nil {
		t.Errorf("got %v, health %+v", err, p.State.health)
	}
}
