package addoninstallation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// slowestHookLook is the longest wait between two looks at a hook that runs.
const slowestHookLook = 5 * time.Second

// prepareHooks makes the hooks of a chart ready as its objects are: images, namespaces, labels. Two events may have hooks of
// one name, so each is prepared by itself. Helm does not mark hooks as its own, so neither do we.
func (r *Reconciler) prepareHooks(f *facts) ([]hooks.Hook, error) {
	if f.rendered.Chart == nil {
		return nil, nil
	}
	var found []hooks.Hook
	for _, hook := range f.rendered.Chart.Hooks {
		alone := []*unstructured.Unstructured{hook.Object}
		r.Images.Rewrite(alone)
		prepared, err := apply.Prepare(alone, f.connection.Mapper, apply.Options{
			Owner: f.owner, TargetNamespace: f.installation.Spec.TargetNamespace,
		})
		if err != nil {
			return nil, fmt.Errorf("the hook of %q: %w", hook.Path, err)
		}
		encoded, err := json.Marshal(prepared[0].Object)
		if err != nil {
			return nil, fmt.Errorf("encoding the hook of %q: %w", hook.Path, err)
		}
		found = append(found, hooks.Hook{
			Path: hook.Path, Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies, LogPolicies: hook.LogPolicies,
			Object: encoded,
		})
	}
	return found, nil
}

// preHooks is the gate of a rollout: what stands on the foundation waits for the hooks that run before it.
func (r *Reconciler) preHooks(f *facts) apply.Gate {
	return func(ctx context.Context) (bool, error) {
		f.held = r.runHooks(ctx, f, f.record().Action.Pre())
		return f.held == nil, nil
	}
}

// postHooks runs the hooks that follow the writes. They don't wait for health, as with `helm install`; where the version is
// atomic they do, as with `helm install --atomic`.
func (r *Reconciler) postHooks(ctx context.Context, f *facts) loop.Outcome {
	if f.waitsForHealth() {
		return nil
	}
	return r.runHooks(ctx, f, f.record().Action.Post())
}

// lastHooks are the same for atomic versions.
func (r *Reconciler) lastHooks(ctx context.Context, f *facts) loop.Outcome {
	if outcome := r.runHooks(ctx, f, f.record().Action.Post()); outcome != nil {
		return r.orRollBack(ctx, f, outcome)
	}
	return r.settle(ctx, f, f.health) // an atomic revision proved itself only now
}

func (f *facts) waitsForHealth() bool { return f.record().Atomic }

// runHooks goes on with the hooks of an event; nil where all of them did their work.
func (r *Reconciler) runHooks(ctx context.Context, f *facts, event string) loop.Outcome {
	if f.record().Action == "" || !f.record().HasHooks(event) {
		return nil
	}
	r.copyHelm(ctx, f)
	outcome := r.advanceHooks(ctx, f, event)
	if f.memory.loaded { // else nobody knows what the seed has
		r.copyHelm(ctx, f)
	}
	return outcome
}

// advanceHooks runs hooks as far as they go without waiting.
func (r *Reconciler) advanceHooks(ctx context.Context, f *facts, event string) loop.Outcome {
	record := f.record()
	var unsaved error
	runner := hooks.Runner{
		Target: f.target(), Timeout: record.Timeout.Duration, Now: f.now, Adopt: f.adopts(),
		AskedFor: f.installation.Annotations[kubermaticv1.AnnotationReconcileAt],
		Save: func(ctx context.Context) error {
			f.memory.hookLooks = 0
			unsaved = r.saveHooks(ctx, f, record)
			return unsaved
		},
		Skipped: func(message string) {
			r.Recorder.Eventf(f.installation, nil, "Normal", kubermaticv1.EventHookSkipped, "RunHook", "%s", message)
		},
	}
	progress, err := runner.Run(ctx, record.HooksRevision(), event)
	switch {
	case unsaved != nil:
		f.memory.doubt()
		return failed(unsaved)
	case err != nil:
		return r.remoteFailed(f, kubermaticv1.ConditionApplied, err)
	case progress.Done:
		return nil
	case progress.Failed != "":
		return hookFailed(f, progress)
	}
	f.memory.hookLooks++
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonHookRunning, Message: progress.Waiting,
		Recheck: min(stageWait(f.memory.hookLooks), slowestHookLook),
	}
}

// hookFailed tells of a failed attempt.
func hookFailed(f *facts, progress hooks.Progress) loop.Outcome {
	f.hookRetries = retries{int32(progress.Attempt), progress.Retry}
	return loop.Waiting{
		Condition: kubermaticv1.ConditionApplied, Reason: kubermaticv1.ReasonHookFailed,
		Message: fmt.Sprintf("%s; attempt %d, tried again at %s, or once the add-on, its values or annotation %s change",
			progress.Failed, progress.Attempt, progress.Retry.UTC().Format(time.RFC3339), kubermaticv1.AnnotationReconcileAt),
		Recheck: max(progress.Retry.Sub(f.now), time.Second),
	}
}

// readWhole gives a record with its objects and manifest: itself, or what the seed has of one that is kept in memory without
// them. Another revision, or one in another state, is somebody else's doing.
func (r *Reconciler) readWhole(ctx context.Context, f *facts, record *revision.Record) (*revision.Record, error) {
	if !record.IsLight() {
		return record, nil
	}
	stored, err := r.Records.Load(ctx, f.installation.Namespace, f.owner)
	if err != nil {
		return nil, err
	}
	if stored == nil || stored.Revision != record.Revision || stored.State != record.State {
		return nil, &revision.ConflictError{Secret: fmt.Sprintf("%s, revision %d", record.Installation, record.Revision)}
	}
	stored.Follow(record)
	return stored, nil
}

// saveHooks writes what hooks did, in whichever state the record is.
func (r *Reconciler) saveHooks(ctx context.Context, f *facts, record *revision.Record) error {
	whole, err := r.readWhole(ctx, f, record)
	if err != nil {
		return err
	}
	return r.save(ctx, f, whole)
}
