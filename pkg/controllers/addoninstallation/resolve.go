package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/values"
)

func addonOf(installation *kubermaticv1.AddonInstallation) string {
	return string(installation.Spec.AddonRef.Name)
}

func waiting(reason, message string, recheck time.Duration) loop.Outcome {
	return loop.Waiting{Condition: kubermaticv1.ConditionReady, Reason: reason, Message: message, Recheck: recheck}
}

// checkpoint has the status say what is under way; the next pass, which begins at once, goes on
// from there.
func checkpoint(condition, message string) loop.Outcome {
	return loop.Checkpoint{Condition: condition, Reason: kubermaticv1.ReasonProgressing, Message: message, AtOnce: true}
}

// failed is a call on the seed that failed.
func failed(err error) loop.Outcome { return outcomeOf(installer.Failed(err)) }

func (r *Reconciler) loadRecord(ctx context.Context, f *facts) loop.Outcome {
	return loaded(f, f.pass.Load(ctx))
}

// loaded is what comes of reading the record.
func loaded(f *facts, err error) loop.Outcome {
	if newer, ok := errors.AsType[*revision.NewerRecordError](err); ok {
		return loop.Stalled{
			Condition: kubermaticv1.ConditionReady, Reason: kubermaticv1.ReasonRecordFromNewerRelease,
			Message: newer.Error() + ": upgrade this seed's controller manager",
		}
	}
	_, f.damaged = errors.AsType[*revision.DamagedError](err)
	if err != nil {
		return failed(err)
	}
	return nil
}

// resolve chooses the version. A refusal ends the pass here, whether or not something is installed;
// what is installed is maintained all the same.
func (r *Reconciler) resolve(ctx context.Context, f *facts) loop.Outcome {
	key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addonOf(f.installation)}
	entry, err := r.Marks.Entry(ctx, r.Client, key)
	if err != nil {
		return failed(err)
	}
	installed := installedVersion(f)
	request := resolution.Request{
		Installation: f.installation, Installed: installed, Cluster: f.cluster,
		AllowPrereleases: r.Options.AllowPrereleases,
	}
	choice, refusal := request.Choose(entry)
	f.selected = &selected{target: installed, availableUpdate: choice.AvailableUpdate} // it stays at that without another
	if refusal != nil {
		return f.findOnRecord(request, entry, refusal)
	}
	f.choice = choice
	if choice.Leaves && f.installation.Status.Target != choice.Version.Version { // reported once
		f.left = fmt.Sprintf("version %q is left for version %q: a Core catalogue says so (annotation %s)",
			installed, choice.Version.Version, kubermaticv1.AnnotationLeaveVersions)
	}
	f.selected.target = choice.Version.Version
	return nil
}

// incompatible ends the pass with condition Compatible False. That the version was withdrawn is
// reported once.
func (f *facts) incompatible(reason, message string) loop.Outcome {
	before := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionCompatible)
	if reason == kubermaticv1.ReasonWithdrawn && (before == nil || before.Reason != reason) {
		f.withdrawn = message
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionCompatible, Reason: reason, Message: message}
}

// installedVersion is the version in the user cluster, of the same add-on, or "". status.version
// shows it.
func installedVersion(f *facts) string {
	return resolution.InstalledOnRecord(f.pass.Record(), addonOf(f.installation))
}

// resolveValues puts the layers of values together. Template data comes first: a catalogue may make
// values of it.
func (r *Reconciler) resolveValues(ctx context.Context, f *facts) loop.Outcome {
	of, seen, err := r.seenOfCAPI(ctx, f)
	if err == nil {
		f.data, err = r.templateData(ctx, f, of)
	}
	if err != nil {
		return dataOutcome(err)
	}
	f.values, err = f.choice.Values(ctx, f.installation, layers{r, f, seen})
	if err != nil {
		return valuesOutcome(err)
	}
	f.values.Granted = f.granted.Content
	return nil
}

// layers reads the layers of values for a pass.
type layers struct {
	r *Reconciler
	f *facts
	// capi is what valuesTemplates see of Cluster API.
	capi map[string]any
}

// FromTemplate renders the catalogue's valuesTemplate. Renderings are kept, so that one that
// changes nothing costs nothing.
func (l layers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.rendered(ctx, template, rendering.Tenant(l.f.cluster.UID, l.f.choice.Core))
}

// FromOwnTemplate renders the installation's valuesTemplate. Tenants write it, also for core
// add-ons, whose other renderings it must not share a process with.
func (l layers) FromOwnTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.rendered(ctx, template, rendering.Tenant(l.f.cluster.UID, false))
}

func (l layers) rendered(ctx context.Context, template, tenant string) (map[string]any, error) {
	return l.r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(l.f.installation), Tenant: tenant, Template: template, Data: l.f.data, CAPI: l.capi,
	}, l.r.waker(l.f.installation))
}

// FromPlatform are the values that a set grants, which an earlier step read.
func (l layers) FromPlatform() map[string]any { return l.f.platform }

// FromSource reads a marked object.
func (l layers) FromSource(ctx context.Context, source kubermaticv1.ValuesSource) (map[string]any, error) {
	return l.r.references().Values(ctx, l.f.installation.Namespace, source)
}

// valuesOutcome: what is wrong stays wrong until somebody edits what is watched; a valuesTemplate
// that ended a renderer is tried again in its time. Anything else may pass.
func valuesOutcome(err error) loop.Outcome {
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
	var missing *resolution.MissingValuesError
	var putOff *render.PutOffError
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
		}
	case errors.As(err, &missing):
		stalled.Reason = kubermaticv1.ReasonValuesMissing
	case errors.As(err, &putOff):
		stalled.Recheck = max(time.Until(putOff.Until), time.Second)
	case !render.Lasting(err) && !values.IsInvalid(err):
		return failed(err)
	}
	return stalled
}

// unknownKeys are what a user may have misspelt; empty for most.
func unknownKeys(installation *kubermaticv1.AddonInstallation, resolved resolution.Values) string {
	if len(resolved.Unknown) == 0 {
		return ""
	}
	return values.PlaceOf(installation) + ": " + strings.Join(resolved.Unknown, "; ")
}
