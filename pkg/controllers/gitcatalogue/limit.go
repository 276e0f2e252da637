package gitcatalogue

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// limit refuses a commit by which Custom catalogues exceed their limit: admission does not check generated ones.
func (r *Reconciler) limit(ctx context.Context, f *facts) *loop.Outcome {
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
	if err := catalogue.CheckSpace(f.object.Name, others, before, after); err != nil {
		return f.waiting(v1.ReasonTooLarge, fmt.Sprintf("commit %s is refused: %v", f.snapshot.Revision, err))
	}
	return nil
}

// quotaRecheck is the time until a commit that exceeds a quota is tried again. It doubles with each try, up to recheck.
const quotaRecheck = time.Minute

// isBeyondQuota says whether a ResourceQuota refused a write.
func isBeyondQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// beyondQuota ends a reconciliation of a commit with more new add-ons than a quota allows. No dry run finds that: each is tried alone.
// The whole commit is tried again.
func (r *Reconciler) beyondQuota(f *facts, err error) *loop.Outcome {
	f.memory.beyondQuota++
	return r.refused(f, loop.Wait(v1.ConditionFetched, v1.ReasonTooLarge, fmt.Sprintf(
		"commit %s is not completely applied: some of its new add-ons may exist, and the others stay as they were: %s: "+
			"raise the quota (value quota.addonCatalogues of chart trellis-master), or delete catalogues; the next attempt is within 15 minutes, "+
			"or soon after annotation reconcile-at changes", f.snapshot.Revision, apiReason(err)),
		backoff.After(f.memory.beyondQuota, quotaRecheck, recheck)))
}
