package gitcatalogue

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// approve delays a commit that removes much until an admin names it, and reports which installations use the removed add-ons.
func (r *Reconciler) approve(ctx context.Context, f *facts) *loop.Outcome {
	removed, approved := len(f.plan.remove), f.object.Annotations[v1.AnnotationApproveRevision]
	if !needsApproval(removed, len(f.have)) || approved == f.snapshot.Revision {
		return nil
	}
	hint := ""
	if approved != "" && strings.HasPrefix(f.snapshot.Revision, approved) {
		hint = "; its present value has only the first characters of the commit, and another commit could begin with them too"
	}
	return f.waiting(v1.ReasonRevisionNeedsApproval, fmt.Sprintf(
		"commit %s removes %d of %d add-ons: annotate the catalogue with %s=%s if that is intended%s; %s",
		f.snapshot.Revision, removed, len(f.have), v1.AnnotationApproveRevision, f.snapshot.Revision, hint, r.used(ctx, f)))
}

// needsApproval: all add-ons are removed, or more than five and more than half.
func needsApproval(removed, before int) bool {
	return removed > 0 && (removed == before || removed > 5 && removed*2 > before)
}
