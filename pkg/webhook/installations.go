package webhook

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Finder finds the Cluster of a namespace; its error says that there is not exactly one, or that the look failed.
type Finder interface {
	InNamespace(ctx context.Context, namespace string) (*kkpv1.Cluster, error)
}

// Installations judges AddonInstallations.
type Installations struct {
	// Reader reads merged catalogues and namespaces, from a cache.
	Reader client.Reader
	// Marks tells merged catalogues from whatever else has their names.
	Marks *mergedcatalogue.Marks
	// Clusters finds a namespace's Cluster, from a cache.
	Clusters Finder
	// CatalogueNamespace holds the merged catalogues.
	CatalogueNamespace string
	// AllowPrereleases is the platform's, as the controllers have it.
	AllowPrereleases bool
	// Restrictions are those of the seed, as the controllers have them.
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
	case found.after == nil, found.after.DeletionTimestamp != nil, sameQuestion(found):
		return allowed()
	}
	warnings, err := i.check(ctx, found)
	if err != nil {
		return invalid(name(request, found.after.Name, found.after.GenerateName), err)
	}
	return allowed(warnings...)
}

// sameQuestion holds for an update that changes neither what is installed nor with which values: pausing or letting go must
// work however wrong the values have become.
func sameQuestion(found change[v1.AddonInstallation]) bool {
	if found.before == nil {
		return false
	}
	before, after := &found.before.Spec, &found.after.Spec
	return before.AddonRef == after.AddonRef && equality.Semantic.DeepEqual(before.ValuesFrom, after.ValuesFrom) &&
		bytes.Equal(rawOf(before.Values), rawOf(after.Values))
}

func rawOf(raw *runtime.RawExtension) []byte {
	if raw == nil {
		return nil
	}
	return raw.Raw
}

// check refuses what can never work, and warns of what would not work now.
func (i *Installations) check(ctx context.Context, found change[v1.AddonInstallation]) (warnings []string, err error) {
	object := found.after
	given, err := values.Decode(rawOf(object.Spec.Values))
	if err != nil {
		return nil, fmt.Errorf("spec.values: %w", err)
	}
	if _, _, err := values.Merge([]values.Layer{{Origin: "spec.values", Values: given}}); err != nil {
		return nil, fmt.Errorf("spec.values: %w", err)
	}
	if wanted := object.Spec.AddonRef.Version; catalogue.IsRange(wanted) {
		if _, err := catalogue.ParseRange(wanted); err != nil {
			return nil, fmt.Errorf("spec.addonRef.version: %w", err)
		}
	}
	warnings = credentialWarnings(given)
	entry, told := i.entry(ctx, string(object.Spec.AddonRef.Name))
	warnings = append(warnings, told...)
	if entry == nil {
		return warnings, nil
	}
	told, err = i.checkTarget(entry, found)
	if err != nil {
		return nil, err
	}
	warnings = append(warnings, told...)
	version, told := i.version(ctx, entry, found)
	warnings = append(warnings, told...)
	if version == nil {
		return warnings, nil
	}
	if err := checkValues(version, object, given); err != nil {
		return nil, fmt.Errorf("%s, for version %q of add-on %q: %w", values.PlaceOf(object), version.Version, object.Spec.AddonRef.Name, err)
	}
	return append(warnings, unknownKeys(object, version, given)...), nil
}

// checkValues checks what was given against the form of a version, as the controller does before it renders. Required
// fields are checked where all layers are known: not beside valuesFrom or valuesTemplate, and not for core installations,
// whose controller adds values of its own.
func checkValues(version *v1.AddonVersion, object *v1.AddonInstallation, given map[string]any) error {
	if version.Template == nil {
		return nil
	}
	if version.Template.ClusterSecrets {
		if err := values.CheckMarks(given); err != nil {
			return err
		}
	}
	form := version.Template.FormSpec
	if object.Spec.CoreAddon || len(object.Spec.ValuesFrom) > 0 || version.ValuesTemplate != "" {
		return values.CheckForm(form, given, nil)
	}
	below, err := values.Decode(rawOf(version.Values))
	if err != nil {
		return fmt.Errorf("the catalogue's values: %w", err)
	}
	defaults, err := values.FormDefaults(form)
	if err != nil {
		return err
	}
	effective, _, err := values.Merge([]values.Layer{
		{Origin: "catalogue", Values: below}, {Origin: "form defaults", Values: defaults}, {Origin: "installation", Values: given},
	})
	if err != nil {
		return err
	}
	return values.CheckForm(form, given, effective)
}

// checkTarget refuses a new installation whose targetNamespace its add-on does not get here, since that field can't be changed later.
// One that is there already may be changed: what it has stays, and it is a warning.
func (i *Installations) checkTarget(entry *catalogue.Entry, found change[v1.AddonInstallation]) ([]string, error) {
	namespace := found.after.Spec.TargetNamespace
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

// entry is the add-on in the merged catalogues; nil where it is not known.
func (i *Installations) entry(ctx context.Context, addon string) (*catalogue.Entry, []string) {
	offered := &v1.AddonCatalogue{}
	err := i.Reader.Get(ctx, client.ObjectKey{Namespace: i.CatalogueNamespace, Name: addon}, offered)
	if apierrors.IsNotFound(err) || err == nil && !i.Marks.Believes(offered) {
		return nil, []string{fmt.Sprintf("no catalogue has an add-on %q at the moment: see AddonCatalogue %q in this namespace",
			addon, v1.AvailableCatalogue)}
	}
	if err != nil {
		return nil, nil
	}
	entry, err := catalogue.NewEntry(offered)
	if err != nil {
		return nil, nil
	}
	return entry, nil
}

// version is the one that the installation would get, or that it names; nil where that is not known. Whatever is in the way
// may be gone in a moment, and the controller says so if it is not: it is a warning.
func (i *Installations) version(
	ctx context.Context, entry *catalogue.Entry, found change[v1.AddonInstallation],
) (*v1.AddonVersion, []string) {
	object, addon := found.after, string(found.after.Spec.AddonRef.Name)
	chosen, err := i.choose(ctx, entry, found)
	if err == nil {
		return chosen, deprecation(addon, chosen)
	}
	if chosen, _ = entry.Version(object.Spec.AddonRef.Version); chosen == nil {
		return nil, []string{err.Error()}
	}
	return chosen, append(deprecation(addon, chosen), err.Error())
}

// choose selects as the controller does.
func (i *Installations) choose(ctx context.Context, entry *catalogue.Entry, found change[v1.AddonInstallation]) (*v1.AddonVersion, error) {
	cluster, err := i.Clusters.InNamespace(ctx, found.after.Namespace)
	if err != nil {
		return nil, err
	}
	selection, err := catalogue.Select(entry, found.after.Spec.AddonRef.Version, resolution.InstalledVersion(found.after),
		catalogue.Platform{
			KKPVersion: entry.KKPVersion, K8sVersion: cluster.Status.Versions.ControlPlane, AllowPrereleases: i.AllowPrereleases,
		},
		catalogue.SelectOptions{
			AllowDowngrade: found.after.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: found.after.Spec.CoreAddon,
		})
	return selection.Version, err
}

func deprecation(addon string, version *v1.AddonVersion) []string {
	if version.Deprecated == "" {
		return nil
	}
	return []string{fmt.Sprintf("version %q of add-on %q is deprecated: %s", version.Version, addon, version.Deprecated)}
}
