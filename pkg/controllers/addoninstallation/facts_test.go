package addoninstallation

import (
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
)

// passOver begins a pass over an installation, by itself.
func passOver(installation *kubermaticv1.AddonInstallation, known *memory) *facts {
	f := &facts{installation: installation, memory: known}
	f.pass = (&installer.Installer{}).Pass(&known.installed, installation.Namespace, askedOf(installation), installer.Seed{})
	return f
}
