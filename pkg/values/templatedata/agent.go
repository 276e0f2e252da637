package templatedata

// Agent has additional data for versions with access to the hub, under the names of Open Cluster Management
// (github.com/open-cluster-management-io/addon-framework, pkg/addonfactory).
type Agent struct {
	// ClusterName is the cluster's name on the hub: its namespace there, since the agents of Open Cluster Management use
	// the one as the other.
	ClusterName string
	// AddonInstallNamespace is the target namespace.
	AddonInstallNamespace string
	// InstallMode is Default.
	InstallMode string
	// HubKubeConfigSecret is the Secret of the target namespace with the first credential for the API server; empty if
	// there is none.
	HubKubeConfigSecret string
}

// InstallModeDefault installs the whole add-on in the user cluster.
const InstallModeDefault = "Default"
