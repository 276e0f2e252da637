package templatedata

// BuiltIn has what add-ons of Open Cluster Management always know, under its names
// (github.com/open-cluster-management-io/addon-framework, pkg/addonfactory).
type BuiltIn struct {
	// ClusterName is the cluster's name on the hub: its namespace there, since the agents of Open Cluster Management use
	// the one as the other.
	ClusterName string
	// AddonInstallNamespace is the target namespace.
	AddonInstallNamespace string
	// InstallMode is Default.
	InstallMode string
	// HubKubeConfigSecret is the Secret of the target namespace with the first credential for the hub's API server; empty
	// for versions without one.
	HubKubeConfigSecret string
}

// InstallModeDefault installs the whole add-on in the user cluster.
const InstallModeDefault = "Default"
