package installer

import (
	"context"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/survey"
)

// Red when a pass goes on with a record that the seed has not any more, or writes what it found of
// one revision into the record of another.
func TestPassEndsWhereTheRecordIsGone(t *testing.T) {
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
		for name, step := range map[string]func(context.Context, *Pass) *Stop{
			"amend": func(ctx context.Context, p *Pass) *Stop {
				return p.Amend(ctx, func(kept *revision.Record) { kept.Version = "2" })
			},
			"health": func(ctx context.Context, p *Pass) *Stop { return p.recordHealth(ctx, &health) },
			"repair": func(ctx context.Context, p *Pass) *Stop { return p.repair(ctx, drift) },
		} {
			t.Run(test.why+"/"+name, func(t *testing.T) {
				known := &revision.Record{Installation: "web", Revision: 2, State: revision.StateApplied, Inventory: entries}
				kept := &fakeRecords{record: test.stored}
				p := (&Installer{Reads: kept, Writes: kept}).Pass(&State{Loaded: true, Record: known.Light()}, "cluster-a", Asked{}, Seed{})
				if stop := step(t.Context(), &p); stop == nil || stop.Kind != Retry {
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

// Red when a record that is gone is asked for again in every pass, or when what an installation
// that is removed has stays, since its record is gone.
func TestRecordThatIsGoneIsReadAgain(t *testing.T) {
	for why, asked := range map[string]Asked{"installed": {}, "removed": {RemovedSince: time.Now()}} {
		known := &revision.Record{Revision: 1, State: revision.StateApplied}
		p := (&Installer{Reads: &fakeRecords{}}).Pass(&State{Loaded: true, Record: known.Light()}, "cluster-a", asked, Seed{})
		if _, err := p.ReadWhole(t.Context(), p.Record()); err == nil || p.Record() == nil {
			t.Errorf("%s: got %v, record %+v; want an error, and what is known of the record", why, err, p.Record())
		}
		if p.State.Loaded != p.Asked.IsRemoved() {
			t.Errorf("%s: known as read is %t", why, p.State.Loaded)
		}
	}
}
