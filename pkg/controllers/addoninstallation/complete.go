package addoninstallation

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// conflictRecheck is the wait after a conflict with another client's write; the cache shows that write by then.
const conflictRecheck = time.Second

// complete writes, in one patch and before any other step, the fields that an installation leaves to the platform: the
// catalogue's namespace and, outside of KKP's namespaces, its Cluster as owner, with which it is deleted. Fields that
// KKP's users write in full are not written.
func (r *Reconciler) complete(ctx context.Context, f *facts) *loop.Outcome {
	var entry *catalogue.Entry
	if f.installation.Spec.TargetNamespace == "" {
		var err error
		key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: addonOf(f.installation)}
		if entry, err = r.Marks.Entry(ctx, r.Client, key); err != nil {
			return failed(err)
		}
	}
	err := f.live.Amend(ctx, func(live *kubermaticv1.AddonInstallation) {
		if entry != nil && entry.Addon.TargetNamespace != "" {
			live.Spec.TargetNamespace = entry.Addon.TargetNamespace
			live.Spec.CreateNamespace = live.Spec.CreateNamespace || entry.Addon.CreateNamespace
		}
		if !f.cluster.IsKKP() {
			live.OwnerReferences = ownedBy(live.OwnerReferences, f.cluster.Owner)
		}
	})
	if apierrors.IsConflict(err) { // the creator is still writing; events of owners and finalizers wake no installation
		return waiting(kubermaticv1.ReasonProgressing, "another writer changed the installation just now", conflictRecheck)
	}
	if err != nil {
		return failed(fmt.Errorf("completing the installation: %w", err))
	}
	f.run.Asked = askedOf(f.installation)
	if entry != nil && f.installation.Spec.TargetNamespace == "" {
		return waiting(kubermaticv1.ReasonNamespaceUnset, fmt.Sprintf("set spec.targetNamespace: the catalogue names no namespace for "+
			"add-on %q", addonOf(f.installation)), 0)
	}
	return nil // the add-on is in no catalogue, which a later step reports
}

// ownedBy are owner references with a Cluster's. It replaces a reference to a previous Cluster of the same name, or to
// a version of its kind that is no longer served.
func ownedBy(references []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
	isOwner := func(one metav1.OwnerReference) bool {
		return one.Name == owner.Name && schema.FromAPIVersionAndKind(one.APIVersion, one.Kind).GroupKind() == kind
	}
	at := slices.IndexFunc(references, isOwner)
	if at >= 0 && references[at].UID == owner.UID && references[at].APIVersion == owner.APIVersion {
		return references
	}
	return append(slices.DeleteFunc(slices.Clone(references), isOwner), owner)
}
