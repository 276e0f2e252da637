package addoninstallation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

func addonOf(f *facts) string { return string(f.installation.Spec.AddonRef.Name) }

// inputs are all that the objects depend on.
func (r *Reconciler) inputs(f *facts) (resolution.Inputs, error) {
	served, err := r.servedVersions(f)
	return resolution.Inputs{
		Installation: f.installation, Choice: f.choice, Content: f.snapshot.Digest, Values: f.values, Images: r.Images.Canonical(),
		Data: f.data, KubernetesVersion: f.cluster.KubernetesVersion, Served: served,
	}, err
}

// hashInputs finds which inputs these are.
func (r *Reconciler) hashInputs(f *facts) error {
	inputs, err := r.inputs(f)
	if err != nil {
		return err
	}
	if f.inputs, err = inputs.Hash(r.InputsKey); err != nil {
		return err
	}
	f.wanted, err = inputs.Wanted(r.InputsKey)
	return err
}

// render makes objects of content and values: those on record for an intent with these inputs, those that are kept, or new
// ones.
func (r *Reconciler) render(ctx context.Context, f *facts) loop.Outcome {
	anew := rendersAnew(f)
	switch {
	case f.Decision.IsApplied(), f.Decision.IsUnderWay():
		r.compareRendering(ctx, f, anew)
		return nil
	case f.Decision.Do == revision.GoBack:
		return outcomeOf(f.ReadIntent())
	}
	if outcome := r.releaseNameFree(ctx, f); outcome != nil {
		return outcome
	}
	if stop := f.CheckRelease(ctx, releaseName(f)); stop != nil {
		return outcomeOf(stop)
	}
	if f.Decision.FromRecord {
		return outcomeOf(f.ReadIntent())
	}
	if outcome := r.secretsAskedFor(f); outcome != nil {
		return outcome
	}
	if f.Decision.Unasked && f.Foreign == nil {
		if stays, outcome := r.staysAsRecorded(ctx, f); stays || outcome != nil {
			return outcome
		}
	}
	return r.renderChange(ctx, f, anew)
}

// renderChange renders what the next revision is to have, with what the user cluster serves but for what the content brings itself.
func (r *Reconciler) renderChange(ctx context.Context, f *facts, anew bool) loop.Outcome {
	seen := nextSight(f)
	found, outcome := r.lookup(ctx, f)
	if outcome != nil {
		return outcome
	}
	seen.found = found
	request, err := r.renderRequest(f, seen)
	if err != nil {
		return failed(err)
	}
	request.Anew = anew
	rendered, err := r.Renders.Render(ctx, request)
	if err != nil {
		return renderOutcome(err)
	}
	r.warnOfChanges(f, namesOf(f, rendered.Changed))
	made, outcome := r.prepare(f, rendered.Result)
	if outcome != nil {
		return outcome
	}
	f.use(made)
	again, err := r.learnsOwn(f)
	switch {
	case err != nil:
		return failed(err)
	case again:
		return r.renderChange(ctx, f, anew) // each time with fewer groups
	}
	return nil
}

func (r *Reconciler) renderInput(f *facts, seen sight) render.Input {
	input := render.Input{
		Addon: addonOf(f), Tenant: tenantOf(f), Content: f.snapshot.FS, Values: f.values.Merged, Data: f.data,
		Release: render.Release{
			Name: releaseName(f), Namespace: f.installation.Spec.TargetNamespace, Revision: seen.revision, IsInstall: seen.isInstall,
		},
		Found: seen.found, GuardFound: f.choice.Core, OtherMoment: seen.otherMoment,
		Capabilities: render.Capabilities{KubeVersion: f.cluster.KubernetesVersion},
	}
	if f.choice.Version.Template.Method == kubermaticv1.MethodHelm { // nobody else sees them, and there are hundreds
		input.Capabilities.APIVersions = served(f)
	}
	if f.choice.SeesSecrets() || f.choice.Core && len(seen.found) > 0 {
		input.CatalogueValues = f.values.Layers[0].Values
	}
	if f.choice.Version.Template.Helm != nil {
		input.Release.DisableHooks = f.choice.Version.Template.Helm.DisableHooks
	}
	return input
}

// renderOutcome: what comes with the inputs waits for other inputs, what took a renderer with it for its time, and the
// machine's trouble for the next try.
func renderOutcome(err error) loop.Outcome {
	var none *render.NoManifestsError
	var limit *render.LimitError
	var putOff *render.PutOffError
	var dependencies *render.DependenciesMissingError
	stalled := loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	switch {
	case errors.Is(err, render.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRendering, Message: err.Error(), Recheck: clusterRecheck,
		}
	case errors.As(err, &putOff):
		stalled.Reason, stalled.Recheck = kubermaticv1.ReasonLimitExceeded, max(time.Until(putOff.Until), time.Second)
	case errors.As(err, &none):
		stalled.Reason = kubermaticv1.ReasonNoManifests
	case errors.As(err, &limit):
		stalled.Reason = kubermaticv1.ReasonLimitExceeded
	case errors.As(err, &dependencies):
		stalled.Reason = kubermaticv1.ReasonDependenciesMissing
	case !render.Lasting(err):
		return loop.RetryAt{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonRenderFailed, Message: err.Error()}
	}
	return stalled
}

// prepared is a rendering that is ready for the user cluster.
type prepared struct {
	objects []*unstructured.Unstructured
	hooks   []hooks.Hook
	chart   *render.Chart
}

// use has a rendering be what the pass goes on with.
func (f *facts) use(made prepared) {
	f.Objects, f.Hooks, f.chart = made.objects, made.hooks, made.chart
}

// prepare makes rendered objects ready for the user cluster: images, namespaces, labels, limits.
func (r *Reconciler) prepare(f *facts, rendered render.Result) (made prepared, outcome loop.Outcome) {
	spec := f.installation.Spec
	options := apply.Options{
		Owner:           f.Owner,
		TargetNamespace: spec.TargetNamespace,
		CreateNamespace: spec.CreateNamespace && !catalogue.IsKubeNamespace(spec.TargetNamespace), // those are always there
		CRDs:            crdPolicy(f).Apply,
	}
	if rendered.Chart != nil {
		options.Helm = &ownership.HelmMarks{ReleaseName: releaseName(f), ReleaseNamespace: f.installation.Spec.TargetNamespace}
	}
	r.Images.Rewrite(rendered.Objects)
	objects, err := apply.Prepare(rendered.Objects, f.Connection.Mapper, options)
	if err == nil {
		made.hooks, err = r.prepareHooks(f, rendered.Chart)
	}
	reason := kubermaticv1.ReasonRenderFailed
	if _, beyond := errors.AsType[*apply.LimitError](err); beyond {
		reason = kubermaticv1.ReasonLimitExceeded
	}
	if err != nil {
		return prepared{}, loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: reason, Message: err.Error()}
	}
	made.objects, made.chart = objects, rendered.Chart
	return made, nil
}

// prepareHooks makes the hooks of a chart ready as its objects are: images, namespaces, labels. Two events may have hooks of
// one name, so each is prepared by itself. Helm does not mark hooks as its own, so neither do we.
func (r *Reconciler) prepareHooks(f *facts, chart *render.Chart) ([]hooks.Hook, error) {
	if chart == nil {
		return nil, nil
	}
	var found []hooks.Hook
	for _, hook := range chart.Hooks {
		alone := []*unstructured.Unstructured{hook.Object}
		r.Images.Rewrite(alone)
		prepared, err := apply.Prepare(alone, f.Connection.Mapper, apply.Options{
			Owner: f.Owner, TargetNamespace: f.installation.Spec.TargetNamespace,
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

// helmRecord is what the record says of the Helm release; nil for go-template.
func helmRecord(f *facts) *helmrelease.Release {
	chart := f.chart
	if chart == nil {
		return nil
	}
	helm := f.NextRelease(releaseName(f))
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// releaseNameFree refuses a release name that another installation of the cluster has in the same namespace already.
func (r *Reconciler) releaseNameFree(ctx context.Context, f *facts) loop.Outcome {
	name, spec := releaseName(f), f.installation.Spec
	if name == "" {
		return nil
	}
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	err := r.Client.List(ctx, list, cluster.InstallationsOf(f.cluster.Ref), client.MatchingFields{indexRelease: name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return failed(err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if isOlder(other, f.installation) && other.Spec.TargetNamespace == spec.TargetNamespace {
			return outcomeOf(installer.ReleaseTaken(other.Name, name, spec.TargetNamespace))
		}
	}
	return nil
}

// isOlder says which of two installations that want the same keeps it: the one made first, then the first by name. Of one
// installation with itself it says no.
func isOlder(a, b *kubermaticv1.AddonInstallation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// podSecurityPrefix begins the labels by which a Namespace says what its Pods may do.
const podSecurityPrefix = "pod-security.kubernetes.io/"

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// NotAllowedError says that an add-on of a Custom catalogue wants what it does not get.
type NotAllowedError struct {
	// Subject is the object, or the installation's field, as people write it.
	Subject string
	// Problem says what it wants, and what to do.
	Problem string
}

func (e *NotAllowedError) Error() string { return e.Subject + ": " + e.Problem }

// allowed refuses, before anything is recorded or written, what an add-on of a Custom catalogue may not have. What is applied
// already was allowed when it was, and stays.
func (r *Reconciler) allowed(_ context.Context, f *facts) loop.Outcome {
	if f.choice.Core || f.Decision.IsRecorded() {
		return nil
	}
	restrictions := r.Options.Restrictions
	run, broken := hooks.Objects(f.Hooks)
	if broken != nil {
		return failed(broken)
	}
	err := checkTarget(f.installation.Spec.TargetNamespace, restrictions)
	if err == nil {
		err = checkObjects(f.Objects, restrictions)
	}
	if err == nil {
		err = checkObjects(run, restrictions)
	}
	if err == nil {
		return nil
	}
	return loop.Stalled{Condition: kubermaticv1.ConditionRendered, Reason: kubermaticv1.ReasonNotAllowed, Message: err.Error()}
}

// checkTarget is for the namespace that the installation's user chose. The error is a *NotAllowedError.
func checkTarget(namespace string, restrictions catalogue.Restrictions) error {
	if problem := restrictions.Target(namespace); problem != "" {
		return &NotAllowedError{Subject: fmt.Sprintf("targetNamespace %q", namespace), Problem: problem}
	}
	return nil
}

// checkObjects is for everything that is written for a Custom catalogue's add-on, a chart's hooks too. It names the first
// object that is refused; the error is a *NotAllowedError.
func checkObjects(objects []*unstructured.Unstructured, restrictions catalogue.Restrictions) error {
	for _, object := range objects {
		if problem := problemOf(object, restrictions); problem != "" {
			return &NotAllowedError{Subject: nameOf(object), Problem: problem}
		}
	}
	return nil
}

// problemOf: Namespaces of Kubernetes itself are never an add-on's, whatever its seed lets in.
func problemOf(object *unstructured.Unstructured, restrictions catalogue.Restrictions) string {
	isNamespace := object.GroupVersionKind().GroupKind() == namespaceKind
	switch {
	case isNamespace && catalogue.IsKubeNamespace(object.GetName()):
		return "this Namespace is the cluster's own: take it out of the add-on, which may count on its being there"
	case restrictions.KubeNamespaces && catalogue.IsKubeNamespace(object.GetNamespace()):
		return closedBy(catalogue.RestrictKubeNamespaces, "objects in that namespace")
	case restrictions.PodSecurity && isNamespace && hasPodSecurity(object):
		return closedBy(catalogue.RestrictPodSecurity, "labels pod-security.kubernetes.io/*")
	}
	return ""
}

// closedBy names the restriction, and the two ways out.
func closedBy(restriction, what string) string {
	return fmt.Sprintf("this seed keeps %s for add-ons of Core catalogues (%s=%s): take it out of the add-on, or have the add-on put into one",
		what, catalogue.FlagRestrictions, restriction)
}

func hasPodSecurity(object *unstructured.Unstructured) bool {
	for key := range object.GetLabels() {
		if strings.HasPrefix(key, podSecurityPrefix) {
			return true
		}
	}
	return false
}
