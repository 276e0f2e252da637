package gitcatalogue

import (
	"context"

	"k8s.io/utils/clock"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Refused has the API server refuse a commit of one catalogue with an outcome, and gives what the step pace says of that commit from then on.
func Refused(at clock.PassiveClock, spec v1.AddonCatalogueSpec, reported *loop.Outcome) (pace func() *loop.Outcome) {
	r := &Reconciler{options: Options{Clock: at}}
	f := &facts{
		object: &v1.AddonCatalogue{}, memory: &memory{}, snapshot: fetch.Snapshot{Revision: "abc"}, plan: plan{write: []child{{spec: spec}}},
	}
	r.refused(f, reported)
	return func() *loop.Outcome { return r.pace(context.Background(), f) }
}
