package addoninstallation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

const (
	// previewTime limits one preview, however slow the user cluster is.
	previewTime = 8 * time.Second
	// previewRetry is when a preview that is pending can be asked for again.
	previewRetry = 2 * time.Second
	// mostRehearsed is how many objects of a preview are tried in the user cluster.
	mostRehearsed = 200
)

// Previewer computes previews: what installations would become. It takes the steps of a reconciliation up to the one that records
// something, with dependencies that write nothing (unwritten.go).
type Previewer struct {
	reconciler *Reconciler
	records    Records
}

// NewPreviewer makes a Previewer that shares caches, content, connections and renderings with the controller of these dependencies.
func NewPreviewer(of Dependencies) *Previewer {
	records := of.Records
	of.Client, of.Records = unwritten{Reader: of.Client}, unsaved{of.Records}
	of.Recorder = &events.FakeRecorder{} // without a channel it drops events
	of.Seen = unnoted{of.Seen}
	limited := &oneEach{Keeper: of.Renders, values: of.Values, goesOn: map[string]string{}}
	of.Renders, of.Values = limited, limited
	of.Access, of.AccessHeld, of.PullSecret, of.Metrics, of.QueueMetrics = nil, nil, nil, nil, nil
	return &Previewer{New(of), records}
}

// Preview returns the result of an installation with this metadata, spec and status. An installation without a creation time is new.
// With isLive, the user cluster checks the objects that would be written.
func (p *Previewer) Preview(
	ctx context.Context, installation *kubermaticv1.AddonInstallation, isLive bool,
) (preview.Preview, error) {
	within, end := limitedTo(remote.Within(ctx, "one preview", remote.PassTotals), previewTime)
	defer end()
	r, object := p.reconciler, installation.DeepCopy()
	if object.CreationTimestamp.IsZero() {
		object.CreationTimestamp = metav1.NewTime(r.Clock.Now())
	}
	f := r.factsWith(object, newMemory(object))
	f.live = loop.Start(r.Client, object)
	defer r.clusters.forget(client.ObjectKeyFromObject(object))
	outcome := goes(object)
	if outcome == nil {
		outcome = f.overdue(within, r.run(within, f, foresee))
	}
	record := f.run.Record()
	if record != nil && outcome.Is(loop.Done) {
		whole, err := f.run.ReadWhole(within, record)
		if err != nil {
			outcome = failed(err)
		} else {
			record = whole
		}
	}
	seen, err := f.foreseen(record)
	if err != nil {
		return preview.Preview{}, err
	}
	made := f.preview(outcome, seen)
	if isLive && made.State == preview.StateComplete {
		made.AddLive(r.rehearse(within, f, seen.shown))
	}
	return made, nil
}

// rehearse has the user cluster check the objects that would be written.
func (r *Reconciler) rehearse(ctx context.Context, f *facts, shown preview.Shown) preview.Live {
	found, err := f.run.Rehearse(ctx, wantedRecord(f), mostRehearsed)
	live := preview.Live{Checked: found.Checked, Unchecked: found.Unchecked}
	for _, note := range found.Notes {
		live.Problems = append(live.Problems, preview.Problem{
			Kind: note.Key.Kind, Group: note.Key.Group, Namespace: shown.Hide(note.Key.Namespace), Name: shown.Hide(note.Key.Name),
			Reason: note.Reason, Message: shown.HideLeaf(shown.Hide(note.Message)),
		})
	}
	if err != nil {
		live.Message = shown.HideLeaf(shown.Hide(f.overdue(ctx, r.callFailed(f, kubermaticv1.ConditionApplied, err)).Message))
	}
	return live
}

// limitedTo is a context that ends after a time, as that of a reconciliation does. It has no deadline: a call that exceeds one counts as a
// failure of its connection, which all installations of the cluster share.
func limitedTo(ctx context.Context, after time.Duration) (within context.Context, end func()) {
	within, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(after, func() { cancel(&fairqueue.OverdueError{After: after}) })
	return within, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// goes ends the preview of an installation that is being deleted.
func goes(object *kubermaticv1.AddonInstallation) *loop.Outcome {
	if !isRemoved(object) {
		return nil
	}
	return waiting(kubermaticv1.ReasonRemoving, "the installation is being deleted: wait until it is gone", 0)
}

// staysPinned ends a preview for which only the record has the content: nothing would be rendered.
func staysPinned(_ context.Context, f *facts) *loop.Outcome {
	if f.pinned == "" {
		return nil
	}
	return loop.Wait(kubermaticv1.ConditionCompatible, kubermaticv1.ReasonPinned, f.pinned, 0)
}

// foreseen is what a preview compares, and what it must not show.
type foreseen struct {
	before, after []preview.Rendered
	digest        string
	shown         preview.Shown
}

// foreseen compares with a record, which is nil before the first, and light where no objects are shown.
func (f *facts) foreseen(record *revision.Record) (seen foreseen, err error) {
	if record != nil {
		seen.digest = record.ObjectsDigest
		if seen.before, err = ofRecord(record); err != nil {
			return seen, err
		}
	}
	seen.after = seen.before
	if !f.run.Decision.IsRecorded() {
		seen.digest = apply.ObjectsDigest(f.run.Objects)
		if seen.after, err = withHooks(rendered(f.run.Objects), f.run.Hooks); err != nil {
			return seen, err
		}
	}
	seen.shown = f.shows(slices.Concat(seen.before, seen.after), record)
	return seen, nil
}

// shows says what may be shown of objects and of the values of records, which may be nil.
func (f *facts) shows(objects []preview.Rendered, records ...*revision.Record) preview.Shown {
	secret, masked := f.secretLayers(), ""
	for _, record := range records {
		masked = cmp.Or(masked, f.secretBy(record))
		if record != nil {
			secret = append(secret, secretValues(record)...)
		}
	}
	names, leaves := calls.MaskOf(secret), calls.MaskOf(slices.Concat(secret, secretsIn(objects)))
	return preview.Shown{
		Masked: masked, Hide: func(text string) string { return names.Text(f.hides().Text(text)) }, HideLeaf: leaves.Text,
	}
}

func ofRecord(record *revision.Record) ([]preview.Rendered, error) {
	objects, err := revision.DecodeObjects(record.Objects)
	if err != nil {
		return nil, err
	}
	return withHooks(rendered(objects), record.Hooks)
}

// secretBy says why no leaves may be shown; "" if they may. What a template made of a secret can't be told from other leaves, and a caller
// may have no right to read the objects that spec.valuesFrom names.
func (f *facts) secretBy(record *revision.Record) string {
	object := f.installation
	isGranted := object.Annotations[kubermaticv1.AnnotationPlatformValues] != ""
	switch {
	case object.Spec.CoreAddon || f.choice.Core || record != nil && record.Core:
		return "templates of Core add-ons may see secrets of the cluster"
	case len(object.Spec.ValuesFrom) > 0:
		return "some values come from objects that spec.valuesFrom names"
	case f.choice.Version != nil && len(f.choice.Version.ValuesFrom) > 0:
		return "some values come from objects that valuesFrom of the version names"
	case isGranted || record != nil && record.PlatformValues != "":
		return "some values are the platform's"
	case record != nil && slices.ContainsFunc(slices.Collect(maps.Values(record.Origins)), isSecretOrigin):
		return "some values of the recorded revision came from objects that spec.valuesFrom named"
	case f.run.Foreign != nil:
		return "a Helm release is adopted, which may contain secrets"
	}
	return ""
}

// isSecretOrigin says whether values of an origin may be secret: those of the platform, and of objects that valuesFrom of the installation
// or of the version names.
func isSecretOrigin(origin string) bool {
	return origin == values.OriginPlatform || strings.Contains(origin, "valuesFrom[")
}

// secretLayers are the values that are secret, so that no name and no key shows them.
func (f *facts) secretLayers() (found []any) {
	for _, layer := range f.values.Layers {
		if isSecretOrigin(layer.Origin) {
			found = append(found, layer.Values)
		}
	}
	if f.choice.Version != nil && f.choice.SeesSecrets() {
		found = append(found, templatedata.SecretsOf(f.data))
	}
	return found
}

func secretValues(record *revision.Record) (found []any) {
	for _, origin := range record.Origins {
		if isSecretOrigin(origin) {
			found = append(found, values.Origins(record.Origins).Of(record.Values, origin)...)
		}
	}
	return found
}

// secretsIn are the texts of the Secrets among objects.
func secretsIn(objects []preview.Rendered) (found []any) {
	for _, one := range objects {
		for _, text := range render.SecretTexts(unstructuredOf(one)) {
			found = append(found, text)
		}
	}
	return found
}

// preview says what was found. An outcome that is not Done says why there are no objects.
func (f *facts) preview(outcome *loop.Outcome, seen foreseen) preview.Preview {
	made := preview.Preview{
		Namespace: f.installation.Namespace, Name: f.installation.Name, Addon: addonOf(f.installation), Cluster: f.cluster.Name,
		State: preview.StateComplete,
	}
	if f.choice.Version != nil {
		made.Version = f.choice.Version.Version
	}
	if f.run.State.Loaded {
		made.Installed = installedVersion(f)
	}
	if f.selected != nil {
		made.AvailableUpdate = f.selected.availableUpdate
	}
	for _, warning := range []string{unknownKeys(f.installation, f.values), f.leftOut()} {
		if warning != "" {
			made.Warnings = append(made.Warnings, seen.shown.Hide(warning))
		}
	}
	if f.values.Merged != nil {
		made.AddValues(f.values.Merged, f.values.Origins, seen.shown)
	}
	if !outcome.Is(loop.Done) {
		made.State, made.Condition, made.Reason = preview.StateRefused, outcome.Condition, outcome.Reason
		made.Message = seen.shown.Hide(outcome.Message)
		if f.isPending(outcome) {
			made.State, made.RetryAfter = preview.StatePending, int(previewRetry/time.Second)
		}
		return made
	}
	made.AddObjects(seen.before, seen.after, seen.shown)
	if seen.shown.Masked == "" {
		made.ObjectsDigest = seen.digest
	}
	return made
}

// isPending says whether the reason for an outcome ends by itself soon.
func (f *facts) isPending(outcome *loop.Outcome) bool {
	takesTime := []string{kubermaticv1.ReasonFetching, kubermaticv1.ReasonRendering, kubermaticv1.ReasonProgressing}
	return outcome.Is(loop.Checkpoint) || f.connecting || slices.Contains(takesTime, outcome.Reason)
}

// withHooks adds hooks to objects.
func withHooks(objects []preview.Rendered, run []hooks.Hook) ([]preview.Rendered, error) {
	decoded, err := hooks.Objects(run)
	if err != nil {
		return nil, fmt.Errorf("decoding hooks: %w", err)
	}
	for i, object := range decoded {
		objects = append(objects, preview.Rendered{Unstructured: object, Hook: run[i].Path})
	}
	return objects, nil
}
