package gitcatalogue

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue/documents"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// recheck is when to come back without an event. The store forgets unused content after an hour.
const recheck = 15 * time.Minute

// facts are what one pass knows; each step adds to them.
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
		{Name: "list", Run: r.list},           // the generated catalogues that are there
		{Name: "fetch", Run: r.fetch},         // the content, from the store
		{Name: "unchanged", Run: r.unchanged}, // the same content again, and nobody changed what came of it: done
		{Name: "read", Run: r.read},           // files become add-ons
		{Name: "plan", Run: r.plan},           // what to write and what to remove
		{Name: "pace", Run: r.pace},           // what changes all the time is not written all the time
		{Name: "room", Run: r.room},           // Custom catalogues are bounded, all together
		{Name: "approve", Run: r.approve},     // the removal of many add-ons needs an approval
		{Name: "rehearse", Run: r.rehearse},   // no write fails for its content
		{Name: "write", Run: r.write},         // what is new or differs
		{Name: "remove", Run: r.remove},       // what the commit does not have
		{Name: "remember", Run: r.remember},   // what came of the content
	}
}

// leavingSteps are for a catalogue that is not in git, or not any more.
func (r *Reconciler) leavingSteps() []loop.Step[facts] {
	return []loop.Step[facts]{
		{Name: "list", Run: r.list},
		{Name: "remove", Run: r.removeAll},
	}
}

// outrun is when to come back where the cache was behind.
const outrun = time.Second

// failed is the outcome of a failed call to the master's API server.
func failed(what string, err error) loop.Outcome {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return loop.Waiting{
			Condition: v1.ConditionFetched, Reason: v1.ReasonFetching, Message: "the generated catalogues are being written", Recheck: outrun,
		}
	}
	return loop.RetryAt{
		Condition: v1.ConditionFetched, Reason: v1.ReasonFailed, After: 2 * time.Second,
		Message: fmt.Sprintf("%s failed and is tried again: %s", what, apiReason(err)),
	}
}
