package installer

import (
	"context"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// TestReconciliationEndsWhereTheRecordIsGone fails if a reconciliation continues with a record that the seed no longer has, or
// writes its findings about one revision into the record of another.
func TestReconciliationEndsWhereTheRecordIsGone(t *testing.T) {
	entries := inventoryOf("quick")
	drift := []survey.Drift{{Key: entries[0].Key}}
	health := survey.Health{Total: 1, Healthy: 1, Finished: []ownership.Key{entries[0].Key}}
	for _, test := range []struct {
		why    string
		stored *revision.Record
	}{
		{"nothing is left", nil},
		{"only the revision before is left", &revision.Record{Revision: 1, State: revision.StateApplied}},
		{"it was begun anew", &revision.Record{Revision: 2, State: revision.StateIntent}},
	} {
		for name, step := range map[string]func(context.Context, *Run) *loop.Outcome{
			"amend": func(ctx context.Context, p *Run) *loop.Outcome {
				return p.Amend(ctx, func(kept *revision.Record) { kept.Version = "2" })
			},
			"health": func(ctx context.Context, p *Run) *loop.Outcome { return p.recordHealth(ctx, &health) },
			"repair": func(ctx context.Context, p *Run) *loop.Outcome { return p.repair(ctx, drift) },
		} {
			t.Run(test.why+"/"+name, func(t *testing.T) {
				known := &revision.Record{Installation: "web", Revision: 2, State: revision.StateApplied, Inventory: entries}
				kept := &fakeRecords{record: test.stored}
				p := (&Installer{Reads: kept, Writes: kept}).NewRun(&State{Loaded: true, Record: known.Light()}, "cluster-a", Asked{}, Seed{})
				if stop := step(t.Context(), &p); !stop.Is(loop.RetryAt) {
					t.Errorf("got %+v, want a failure", stop)
				}
				if p.State.Loaded || p.Record() != nil {
					t.Error("the record is not read again")
				}
				if kept.saves > 0 {
					t.Errorf("it was saved over %+v", kept.record)
				}
			})
		}
	}
}

// TestRecordThatIsGoneIsReadAgain fails if a deleted record is read again in every reconciliation, or if the objects of
// an installation that is being removed stay because its record was deleted.
func TestRecordThatIsGoneIsReadAgain(t *testing.T) {
	for why, asked := range map[string]Asked{"installed": {}, "removed": {RemovedSince: time.Now()}} {
		known := &revision.Record{Revision: 1, State: revision.StateApplied}
		p := (&Installer{Reads: &fakeRecords{}}).NewRun(&State{Loaded: true, Record: known.Light()}, "cluster-a", asked, Seed{})
		if _, err := p.ReadWhole(t.Context(), p.Record()); err == nil || p.Record() == nil {
			t.Errorf("%s: got %v, record %+v; want an error, and what is known of the record", why, err, p.Record())
		}
		if p.State.Loaded != p.Asked.IsRemoved() {
			t.Errorf("%s: known as read is %t", why, p.State.Loaded)
		}
	}
}
