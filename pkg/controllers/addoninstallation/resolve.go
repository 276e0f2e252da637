package addoninstallation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/rendering"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/templatedata"
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
	if newer, ok := errors.AsType[*revision.NewerFormatError](err); ok {
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
	f.content = resolution.ContentOnRecord(f.pass.Record(), entry)
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
	data, err := r.templateData(ctx, f)
	if err != nil {
		return dataOutcome(err)
	}
	f.data = data
	f.values, err = f.choice.Values(ctx, f.installation, layers{r, f})
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
}

// FromTemplate renders the catalogue's valuesTemplate. Renderings are kept, so that one that
// changes nothing costs nothing.
func (l layers) FromTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(l.f.installation), Tenant: rendering.Tenant(l.f.cluster.UID, l.f.choice.Core), Template: template, Data: l.f.data,
	}, l.r.waker(l.f.installation))
}

// FromOwnTemplate renders the installation's valuesTemplate. Tenants write it, also for core
// add-ons, whose other renderings it must not share a process with.
func (l layers) FromOwnTemplate(ctx context.Context, template string) (map[string]any, error) {
	return l.r.Values.RenderValues(ctx, render.ValuesInput{
		Addon: addonOf(l.f.installation), Tenant: rendering.Tenant(l.f.cluster.UID, false), Template: template, Data: l.f.data,
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
	case !render.Lasting(err) && !isInvalid(err):
		return failed(err)
	}
	return stalled
}

// isInvalid says whether an error is about values or a form, and not about a call that failed.
func isInvalid(err error) bool {
	var (
		decode   *values.DecodeError
		field    *values.FieldError
		reserved *values.ReservedKeyError
		tooLarge *values.LimitError
		marks    *values.MarksError
	)
	return errors.As(err, &marks) || errors.As(err, &decode) || errors.As(err, &field) ||
		errors.As(err, &reserved) || errors.As(err, &tooLarge)
}

// unknownKeys are what a user may have misspelt; empty for most.
func unknownKeys(installation *kubermaticv1.AddonInstallation, resolved resolution.Values) string {
	if len(resolved.Unknown) == 0 {
		return ""
	}
	return values.PlaceOf(installation) + ": " + strings.Join(resolved.Unknown, "; ")
}

// Platform knows what the seed has beside Clusters.
type Platform interface {
	// TemplateData is what templates see, without secrets.
	TemplateData(ctx context.Context, cluster target.Description, variables map[string]any) (templatedata.Data, error)
	// IsProvider says whether providerRef may name the kind; ProviderSecret is the Secret that an
	// object of it names.
	IsProvider(kind schema.GroupKind) bool
	ProviderSecret(ctx context.Context, kind schema.GroupKind, key types.NamespacedName) (string, error)
	// KKPAddon is KKP's own Addon of a name in a cluster; nil for none.
	KKPAddon(ctx context.Context, cluster target.Ref, name string) (*metav1.PartialObjectMetadata, error)
	// Subscribe calls back at changes of all of that.
	Subscribe(changed func(cluster.Change))
}

// ClusterSecrets adds to template data the Secrets that a Cluster itself refers to, for add-ons of
// Core catalogues.
type ClusterSecrets interface {
	AddTo(ctx context.Context, data templatedata.Data, cluster target.Description) (templatedata.Data, error)
}

// templateData is what templates see. Secrets are in it for versions of Core catalogues that ask
// for them.
func (r *Reconciler) templateData(ctx context.Context, f *facts) (templatedata.Data, error) {
	data, err := r.Platform.TemplateData(ctx, f.cluster, r.Options.Variables[addonOf(f.installation)])
	if err != nil || !f.choice.SeesSecrets() {
		return data, err
	}
	return r.ClusterSecrets.AddTo(ctx, data, f.cluster)
}

// dataOutcome: no event says when a Cluster's Secrets come, so they are read again.
func dataOutcome(err error) loop.Outcome {
	var (
		version    *templatedata.VersionError
		credential *templatedata.MissingCredentialError
		secret     *cluster.MissingSecretError
		kubeconfig *cluster.NoKubeconfigError
		several    *cluster.SeveralConfigurationsError
	)
	switch {
	case errors.As(err, &version):
		return loop.Stalled{Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesInvalid, Message: err.Error()}
	case errors.As(err, &credential), errors.As(err, &secret), errors.As(err, &kubeconfig), errors.As(err, &several):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionValuesResolved, Reason: kubermaticv1.ReasonValuesMissing, Message: err.Error(),
			Recheck: clusterRecheck,
		}
	}
	return failed(err)
}

// watchPlatform wakes the installations that a change is about.
func (r *Reconciler) watchPlatform(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Platform.Subscribe(func(change cluster.Change) {
		for _, request := range r.ofChange(ctx, change) {
			queue.Add(request)
		}
	})
	return nil
}

// ofChange: a provider's object wakes those that name it, the rest all that see the same.
func (r *Reconciler) ofChange(ctx context.Context, change cluster.Change) []reconcile.Request {
	var options []client.ListOption
	if change.Cluster.Namespace != "" {
		options = append(options, cluster.InstallationsOf(change.Cluster))
	}
	if change.Kind == cluster.KindKKPAddon {
		return r.requests(ctx, cluster.InstallationsOf(change.Cluster), client.MatchingFields{indexAddon: change.Name})
	}
	if !r.Platform.IsProvider(change.Kind) {
		return r.requests(ctx, options...)
	}
	var requests []reconcile.Request
	for _, installation := range r.installations(ctx, options...) {
		for _, source := range installation.Spec.ValuesFrom {
			if ref := source.ProviderRef; ref != nil && resolution.ProviderKind(ref) == change.Kind && ref.Name == change.Name {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&installation)})
				break
			}
		}
	}
	return requests
}
