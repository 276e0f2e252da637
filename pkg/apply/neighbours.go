package apply

import (
	"fmt"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// exists says whether a field manager is another installation that exists: its fields are not for adoption.
func (w *writer) exists(manager string) bool {
	id, found := ownership.InstallationOf(manager)
	return found && id != w.owner.ID() && w.nameOf != nil && w.nameOf(id) != ""
}

// installationOf names an installation by its ID.
func (w *writer) installationOf(id string) string {
	if w.nameOf != nil {
		if name := w.nameOf(id); name != "" {
			return fmt.Sprintf("add-on installation %q", calls.CutText(name))
		}
	}
	return fmt.Sprintf("another add-on installation (id %s)", calls.CutText(id))
}

// managerOf names a field manager: one of ours by its installation.
func (w *writer) managerOf(manager string) string {
	if id, found := ownership.InstallationOf(manager); found {
		return w.installationOf(id)
	}
	return fmt.Sprintf("%q", calls.CutText(manager))
}
