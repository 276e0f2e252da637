package rendering

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// BuiltIn is the data of templates that follows from an installation and its version, with the cluster's namespace on
// the hub.
func BuiltIn(namespace string, installation *v1.AddonInstallation, version *v1.AddonVersion) *templatedata.BuiltIn {
	made := &templatedata.BuiltIn{
		ClusterName: namespace, AddonInstallNamespace: installation.Spec.TargetNamespace, InstallMode: templatedata.InstallModeDefault,
	}
	if at := slices.IndexFunc(version.Template.Access, rights.IsForAPIServer); at >= 0 {
		made.HubKubeConfigSecret = rights.SecretName(installation.Name, version.Template.Access[at])
	}
	return made
}
