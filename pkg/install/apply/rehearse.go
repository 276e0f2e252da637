package apply

import (
	"context"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// Rehearsal is what dry runs of a rollout found.
type Rehearsal struct {
	// Checked counts the objects that the user cluster checked. Unchecked counts the other ones that would be written: there are too many,
	// the calls ended early, or only the revision brings their namespace or kind.
	Checked, Unchecked int
	// Notes have the objects that would be refused, or would have to wait.
	Notes []calls.Note
}

// Rehearse makes the writes of a rollout as dry runs, for the first objects at most. It writes nothing. It is called in place of Advance,
// and once. The rehearsal also has what was found before an error.
func (r *Rollout) Rehearse(ctx context.Context, target calls.Target, most int) (Rehearsal, error) {
	target.DryRun = true
	w, made, brought := r.writer(target), map[string]bool{}, registeredVersions(r.items)
	var tried []*item
	for _, it := range r.items {
		if calls.IsNamespace(it.object) {
			made[it.key.Name] = true
		}
		if !it.unchanged {
			tried = append(tried, it)
		}
	}
	err := calls.Each(ctx, tried[:min(len(tried), most)], func(ctx context.Context, it *item) error {
		r.setNamespace(w, it)
		return w.write(ctx, it)
	})
	found := Rehearsal{}
	for _, it := range tried {
		switch {
		case it.done:
			found.Checked++
		case it.note == nil, // it was not tried, or its call failed
			it.note.Reason == kubermaticv1.ReasonWaitingForStage,
			it.note.Reason == kubermaticv1.ReasonNamespaceMissing && made[it.key.Namespace],
			it.note.Reason == kubermaticv1.ReasonKindNotServed && brought[it.object.GroupVersionKind().GroupVersion()]:
			found.Unchecked++
		default:
			found.Checked++
			found.Notes = append(found.Notes, *it.note)
		}
	}
	return found, err
}
