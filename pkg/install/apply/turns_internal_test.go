package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
)

// TestWhatWasSearchedInVainLetsOthersGoFirst fails if an object that is always refused is searched again before others
// had their turn, or never again.
func TestWhatWasSearchedInVainLetsOthersGoFirst(t *testing.T) {
	refused, queued := &item{object: &unstructured.Unstructured{}}, &item{object: &unstructured.Unstructured{}}
	rollout := &Rollout{items: []*item{refused, queued}}
	may := func(w *writer, it *item) bool {
		found, err := w.maySearch(t.Context(), calls.Client{}, it, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if may(&writer{runs: maxDryRuns}, queued) || !queued.queued || !queued.waiting || queued.note == nil {
		t.Errorf("without dry runs left it does not wait: %+v", queued)
	}
	refused.inVain = true
	rollout.forgetNotes()
	w := &writer{runs: maxDryRuns - 1}
	if may(w, refused) || refused.note != nil || !may(w, queued) {
		t.Error("the one that was searched in vain does not let the other go first")
	}
	rollout.forgetNotes()
	if !may(w, refused) {
		t.Error("it does not have its turn again")
	}
}
