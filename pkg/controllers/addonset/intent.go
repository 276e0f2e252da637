package addonset

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/target"
)

// intentIn is what is applied in a cluster, whose installation is live; nil: it has none. Outside of
// KKP the cluster is in the names of installations, and they name it; all of that follows from what
// clusters share and the cluster, so that the digest is the shared one. The name of a Helm release
// can't be changed: what is there keeps its own.
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
