package addon

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	// fieldOwner is the field manager of this controller's writes.
	fieldOwner = "trellis-addon"
	// managedBy is the value of our managed-by label.
	managedBy = "addon"
)

// write writes the decision: spec, then status, then the annotations that confirm it.
func (r *Reconciler) write(ctx context.Context, f *facts) *loop.Outcome {
	current, err := r.isCurrent(ctx, f)
	if err != nil {
		return retry(err)
	}
	if current {
		return nil
	}
	outdated, object, err := r.writeSpec(ctx, f)
	if isTerminating(err) {
		return waiting(v1.ReasonClusterNotReady, fmt.Sprintf("namespace %q is being deleted", f.cluster.Namespace), 0)
	}
	if err != nil {
		return retry(fmt.Errorf("writing the available catalogue of namespace %q: %w", f.cluster.Namespace, err))
	}
	if f.isUpToDate(object) { // the cache had not received our last write yet
		return nil
	}
	r.Metrics.writes.Inc()
	if err := r.writeRest(ctx, f, object); err != nil {
		return retry(fmt.Errorf("writing the available catalogue of namespace %q: %w", f.cluster.Namespace, err))
	}
	r.announce(object, outdated, f.offer)
	return nil
}

// isCurrent says whether the catalogue is as decided, from metadata alone.
func (r *Reconciler) isCurrent(ctx context.Context, f *facts) (bool, error) {
	about := loop.Metadata(availableKind)
	err := r.written.Get(ctx, cluster.AvailableOf(f.cluster.Ref), about)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting the available catalogue of namespace %q: %w", f.cluster.Namespace, err)
	}
	return err == nil && f.isUpToDate(about), nil
}

// isUpToDate says whether annotations name the decision, and nothing was edited since.
func (f *facts) isUpToDate(object client.Object) bool {
	annotations := object.GetAnnotations()
	return annotations[v1.AnnotationDigest] == f.offer.Digest &&
		annotations[v1.AnnotationGeneration] == strconv.FormatInt(object.GetGeneration(), 10) &&
		annotations[v1.AnnotationStatusFields] == statusFields(object) &&
		object.GetLabels()[v1.LabelRole] == v1.RoleAvailable && isOwned(object, f.cluster)
}

// statusFields is a hash of the status fields that are ours. A manual edit takes ownership of fields, so it changes
// the hash, although it changes no generation.
func statusFields(object client.Object) string {
	for _, entry := range object.GetManagedFields() {
		if isOurStatus(entry) && entry.FieldsV1 != nil {
			return fmt.Sprintf("%x", sha256.Sum256(entry.FieldsV1.GetRawBytes()))[:16]
		}
	}
	return ""
}

func isOurStatus(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == fieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "status"
}

// isOwned: a reference to a version that is no longer served leads nowhere, and the object would never be deleted.
func isOwned(object client.Object, by target.Description) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.UID == by.UID && owner.APIVersion == by.Owner.APIVersion
	})
}

// isTerminating says whether a write failed because its namespace is deleted or being deleted.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsNotFound(err)
}

// writeSpec replaces labels, owner and spec. It also returns the previous spec; nil for none.
func (r *Reconciler) writeSpec(ctx context.Context, f *facts) (outdated *v1.AddonCatalogueSpec, object *v1.AddonCatalogue, err error) {
	live, key := &v1.AddonCatalogue{}, cluster.AvailableOf(f.cluster.Ref)
	err = r.Reader.Get(ctx, key, live)
	if apierrors.IsNotFound(err) {
		created := &v1.AddonCatalogue{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: specOf(f.offer),
		}
		mark(created, f.cluster)
		return nil, created, r.Client.Create(ctx, created, client.FieldOwner(fieldOwner))
	}
	if err != nil {
		return nil, nil, err
	}
	wanted := live.DeepCopy()
	wanted.Spec = specOf(f.offer)
	mark(wanted, f.cluster)
	if equality.Semantic.DeepEqual(live, wanted) {
		return &live.Spec, live, nil
	}
	return &live.Spec, wanted, r.Client.Update(ctx, wanted, client.FieldOwner(fieldOwner))
}

// mark sets labels and owner: the catalogue is deleted with its Cluster, even if the namespace stays.
func mark(object *v1.AddonCatalogue, owner target.Description) {
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	object.Labels[v1.LabelRole] = v1.RoleAvailable
	object.Labels[v1.LabelManagedBy] = managedBy
	if !isOwned(object, owner) {
		object.OwnerReferences = []metav1.OwnerReference{owner.Owner}
	}
}

func specOf(offer *catalogue.Availability) v1.AddonCatalogueSpec {
	return v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: offer.Addons}
}

// writeRest applies this controller's part of the status, and then the annotations.
func (r *Reconciler) writeRest(ctx context.Context, f *facts, object *v1.AddonCatalogue) error {
	about := loop.Metadata(availableKind)
	about.Namespace, about.Name = object.Namespace, object.Name
	if err := loop.ApplyStatus(ctx, r.Client, fieldOwner, about, appliedStatus(statusOf(object, f.offer))); err != nil {
		return fmt.Errorf("applying the status: %w", err)
	}
	return r.writeDigest(ctx, about, f.offer.Digest)
}

// writeDigest confirms, as the last write, that everything is written, with the state of spec and status.
func (r *Reconciler) writeDigest(ctx context.Context, about *metav1.PartialObjectMetadata, digest string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1.AnnotationDigest: digest, v1.AnnotationGeneration: strconv.FormatInt(about.Generation, 10),
		v1.AnnotationStatusFields: statusFields(about),
	}}})
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, about, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
	if err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

var availableKind = v1.GroupVersion.WithKind("AddonCatalogue")
