package gitcatalogue

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

// recheck is the delay until a reconciliation without an event. The store forgets unused content after an hour.
const recheck = 15 * time.Minute

// facts are the findings of one reconciliation; each step adds to them.
type facts struct {
	object *v1.AddonCatalogue
	memory *memory
	// have are the existing generated catalogues by name, shared with the cache: only read.
	have     map[string]*v1.AddonCatalogue
	snapshot fetch.Snapshot
	content  *documents.Content
	plan     plan
	// isCurrent is set when the existing catalogues are those of the content.
	isCurrent bool
}

func (r *Reconciler) steps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "list", Run: r.list},           // the existing generated catalogues
		{Name: "fetch", Run: r.fetch},         // the content, from the store
		{Name: "unchanged", Run: r.unchanged}, // ends if content and generated catalogues are unchanged
		{Name: "read", Run: r.read},           // parse files into add-ons
		{Name: "plan", Run: r.plan},           // the writes and removals
		{Name: "pace", Run: r.pace},           // continuous changes are written at a limited rate
		{Name: "limit", Run: r.limit},         // the limit of all Custom catalogues together
		{Name: "approve", Run: r.approve},     // the removal of many add-ons needs an approval
		{Name: "rehearse", Run: r.rehearse},   // no write fails for its content
		{Name: "write", Run: r.write},         // new and changed catalogues
		{Name: "remove", Run: r.remove},       // catalogues that the commit does not have
		{Name: "remember", Run: r.remember},   // the result for the content
	}
}

// leavingSteps are for a catalogue that is not in git, or not any more.
func (r *Reconciler) leavingSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "list", Run: r.list},
		{Name: "remove", Run: r.removeAll},
	}
}

// outrun is the delay if the cache was behind.
const outrun = time.Second

// failed is the outcome of a failed call to the master's API server.
func failed(what string, err error) *loop.Outcome {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return loop.Wait(v1.ConditionFetched, v1.ReasonFetching, "the generated catalogues are being written", outrun)
	}
	return &loop.Outcome{
		Kind: loop.RetryAt, Condition: v1.ConditionFetched, Reason: v1.ReasonFailed, Recheck: 2 * time.Second,
		Message: fmt.Sprintf("%s failed; trying again: %s", what, apiReason(err)),
	}
}
