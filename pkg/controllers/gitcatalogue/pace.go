package gitcatalogue

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// writtenPerSecond is how many bytes of one repository are written in the long run. Its server, and who may push to it, have no rights on
// the master: nothing else bounds what they write there.
const writtenPerSecond = 160 << 10

// pace has a commit wait for the time that the writes of the one before take at that rate. Core catalogues are not paced.
func (r *Reconciler) pace(_ context.Context, f *facts) loop.Outcome {
	left := f.memory.rests.Sub(r.options.Clock.Now())
	if len(f.plan.write) == 0 || left <= 0 || f.object.Spec.Type == v1.CatalogueCore {
		return nil
	}
	return loop.Waiting{
		Condition: v1.ConditionFetched, Reason: v1.ReasonDistributing, Recheck: left,
		Message: fmt.Sprintf("commit %s waits until %s, since much was written just now; the add-ons of commit %s stay",
			f.snapshot.Revision, f.memory.rests.UTC().Format(time.TimeOnly), f.lastGood()),
	}
}

// rest begins when a commit was written.
func (r *Reconciler) rest(f *facts) {
	bytes := -writtenPerSecond // small commits never wait
	for i := range f.plan.write {
		bytes += catalogue.Weigh(&f.plan.write[i].spec).Bytes
	}
	f.memory.rests = r.options.Clock.Now().Add(time.Duration(bytes) * time.Second / writtenPerSecond)
}
