package gitcatalogue

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// room refuses a commit that makes Custom catalogues larger than they may be: admission does not see what is generated.
func (r *Reconciler) room(ctx context.Context, f *facts) loop.Outcome {
	if f.object.Spec.Type == v1.CatalogueCore {
		return nil
	}
	var all v1.AddonCatalogueList
	if err := r.cached.List(ctx, &all, client.InNamespace(r.options.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return failed("listing catalogues", err)
	}
	var before, after catalogue.Weight
	for _, child := range f.have {
		before = before.Plus(catalogue.WeighCached(child))
	}
	for i := range f.plan.children {
		after = after.Plus(catalogue.Weigh(&f.plan.children[i].spec))
	}
	others := func() catalogue.Weight { return r.scale.Others(all.Items, r.options.Namespace, f.object.Name) }
	if err := catalogue.CheckRoom(f.object.Name, others, before, after); err != nil {
		return f.waiting(v1.ReasonTooLarge, fmt.Sprintf("commit %s is not taken: %v", f.snapshot.Revision, err))
	}
	return nil
}

// quotaRecheck is the time between two tries of a commit for which a quota has no room.
const quotaRecheck = time.Minute

// isBeyondQuota says whether a ResourceQuota refused a write.
func isBeyondQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// beyondQuota ends a pass over a commit with more new add-ons than a quota has room for. No dry run finds that: each is tried by itself.
// The whole commit is tried again.
func (f *facts) beyondQuota(err error) loop.Outcome {
	return loop.Waiting{
		Condition: v1.ConditionFetched, Reason: v1.ReasonTooLarge, Recheck: quotaRecheck,
		Message: fmt.Sprintf("commit %s is not taken as a whole: some of its new add-ons may be there, and the others stay as they were: %s: "+
			"raise the quota (value quota.addonCatalogues of chart trellis-master), or delete catalogues: it is tried again each minute",
			f.snapshot.Revision, apiReason(err)),
	}
}
