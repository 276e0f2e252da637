package apply

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// adoptionManager owns the annotation that marks adopted objects. The annotation outlives the owner's fields.
const adoptionManager = "addon-installation-adoption"

// readExisting reads and claims an object that the inventory lacks. It tries again if the object changes meanwhile.
func (w *writer) readExisting(ctx context.Context, client calls.Client, it *item) (err error) {
	for range patchTries {
		if err = w.readOnce(ctx, client, it); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

func (w *writer) readOnce(ctx context.Context, client calls.Client, it *item) error {
	live, err := client.Read(ctx, it.key)
	if err != nil || live == nil {
		it.entry.Created = it.entry.Created || err == nil
		return err
	}
	found, err := w.evaluate(ctx, it, live)
	if err != nil {
		return err
	}
	if it.inherits {
		return w.inherit(ctx, client, it, live)
	}
	if it.note == nil && !it.done && (found.Whose != ownership.Ours || found.IsHook()) {
		return w.adoptFields(ctx, client, it, live, found)
	}
	return nil
}

// evaluate decides about an object that exists, and updates its item. It writes nothing.
func (w *writer) evaluate(ctx context.Context, it *item, live *metav1.PartialObjectMetadata) (ownership.Ownership, error) {
	found := w.ownershipOf(it, live)
	if live.DeletionTimestamp != nil && found.Whose != ownership.Ours {
		w.awaitEnd(it, live)
		return found, nil
	}
	return found, w.decide(ctx, it, live, found)
}

func (w *writer) ownershipOf(it *item, live *metav1.PartialObjectMetadata) ownership.Ownership {
	asked := ownership.Question{Owner: w.owner, Release: w.Release, NameOf: w.existing(it), Left: it.gaveUp}
	if it.planned {
		asked.Entry = &it.entry
	}
	if shared, found := w.shared[it.key]; found {
		asked.Shared = &shared
	}
	if ownership.CanBeShared(it.key) {
		asked.Left = slices.Concat(w.Known, it.gaveUp)
	}
	return ownership.Of(live, asked)
}

// existing is NameOf without the installations that gave the object up: for this object they do not exist.
func (w *writer) existing(it *item) func(id string) string {
	if w.NameOf == nil || len(it.gaveUp) == 0 {
		return w.NameOf
	}
	return func(id string) string {
		if slices.Contains(it.gaveUp, id) {
			return ""
		}
		return w.NameOf(id)
	}
}

// gaveUp says whether the record of the installation that applied an object lacks it. Records do not have copies of
// Secrets and objects of hooks, which installations write too.
func (w *writer) gaveUp(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership) (bool, error) {
	_, isCopy := live.Annotations[kubermaticv1.AnnotationPullSecret]
	_, isKept := live.Annotations[kubermaticv1.AnnotationDigest]
	if w.GaveUp == nil || isCopy || isKept || !found.IsOfAnother() {
		return false, nil
	}
	given, err := w.GaveUp(ctx, found.OtherName, it.key)
	if given {
		it.gaveUp = append(it.gaveUp, found.OtherID)
	}
	return given, err
}

// decide says whether an existing object is ours, used, adopted or refused. Adopt never adopts an object of another
// existing installation, since both would overwrite it forever.
func (w *writer) decide(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership) error {
	if found.Whose == ownership.Anothers {
		if isDecided, err := w.decideAnothers(ctx, it, live, found); isDecided {
			return err
		}
	}
	passesOn, err := w.inheritsDefinition(ctx, it, live, found)
	if err != nil {
		return err
	}
	switch {
	case passesOn:
		it.entry.UID, it.entry.Created, it.inherits = live.UID, !found.WasAdopted(), true
	case found.Whose == ownership.Inherited:
		return w.adopt(ctx, it, live, found)
	case found.Whose == ownership.Ours:
		it.entry.UID, it.planned = live.UID, true
		it.entry.Created = it.entry.Created || found.IsMade()
	case calls.IsNamespace(it.object), calls.IsCRD(it.object) && isCreateOnly(it.object):
		it.done, it.used = true, true
	case found.Whose != ownership.Anothers && (w.Adopt || found.Whose == ownership.OfRelease):
		it.entry.UID, it.entry.Created = live.UID, false
	default:
		w.refuseExisting(ctx, it, live, found)
	}
	return nil
}

// decideAnothers decides about an object of another installation that is shared, or that the other one gave up.
func (w *writer) decideAnothers(
	ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership,
) (isDecided bool, err error) {
	if isShared, err := w.share(ctx, it, live, found); err != nil || isShared {
		return true, err
	}
	if given, err := w.gaveUp(ctx, it, live, found); err != nil || !given {
		return err != nil, err
	}
	return true, w.decide(ctx, it, live, w.ownershipOf(it, live))
}

// refuseExisting notes the object's owner, and the solution for users.
func (w *writer) refuseExisting(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership) {
	switch {
	case found.Whose == ownership.Anothers:
		it.refuse(kubermaticv1.ReasonObjectExists, fmt.Sprintf("%s exists already and belongs to add-on installation %q: remove the object "+
			"from one of the two add-ons, or remove that installation", it.key, calls.CutText(found.OtherName)))
	case found.IsLeft():
		less := ""
		if calls.IsCRD(it.object) {
			less = ", with versions or fields that this add-on lacks"
		}
		it.refuse(kubermaticv1.ReasonObjectExists, fmt.Sprintf("%s exists already: the add-on installation with id %s left it there and was "+
			"deleted%s: delete the object, remove it from the add-on, or annotate this installation with %s: \"true\" to adopt the object",
			it.key, calls.CutText(found.OtherID), less, kubermaticv1.AnnotationAdopt))
	default:
		it.refuse(kubermaticv1.ReasonObjectExists, fmt.Sprintf("%s exists already and belongs to %s: delete the object; or remove it from "+
			"that owner or from this add-on; or annotate this installation with %s: \"true\" to adopt the object%s",
			it.key, w.ownerOf(ctx, it, live, found), kubermaticv1.AnnotationAdopt, managersHint(live, found)))
	}
}

// adoptFields makes the fields of the previous writers ours. It marks an adopted definition first: afterwards nothing
// else shows that it existed before.
func (w *writer) adoptFields(
	ctx context.Context, client calls.Client, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership,
) (err error) {
	if calls.IsCRD(it.object) && found.Whose != ownership.Ours && !found.WasAdopted() {
		if live, err = markAdopted(ctx, client, it.key); err != nil {
			return err
		}
	}
	patch, err := w.adoptionPatch(live, it.object.GetAPIVersion())
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = client.Patch(ctx, it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("adopting %q: %w", it.key, err)
	}
	return nil
}

var adoptedMark = fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, kubermaticv1.AnnotationAdopted)

func markAdopted(ctx context.Context, client calls.Client, key ownership.Key) (*metav1.PartialObjectMetadata, error) {
	marked, err := client.Patch(ctx, key.Name, types.MergePatchType, adoptedMark, metav1.PatchOptions{FieldManager: adoptionManager})
	if err != nil {
		return nil, fmt.Errorf("marking %q as adopted: %w", key, err)
	}
	return marked, nil
}

// ownerOf names the owner, as far as metadata shows it. If our own label is on the object, other clients wrote it, so
// it names no owner.
func (w *writer) ownerOf(ctx context.Context, it *item, live *metav1.PartialObjectMetadata, found ownership.Ownership) string {
	if found.OtherID != "" {
		return w.installationOf(found.OtherID)
	}
	if release := live.Annotations[ownership.HelmReleaseAnnotation]; release != "" {
		namespace, gone := live.Annotations[ownership.HelmNamespaceAnnotation], ""
		if calls.IsCRD(it.object) && w.isUninstalled(ctx, namespace, release) {
			gone = ", which was deleted: it has no Secret there"
		}
		return fmt.Sprintf("Helm release %q in namespace %q%s", calls.CutText(release), calls.CutText(namespace), gone)
	}
	if addon := live.Labels[kkpAddonLabel]; addon != "" {
		return fmt.Sprintf("KKP add-on %q", calls.CutText(addon))
	}
	if owner := metav1.GetControllerOfNoCopy(live); owner != nil {
		return fmt.Sprintf("%s %q", calls.CutText(owner.Kind), calls.CutText(owner.Name))
	}
	for _, entry := range live.ManagedFields {
		if entry.Subresource == "" {
			return fmt.Sprintf("field manager %q%s", calls.CutText(entry.Manager), leftByHelm(it, entry.Manager))
		}
	}
	return "an unknown owner"
}

// leftByHelm explains that Helm leaves definitions behind that it writes without the name of a release.
func leftByHelm(it *item, manager string) string {
	if manager != "helm" || !calls.IsCRD(it.object) {
		return ""
	}
	return ", which leaves definitions of a chart's folder crds/ behind when its release is uninstalled"
}

// isUninstalled says that a namespace of the user cluster has no Secret of a Helm release. Helm may store releases elsewhere, so
// nothing is adopted for that reason.
func (w *writer) isUninstalled(ctx context.Context, namespace, release string) bool {
	selector, err := labels.ValidatedSelectorFromSet(labels.Set{"owner": "helm", "name": release})
	if err != nil || namespace == "" || calls.NameProblem(ownership.Key{Namespace: namespace, Name: release}) {
		return false
	}
	revisions := w.target.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	list, err := revisions.List(ctx, metav1.ListOptions{LabelSelector: selector.String(), Limit: 1})
	return err == nil && len(list.Items) == 0
}

// isInstallation says whether a field manager is another existing installation. Adopt does not take its fields.
func (w *writer) isInstallation(manager string) bool {
	id, found := ownership.InstallationOf(manager)
	return found && id != w.owner.ID() && w.NameOf != nil && w.NameOf(id) != ""
}

func (w *writer) installationOf(id string) string {
	if w.NameOf != nil {
		if name := w.NameOf(id); name != "" {
			return fmt.Sprintf("add-on installation %q", calls.CutText(name))
		}
		return fmt.Sprintf("an add-on installation that was deleted (id %s)", calls.CutText(id))
	}
	return fmt.Sprintf("another add-on installation (id %s)", calls.CutText(id))
}

func (w *writer) managerOf(manager string) string {
	if id, found := ownership.InstallationOf(manager); found {
		return w.installationOf(id)
	}
	return fmt.Sprintf("%q", calls.CutText(manager))
}
