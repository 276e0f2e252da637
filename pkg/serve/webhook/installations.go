package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Finder finds the cluster of a Ref. It fails if there is not exactly one, or if a read fails.
type Finder interface {
	Find(ctx context.Context, ref target.Ref) (target.Description, error)
}

// Installations checks AddonInstallations.
type Installations struct {
	// Reader reads merged catalogues, installations and namespaces from a cache.
	Reader client.Reader
	// Marks recognises valid merged catalogues.
	Marks *mergedcatalogue.Marks
	// Clusters finds an installation's cluster in a cache.
	Clusters Finder
	// CatalogueNamespace has the merged catalogues.
	CatalogueNamespace string
	// AllowPrereleases is the platform's, as for the controllers.
	AllowPrereleases bool
	// Restrictions of the seed, as for the controllers.
	Restrictions catalogue.Restrictions
}

// Handle implements admission.Handler.
func (i *Installations) Handle(ctx context.Context, request admission.Request) admission.Response {
	found, err := decode[v1.AddonInstallation](request)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case request.Operation == admissionv1.Delete && found.before != nil:
		return i.deletion(ctx, request, found.before)
	case found.after == nil:
		return allowed()
	}
	warnings, err := i.check(ctx, found)
	if err != nil {
		return invalid(request, found.after, err)
	}
	return allowed(append(droppedNulls(request), warnings...)...)
}

// sameQuestion says that an update changes neither add-on nor cluster nor values nor dependencies: pausing, a removal
// and the controller's own completion must work even if the values have become invalid.
func sameQuestion(found change[v1.AddonInstallation]) bool {
	if found.before == nil {
		return false
	}
	before, after := &found.before.Spec, &found.after.Spec
	return before.AddonRef == after.AddonRef && before.ClusterName == after.ClusterName && before.ValuesTemplate == after.ValuesTemplate &&
		equality.Semantic.DeepEqual(before.ValuesFrom, after.ValuesFrom) && slices.Equal(before.DependsOn, after.DependsOn) &&
		bytes.Equal(rawOf(before.Values), rawOf(after.Values))
}

func rawOf(raw *runtime.RawExtension) []byte {
	if raw == nil {
		return nil
	}
	return raw.Raw
}

// check refuses an installation that can never work, and warns about one that would not work now.
func (i *Installations) check(ctx context.Context, sent change[v1.AddonInstallation]) (warnings []string, err error) {
	object := sent.after
	if err := i.checkShare(ctx, sent); err != nil {
		return nil, err
	}
	if object.DeletionTimestamp != nil || sameQuestion(sent) {
		return nil, nil
	}
	if err := i.checkOrder(ctx, sent); err != nil {
		return nil, err
	}
	given, err := checkSpec(&object.Spec)
	if err != nil {
		return nil, err
	}
	warnings = credentialWarnings(given)
	entry, more := i.entry(ctx, object)
	warnings = append(warnings, more...)
	if entry == nil {
		return warnings, nil
	}
	more, err = i.checkTarget(entry, sent)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, more...)
	choice, more, err := i.version(ctx, entry, sent)
	if err != nil {
		return nil, fmt.Errorf("spec.addonRef.version: %w", err)
	}
	warnings = append(warnings, more...)
	if choice.Version == nil {
		return warnings, nil
	}
	found, err := choice.Values(ctx, object, nil)
	if own, ok := errors.AsType[*resolution.OwnTemplateError](err); ok {
		return nil, fmt.Errorf("for version %q of add-on %q: %w", choice.Version.Version, object.Spec.AddonRef.Name, own)
	}
	if marks, ok := errors.AsType[*values.MarksError](err); ok {
		err = marks // without the path, which follows
	}
	if err != nil {
		return nil, fmt.Errorf("%s, for version %q of add-on %q: %w",
			values.PlaceOf(object), choice.Version.Version, object.Spec.AddonRef.Name, err)
	}
	for _, unknown := range found.Unknown {
		warnings = append(warnings, values.PlaceOf(object)+": "+unknown)
	}
	return warnings, nil
}

// checkSpec refuses errors that no catalogue and no cluster can correct, and returns the values.
func checkSpec(spec *v1.AddonInstallationSpec) (given map[string]any, err error) {
	if given, err = values.Decode(rawOf(spec.Values)); err != nil {
		return nil, fmt.Errorf("spec.values: %w", err)
	}
	if _, _, err := values.Merge([]values.Layer{{Origin: "spec.values", Values: given}}); err != nil {
		return nil, fmt.Errorf("spec.values: %w", err)
	}
	for n := range spec.ValuesFrom {
		if err := values.CheckSource(&spec.ValuesFrom[n]); err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", n, err)
		}
	}
	if err := values.ParseTemplate(spec.ValuesTemplate); err != nil {
		return nil, fmt.Errorf("spec.valuesTemplate: %w", err)
	}
	if wanted := spec.AddonRef.Version; catalogue.IsRange(wanted) {
		if _, err := catalogue.ParseRange(wanted); err != nil {
			return nil, fmt.Errorf("spec.addonRef.version: %w", err)
		}
	}
	return given, nil
}

// checkOrder refuses dependencies by which the installation would depend on itself. A missing one may be created
// later. If installations can't be read, the controller reports it.
func (i *Installations) checkOrder(ctx context.Context, sent change[v1.AddonInstallation]) error {
	object := sent.after
	if len(object.Spec.DependsOn) == 0 || sent.before != nil && slices.Equal(sent.before.Spec.DependsOn, object.Spec.DependsOn) {
		return nil
	}
	cycle := installation.NeighbourhoodOf(object, i.othersOf(ctx, object), nil).Cycle()
	if len(cycle) == 0 {
		return nil
	}
	return fmt.Errorf("spec.dependsOn: the installation would depend on itself: %s: remove one of them", installation.CycleText(cycle))
}

// checkShare refuses an installation that would exceed one cluster's share of the seed. An edit without growth is always accepted.
func (i *Installations) checkShare(ctx context.Context, sent change[v1.AddonInstallation]) error {
	before, object := sent.before, sent.after
	if err := installation.CheckManagers(before, object); err != nil {
		return err
	}
	if before != nil && before.Spec.ClusterName == object.Spec.ClusterName && installation.Bytes(object) <= installation.Bytes(before) {
		return nil
	}
	of, err := i.clusterOf(ctx, object)
	if err == nil || object.Status.Cluster != nil {
		return installation.CheckShare(object, cluster.OnlyOf(of, i.inNamespace(ctx, object)))
	}
	if err := installation.CheckShare(object, cluster.OfNone(i.inNamespace(ctx, object))); err != nil {
		return fmt.Errorf("no Cluster is found for this installation, and all such installations of a namespace count as those of one "+
			"cluster: check the namespace and spec.clusterName: %w", err)
	}
	return nil
}

// othersOf are the installations of the same cluster, which are read only; none if they can't be listed.
func (i *Installations) othersOf(ctx context.Context, object *v1.AddonInstallation) []v1.AddonInstallation {
	of, _ := i.clusterOf(ctx, object)
	return cluster.OnlyOf(of, i.inNamespace(ctx, object))
}

// clusterOf is the cluster that was found; with an error the requested one.
func (i *Installations) clusterOf(ctx context.Context, object *v1.AddonInstallation) (target.Ref, error) {
	asked := target.InstalledIn(object)
	found, err := i.Clusters.Find(ctx, asked)
	if err != nil {
		return asked, err
	}
	return found.Ref, nil
}

func (i *Installations) inNamespace(ctx context.Context, object *v1.AddonInstallation) []v1.AddonInstallation {
	all := &v1.AddonInstallationList{}
	if err := i.Reader.List(ctx, all, cluster.InstallationsOf(target.InstalledIn(object)), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "listing the installations of a namespace")
		return nil
	}
	return all.Items
}

// checkTarget refuses a new installation with a forbidden targetNamespace, as that field can't be changed later. For
// an existing one it only warns.
func (i *Installations) checkTarget(entry *catalogue.Entry, found change[v1.AddonInstallation]) ([]string, error) {
	namespace := cmp.Or(found.after.Spec.TargetNamespace, entry.Addon.TargetNamespace)
	if namespace == "" {
		return []string{fmt.Sprintf("spec.targetNamespace is missing, and the catalogue names no namespace for add-on %q: nothing is "+
			"installed before it is set", found.after.Spec.AddonRef.Name)}, nil
	}
	problem := i.Restrictions.Target(namespace)
	if problem == "" || entry.Type == v1.CatalogueCore {
		return nil, nil
	}
	err := fmt.Errorf("spec.targetNamespace %q: %s", namespace, problem)
	if found.before != nil {
		return []string{err.Error()}, nil
	}
	return nil, err
}

func (i *Installations) request(object *v1.AddonInstallation) resolution.Request {
	return resolution.Request{
		Installation: object, Installed: resolution.InstalledInStatus(object), AllowPrereleases: i.AllowPrereleases,
	}
}

// entry is the add-on in the merged catalogues, or nil; with a warning if it does not exist.
func (i *Installations) entry(ctx context.Context, object *v1.AddonInstallation) (*catalogue.Entry, []string) {
	key := client.ObjectKey{Namespace: i.CatalogueNamespace, Name: string(object.Spec.AddonRef.Name)}
	entry, err := i.Marks.Entry(ctx, i.Reader, key)
	if entry != nil || err != nil {
		return entry, nil
	}
	request := i.request(object)
	request.Cluster, _ = i.Clusters.Find(ctx, target.InstalledIn(object)) // the refusal names its catalogue
	_, unknown := request.Choose(nil)
	return nil, []string{unknown.Error()}
}

// version is the version that the installation gets or names. There is none for a version that is pinned to other
// content: the catalogue has no form to check it. Problems are only warnings: they may end, or else the controller
// reports them. Only an edit ends a request for a lower version than the applied one: it is refused.
func (i *Installations) version(
	ctx context.Context, entry *catalogue.Entry, sent change[v1.AddonInstallation],
) (choice resolution.Choice, warnings []string, lower error) {
	object := sent.after
	request := i.request(object)
	var err error
	if request.Cluster, err = i.Clusters.Find(ctx, target.InstalledIn(object)); err == nil {
		choice, refusal := request.Choose(entry)
		if refusal == nil {
			return choice, deprecation(object, choice.Version), nil
		}
		isAsked := sent.before == nil || sent.before.Spec.AddonRef != object.Spec.AddonRef
		if lower, is := errors.AsType[*catalogue.DowngradeRefusedError](refusal); is && isAsked {
			return resolution.Choice{}, nil, lower
		}
		err = refusal
	}
	named := request.Named(entry)
	if digest := object.Spec.AddonRef.Digest; digest != "" && named.Origin.Content != digest {
		return resolution.Choice{}, []string{notOffered(object, err)}, nil
	}
	if named.Version == nil {
		return named, []string{err.Error()}, nil
	}
	return named, append(deprecation(object, named.Version), err.Error()), nil
}

// notOffered says why the content that an installation names is unavailable, or what happens to it if it is applied.
func notOffered(object *v1.AddonInstallation, err error) string {
	gone, isGone := errors.AsType[*resolution.ContentGoneError](err)
	if applied := object.Status.LastApplied; isGone && applied != nil && applied.EntryDigest == gone.Meant {
		return gone.Pinned()
	}
	return err.Error()
}

func deprecation(object *v1.AddonInstallation, version *v1.AddonVersion) []string {
	var warnings []string
	about := fmt.Sprintf("version %q of add-on %q is ", version.Version, object.Spec.AddonRef.Name)
	if version.Draft {
		warnings = append(warnings, about+"a draft: its content may change until it is published")
	}
	if version.Deprecated != "" {
		warnings = append(warnings, about+"deprecated: "+version.Deprecated)
	}
	return warnings
}

// Cleaners are the cluster's own users that delete objects, as in the charts' policies.
func Cleaners() []string {
	return []string{
		"system:serviceaccount:kube-system:namespace-controller",
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:kube-controller-manager",
	}
}

// deletion refuses the deletion of a core installation that its cluster needs, which its finalizer shows: the core
// add-on controller removes the finalizer first. If anything is unknown, it allows the request, as the finalizer
// delays the deletion anyway.
func (i *Installations) deletion(ctx context.Context, request admission.Request, object *v1.AddonInstallation) admission.Response {
	switch {
	case !object.Spec.CoreAddon, object.DeletionTimestamp != nil, slices.Contains(Cleaners(), request.UserInfo.Username):
		return allowed()
	case i.isGoing(ctx, request.Namespace), !slices.Contains(object.Finalizers, v1.FinalizerCoreProtection):
		return allowed()
	}
	found, err := i.Clusters.Find(ctx, target.InstalledIn(object))
	if err != nil || found.Deleted {
		return allowed()
	}
	return forbidden(fmt.Sprintf("%s is a core add-on of cluster %q, so it would be created again. To remove it permanently, remove its "+
		"add-on from ConfigMap custom-core-addons in the platform namespace of this seed, or change the setting of the Cluster that requests "+
		"it; core add-ons that every cluster has are removed only with their Cluster",
		name(request, object), found.Name))
}

func (i *Installations) isGoing(ctx context.Context, namespace string) bool {
	var found corev1.Namespace
	err := i.Reader.Get(ctx, client.ObjectKey{Name: namespace}, &found)
	return err != nil || found.DeletionTimestamp != nil
}

var credentialWords = []string{"password", "passwd", "token", "secretkey", "accesskey", "apikey", "privatekey", "credentials"}

const credentialsWarned = 3

// credentialWarnings names keys whose plain text looks like a credential, which all readers of
// installations would see.
func credentialWarnings(given map[string]any) []string {
	var suspects []string
	suspect(given, nil, &suspects)
	var warnings []string
	for _, path := range suspects[:min(len(suspects), credentialsWarned)] {
		warnings = append(warnings, fmt.Sprintf(
			"spec.values: %s looks like a credential: put it into a Secret with label %s=%s and refer to that in spec.valuesFrom "+
				"(role values-writer allows it)",
			path, v1.LabelUse, v1.UseValues))
	}
	return warnings
}

func suspect(given map[string]any, at values.Path, found *[]string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		here := append(slices.Clip(at), values.Step{Key: key})
		switch value := given[key].(type) {
		case map[string]any:
			suspect(value, here, found)
		case string:
			if value != "" && isCredential(key) {
				*found = append(*found, here.String())
			}
		}
	}
}

func isCredential(key string) bool {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key))
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.HasSuffix(plain, word) })
}
