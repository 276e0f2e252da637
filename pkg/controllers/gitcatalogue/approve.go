package gitcatalogue

import (
	"context"
	"fmt"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// approve holds a commit that removes much until an admin names it, and says who uses it.
func (r *Reconciler) approve(ctx context.Context, f *facts) loop.Outcome {
	removed, approved := len(f.plan.remove), f.object.Annotations[v1.AnnotationApproveRevision]
	if !needsApproval(removed, len(f.have)) || approved == f.snapshot.Revision {
		return nil
	}
	hint := ""
	if approved != "" && strings.HasPrefix(f.snapshot.Revision, approved) {
		hint = "; it has the first characters of it only, which another commit could be made to have too"
	}
	return f.waiting(v1.ReasonRevisionNeedsApproval, fmt.Sprintf(
		"commit %s takes %d of %d add-ons out: annotate the catalogue with %s=%s if that is meant%s; %s",
		f.snapshot.Revision, removed, len(f.have), v1.AnnotationApproveRevision, f.snapshot.Revision, hint, r.used(ctx, f)))
}

// needsApproval: all of what there was, or more than five and more than half.
func needsApproval(removed, before int) bool {
	return removed > 0 && (removed == before || removed > 5 && removed*2 > before)
}
