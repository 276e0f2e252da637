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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values"
)

func addonOf(installation *kubermaticv1.AddonInstallation) string {
	return string(installation.Spec.AddonRef.Name)
}

func waiting(reason, message string, recheck time.Duration) *loop.Outcome {
	return loop.Wait(kubermaticv1.ConditionReady, reason, message, recheck)
}

// checkpoint shows the current action in the status; the next reconciliation begins at once and continues there.
func checkpoint(condition, message string) *loop.Outcome {
	return &loop.Outcome{
		Kind: loop.Checkpoint, Condition: condition, Reason: kubermaticv1.ReasonProgressing, Message: message, Recheck: loop.AtOnce,
	}
}

// failed is the outcome of a failed call on the seed; nil without an error.
func failed(err error) *loop.Outcome { return installer.Failed(err) }

func (r *Reconciler) loadRecord(ctx context.Context, f *facts) *loop.Outcome {
	return loaded(f, f.run.Load(ctx))
}

// loaded is the outcome of reading the record.
func loaded(f *facts, err error) *loop.Outcome {
	if newer, ok := errors.AsType[*revision.NewerRecordError](err); ok {
		return loop.Stall(kubermaticv1.ConditionReady, kubermaticv1.ReasonRecordFromNewerRelease,
			newer.Error()+": upgrade this seed's controller manager")
	}
	_, f.damaged = errors.AsType[*revision.DamagedError](err)
	return failed(err)
}

// resolve selects the version. A refusal ends the reconciliation here, whether or not a version is installed; an
// installed version is maintained.
func (r *Reconciler) resolve(ctx context.Context, f *facts) *loop.Outcome {
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
	f.selected = &selected{target: installed, availableUpdate: choice.AvailableUpdate} // without another version it stays at that
	if refusal != nil {
		return f.findOnRecord(request, entry, refusal)
	}
	f.choice = choice
	if choice.Leaves && f.installation.Status.Target != choice.Version.Version { // reported once
		f.left = fmt.Sprintf("version %q is replaced by version %q, as a Core catalogue requires (annotation %s)",
			installed, choice.Version.Version, kubermaticv1.AnnotationLeaveVersions)
	}
	f.selected.target = choice.Version.Version
	return nil
}

// incompatible ends the reconciliation with condition Compatible False. A withdrawn version is reported once.
func (f *facts) incompatible(reason, message string) *loop.Outcome {
	before := meta.FindStatusCondition(f.installation.Status.Conditions, kubermaticv1.ConditionCompatible)
	if reason == kubermaticv1.ReasonWithdrawn && (before == nil || before.Reason != reason) {
		f.withdrawn = message
	}
	return loop.Stall(kubermaticv1.ConditionCompatible, reason, message)
}

// installedVersion is the version in the user cluster, of the same add-on, or "". status.version
// shows it.
func installedVersion(f *facts) string {
	return resolution.InstalledOnRecord(f.run.Record(), addonOf(f.installation))
}

// resolveValues merges the layers of values. Template data comes first: a catalogue may render values from it.
func (r *Reconciler) resolveValues(ctx context.Context, f *facts) *loop.Outcome {
	f.configs = []configFact{}
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

// layers reads the layers of values for a reconciliation.
type layers struct {
	r *Reconciler
	f *facts
	// capi is the data of Cluster API for valuesTemplates.
	capi map[string]any
}

// FromTemplate renders the catalogue's valuesTemplate. Renderings are kept, so that an unchanged one costs nothing.
func (l layers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.rendered(ctx, template, rendering.Tenant(l.f.cluster.UID, l.f.choice.Core))
}

// FromOwnTemplate renders the installation's valuesTemplate. Tenants write it, also for core add-ons, so it must not
// share a process with other renderings of these.
func (l layers) FromOwnTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.rendered(ctx, template, rendering.Tenant(l.f.cluster.UID, false))
}

func (l layers) rendered(ctx context.Context, template, tenant string) (map[string]any, error) {
	return l.r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(l.f.installation), Tenant: tenant, Template: template, Data: l.f.data, CAPI: l.capi,
	}, l.r.waker(l.f.installation))
}

// FromPlatform are the values that a set grants, which step granted read.
func (l layers) FromPlatform() map[string]any { return l.f.platform }

// FromSource reads a marked object, or an object of an allowed kind.
func (l layers) FromSource(ctx context.Context, source kubermaticv1.ValuesSource) (resolution.Read, error) {
	if source.ObjectRef != nil {
		return l.fromObject(ctx, source.ObjectRef, kubermaticv1.ConfigOfInstallation)
	}
	found, err := l.r.references().Values(ctx, l.f.installation.Namespace, source)
	return resolution.Read{Values: found}, err
}

// valuesOutcome waits for an edit of watched objects if the values are wrong. A valuesTemplate that ended a renderer is
// retried after its delay, other errors soon.
func valuesOutcome(err error) *loop.Outcome {
	stalled := loop.Stall(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesInvalid, err.Error())
	var missing *resolution.MissingValuesError
	var putOff *render.PutOffError
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Wait(kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonRendering, err.Error(), clusterRecheck)
	case errors.As(err, &missing):
		stalled.Reason = kubermaticv1.ReasonValuesMissing
		if missing.IsUnwatched {
			stalled.Recheck = clusterRecheck
		}
	case errors.As(err, &putOff):
		stalled.Recheck = max(time.Until(putOff.Until), time.Second)
	case !render.Lasting(err) && !values.IsInvalid(err):
		return failed(err)
	}
	return stalled
}

// unknownKeys are keys that a user may have misspelt; mostly empty.
func unknownKeys(installation *kubermaticv1.AddonInstallation, resolved resolution.Values) string {
	if len(resolved.Unknown) == 0 {
		return ""
	}
	return values.PlaceOf(installation) + ": " + strings.Join(resolved.Unknown, "; ")
}
