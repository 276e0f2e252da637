package templatedata

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
)

// InFile is the data of a Cluster in a file, which no platform runs.
type InFile struct {
	Data Data
	// CAPI is the Cluster as .CAPI; nil for one of KKP.
	CAPI map[string]any
	// Kubernetes is its release without "v".
	Kubernetes string
}

// OfFile reads a Cluster of KKP, or one of Cluster API with spec.topology.version. What other objects have is absent:
// the name of the seed, allocated addresses, a control plane. A *VersionError says that its version is wrong.
func OfFile(object map[string]any) (InFile, error) {
	apiVersion, _ := object["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	if object["kind"] != capiv1.Kind || group != capiv1.Group && group != kkpv1.GroupVersion.Group {
		return InFile{}, fmt.Errorf("it is neither a Cluster of group %s nor one of group %s", kkpv1.GroupVersion.Group, capiv1.Group)
	}
	var found InFile
	cluster := &kkpv1.Cluster{}
	if group == capiv1.Group {
		packed, err := PackCAPI(object)
		if err != nil {
			return InFile{}, err
		}
		read, err := ClusterOfCAPI(packed)
		if err != nil {
			return InFile{}, err
		}
		unpacked, err := UnpackCAPI(packed)
		if err != nil {
			return InFile{}, err
		}
		found.CAPI = CAPI(unpacked, nil, nil)
		cluster = InWordsOfKKP(read, read.Spec.Topology.Version, ProviderOf(read))
	} else {
		encoded, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(encoded, cluster)
		}
		if err != nil {
			return InFile{}, fmt.Errorf("the Cluster can't be read: %w", err)
		}
		cluster.Status.NamespaceName = cmp.Or(cluster.Status.NamespaceName, "cluster-"+cluster.Name)
	}
	data, err := New(cluster, Options{})
	if err != nil {
		return InFile{}, err
	}
	if data.Cluster.Version == nil {
		return InFile{}, &VersionError{Cluster: cluster.Name}
	}
	found.Data, found.Kubernetes = data, data.Cluster.Version.String()
	return found, nil
}
