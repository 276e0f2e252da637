package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// otherInstallation is the ID of another installation that has an object: its field manager says so, or else its label.
func (w *writer) otherInstallation(live *metav1.PartialObjectMetadata) string {
	for i := range live.ManagedFields {
		entry := &live.ManagedFields[i]
		id, found := ownership.InstallationOf(entry.Manager)
		if found && id != w.owner.ID() && entry.Operation == metav1.ManagedFieldsOperationApply {
			return id
		}
	}
	if id := live.Labels[kubermaticv1.LabelInstallation]; id != w.owner.ID() {
		return id
	}
	return ""
}

// livingNeighbour names another installation that has an object and still exists: its objects are not for adoption. Its field
// manager says so, or its label. nameOf may be nil, and then none is known to exist.
func livingNeighbour(live *metav1.PartialObjectMetadata, owner ownership.Owner, nameOf func(id string) string) string {
	if nameOf == nil {
		return ""
	}
	ids := []string{live.Labels[kubermaticv1.LabelInstallation]}
	for i := range live.ManagedFields {
		entry := &live.ManagedFields[i]
		if id, found := ownership.InstallationOf(entry.Manager); found && entry.Operation == metav1.ManagedFieldsOperationApply {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		if id == "" || id == owner.ID() {
			continue
		}
		if name := nameOf(id); name != "" {
			return name
		}
	}
	return ""
}

// isLivingManager says whether a field manager is another installation that still exists.
func (w *writer) isLivingManager(manager string) bool {
	id, found := ownership.InstallationOf(manager)
	return found && id != w.owner.ID() && w.nameOf != nil && w.nameOf(id) != ""
}

// installationOf names an installation by its ID.
func (w *writer) installationOf(id string) string {
	if w.nameOf != nil {
		if name := w.nameOf(id); name != "" {
			return fmt.Sprintf("add-on installation %q", cutText(name))
		}
	}
	return fmt.Sprintf("another add-on installation (id %s)", cutText(id))
}

// managerOf names a field manager: one of ours by its installation.
func (w *writer) managerOf(manager string) string {
	if id, found := ownership.InstallationOf(manager); found {
		return w.installationOf(id)
	}
	return fmt.Sprintf("%q", cutText(manager))
}
