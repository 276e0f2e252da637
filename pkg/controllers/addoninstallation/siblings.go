package addoninstallation

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// isLeaving says whether an installation goes, and what only it has with it.
func isLeaving(other *kubermaticv1.AddonInstallation) bool {
	return other.DeletionTimestamp != nil && other.Spec.DeletionPolicy != kubermaticv1.DeletionOrphan
}

// others are the other installations of the cluster.
func (r *Reconciler) others(ctx context.Context, installation *kubermaticv1.AddonInstallation) ([]installer.Other, error) {
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	if err := r.Client.List(ctx, list, client.InNamespace(installation.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the cluster's installations: %w", err)
	}
	others := make([]installer.Other, 0, len(list.Items))
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == installation.Name {
			continue
		}
		others = append(others, installer.Other{
			Name: other.Name, Addon: string(other.Spec.AddonRef.Name), TargetNamespace: other.Spec.TargetNamespace,
			Deleted: other.DeletionTimestamp != nil, Leaving: isLeaving(other), Elder: isOlder(other, installation), Stand: standOf(other),
		})
	}
	return others, nil
}

// standOf tells what the cache says of an installation, so that its record is read only where something changed.
func standOf(other *kubermaticv1.AddonInstallation) string {
	stand := fmt.Sprintf("%s %s %t %t", other.UID, other.Name, other.DeletionTimestamp != nil, isLeaving(other))
	if applied := other.Status.LastApplied; applied != nil {
		stand += fmt.Sprintf(" %s %s", applied.Version, applied.Objects)
	}
	return stand + "\n"
}

// sharedText says in the condition what others have; "" where nothing is shared.
func sharedText(record *revision.Record) string {
	if record == nil || len(record.Shared) == 0 {
		return ""
	}
	first := record.Shared[0]
	text := fmt.Sprintf("%s is shared: it belongs to installation %q of the same add-on", first.Key, first.Owner)
	if more := len(record.Shared) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
