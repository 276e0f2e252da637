package gitcatalogue

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// writtenPerSecond is how many bytes of one repository are written in the long run. Its server, and users who may
// push to it, have no rights on the master: there is no other limit on what they write there.
const writtenPerSecond = 160 << 10

// pace has a commit wait for the time that the writes of the previous one take at that rate. A commit that was refused waits for its
// own try. A commit that is partly written is completed. Core catalogues have no limit.
func (r *Reconciler) pace(_ context.Context, f *facts) *loop.Outcome {
	left := f.memory.rests.Sub(r.options.Clock.Now())
	if len(f.plan.write) == 0 || left <= 0 || f.object.Spec.Type == v1.CatalogueCore || f.memory.writing == f.snapshot.Revision {
		return nil
	}
	if f.memory.refused == f.snapshot.Revision {
		refusal := f.memory.refusal
		return refusal.Within(left, loop.Waiting)
	}
	return loop.Wait(v1.ConditionFetched, v1.ReasonDistributing, fmt.Sprintf(
		"commit %s waits until %s, since many catalogues were written shortly before; the add-ons of commit %s stay",
		f.snapshot.Revision, f.memory.rests.UTC().Format(time.TimeOnly), f.lastGood()), left)
}

// refused ends the reconciliation of a commit that the API server refused. A try costs as much as a write, and the reason stays in status
// until the next try.
func (r *Reconciler) refused(f *facts, outcome *loop.Outcome) *loop.Outcome {
	r.rest(f)
	outcome.Message = text.Message(outcome.Message)
	f.memory.refused, f.memory.refusal, f.memory.writing = f.snapshot.Revision, *outcome, ""
	return outcome
}

// rest starts the wait after a commit, before it is written, since a part of the writes may fail, or after it was tried.
func (r *Reconciler) rest(f *facts) {
	bytes := -writtenPerSecond // small commits never wait
	for i := range f.plan.write {
		bytes += catalogue.Weigh(&f.plan.write[i].spec).Bytes
	}
	f.memory.rests = r.options.Clock.Now().Add(time.Duration(bytes) * time.Second / writtenPerSecond)
}
