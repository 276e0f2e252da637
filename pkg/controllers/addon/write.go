package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	// fieldOwner names our writes in managedFields. The core add-on controller has a name of its own.
	fieldOwner = "trellis-addon"
	// managedBy is the value of our managed-by label.
	managedBy = "addon"
)

func (r *Reconciler) write(ctx context.Context, f *facts) (done bool, err error) {
	current, err := r.isCurrent(ctx, f)
	if err != nil || current {
		return true, err
	}
	object, err := r.writeSpec(ctx, f)
	if isGoing(err) {
		return true, nil // The namespace went meanwhile; a new one comes with an event.
	}
	if err != nil {
		return true, fmt.Errorf("writing the available catalogue: %w", err)
	}
	if saysCurrent(object, f.offer.Digest) { // The cache had not seen our last write yet.
		return true, nil
	}
	if err := r.writeStatus(ctx, object, f.offer); err != nil {
		return true, fmt.Errorf("writing the status of the available catalogue: %w", err)
	}
	if err := r.writeDigest(ctx, object, f.offer.Digest); err != nil {
		return true, fmt.Errorf("writing the digest of the available catalogue: %w", err)
	}
	return true, nil
}

// isCurrent tells from metadata alone whether the catalogue says what was decided.
func (r *Reconciler) isCurrent(ctx context.Context, f *facts) (bool, error) {
	about := availableMetadata()
	err := r.written.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: v1.AvailableCatalogue}, about)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return saysCurrent(about, f.offer.Digest), nil
}

func saysCurrent(object client.Object, digest string) bool {
	return object.GetAnnotations()[v1.AnnotationDigest] == digest &&
		object.GetAnnotations()[v1.AnnotationGeneration] == strconv.FormatInt(object.GetGeneration(), 10) &&
		object.GetLabels()[v1.LabelRole] == v1.RoleAvailable
}

// isGoing tells a namespace that is gone or going from other refusals.
func isGoing(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsNotFound(err)
}

// writeSpec brings labels and spec about, by replacing what is there: what somebody added goes.
func (r *Reconciler) writeSpec(ctx context.Context, f *facts) (*v1.AddonCatalogue, error) {
	live := &v1.AddonCatalogue{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: v1.AvailableCatalogue}, live)
	if apierrors.IsNotFound(err) {
		created := &v1.AddonCatalogue{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: v1.AvailableCatalogue}, Spec: specOf(f.offer),
		}
		setLabels(created)
		return created, r.Client.Create(ctx, created, client.FieldOwner(fieldOwner))
	}
	if err != nil {
		return nil, err
	}
	wanted := live.DeepCopy()
	wanted.Spec = specOf(f.offer)
	setLabels(wanted)
	if equality.Semantic.DeepEqual(live, wanted) {
		return live, nil
	}
	return wanted, r.Client.Update(ctx, wanted, client.FieldOwner(fieldOwner))
}

func setLabels(object *v1.AddonCatalogue) {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[v1.LabelRole] = v1.RoleAvailable
	object.Labels[v1.LabelManagedBy] = managedBy
}

func specOf(offer *catalogue.Availability) v1.AddonCatalogueSpec {
	return v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: offer.Addons}
}

// writeStatus applies our part of the status.
func (r *Reconciler) writeStatus(ctx context.Context, object *v1.AddonCatalogue, offer *catalogue.Availability) error {
	applied := map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonCatalogue",
		"metadata": map[string]any{"namespace": object.Namespace, "name": object.Name},
		"status":   statusOf(object, offer),
	}
	patch, err := json.Marshal(applied)
	if err != nil {
		return err
	}
	return r.Client.Status().Patch(ctx, object, client.RawPatch(types.ApplyPatchType, patch),
		client.FieldOwner(fieldOwner), client.ForceOwnership)
}

// writeDigest says that all is written, and at which generation.
func (r *Reconciler) writeDigest(ctx context.Context, object *v1.AddonCatalogue, digest string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1.AnnotationDigest: digest, v1.AnnotationGeneration: strconv.FormatInt(object.Generation, 10),
	}}})
	if err != nil {
		return err
	}
	about := availableMetadata()
	about.Namespace, about.Name = object.Namespace, object.Name
	return r.Client.Patch(ctx, about, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
}

func availableMetadata() *metav1.PartialObjectMetadata {
	about := &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonCatalogue"))
	return about
}
