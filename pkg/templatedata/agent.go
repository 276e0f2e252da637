package templatedata

// Agent is what versions with access to the hub see besides, under the names that Open Cluster Management has for
// it (github.com/open-cluster-management-io/addon-framework, pkg/addonfactory).
type Agent struct {
	// ClusterName is what the hub knows the cluster by: its namespace there, as the agents of Open Cluster Management
	// take the one for the other.
	ClusterName string
	// AddonInstallNamespace is the target namespace.
	AddonInstallNamespace string
	// InstallMode is Default.
	InstallMode string
	// HubKubeConfigSecret is the Secret of the target namespace with the first credential that is for the API server;
	// empty where none is.
	HubKubeConfigSecret string
}

// InstallModeDefault has all of an add-on in the user cluster.
const InstallModeDefault = "Default"
