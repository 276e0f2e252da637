package apply

import (
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// revisit has a rollout look at a definition again that was ready and whose kind is not served: it may have been deleted meanwhile.
// What was written of its kinds went with one that is made anew, and is written again.
func (r *Rollout) revisit() {
	lost, anew := map[string]bool{}, map[string]bool{}
	for _, it := range r.items {
		_, own := r.declared[it.object.GroupVersionKind()]
		if own && it.note != nil && it.note.Reason == kubermaticv1.ReasonWaitingForStage {
			lost[it.key.Group] = true
		}
	}
	for _, it := range r.items {
		if calls.IsCRD(it.object) {
			group := ownership.GroupOf(it.key)
			it.ready = it.ready && !lost[group]
			anew[group] = anew[group] || it.written > 0 && !it.done
		}
	}
	for _, it := range r.items {
		if _, own := r.declared[it.object.GroupVersionKind()]; own && anew[it.key.Group] {
			it.done, it.ready = false, false
		}
	}
}
