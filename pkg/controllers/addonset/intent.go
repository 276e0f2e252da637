package addonset

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
)

// intentIn is the object to apply in a cluster; live is the existing installation or nil. Outside of KKP the names of
// installations contain the cluster's, and they name it. All of that follows from the shared intent and the cluster,
// so the digest is the shared one. The name of a Helm release is immutable: an existing installation keeps its own.
func (p *prepared) intentIn(in target.Ref, live *v1.AddonInstallation) installation.Intent {
	made := p.intent
	made.Namespace = in.Namespace
	if in.IsKKP() {
		return made
	}
	made.Name, made.Digested = in.NameOf(p.intent.Name), p.digest
	made.Spec.ClusterName = in.Name
	switch {
	case made.Spec.ReleaseName != "":
	case live != nil:
		made.Spec.ReleaseName = live.Spec.ReleaseName
	default:
		made.Spec.ReleaseName = helmrelease.NameForItem(in, p.intent.Name, p.template)
	}
	made.Spec.DependsOn = make([]v1.InstallationName, 0, len(p.intent.Spec.DependsOn))
	for _, item := range p.intent.Spec.DependsOn {
		made.Spec.DependsOn = append(made.Spec.DependsOn, v1.InstallationName(in.NameOf(string(item))))
	}
	return made
}
