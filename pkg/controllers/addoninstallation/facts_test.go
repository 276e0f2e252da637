package addoninstallation

import (
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/installer"
)

// passOver begins a pass over an installation, by itself.
func passOver(installation *kubermaticv1.AddonInstallation, known *memory) *facts {
	f := &facts{installation: installation, memory: known}
	f.Pass = (&installer.Installer{}).Pass(&known.State, installation.Namespace, askedOf(installation), installer.Seed{})
	return f
}
