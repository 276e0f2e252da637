package addoninstallation

import (
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// factsFor begins a single reconciliation of an installation.
func factsFor(installation *kubermaticv1.AddonInstallation, known *memory) *facts {
	f := &facts{installation: installation, memory: known}
	f.run = (&installer.Installer{}).NewRun(&known.installed, installation.Namespace, askedOf(installation), installer.Seed{})
	return f
}
