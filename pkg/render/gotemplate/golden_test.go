package gotemplate_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/long"
)

// goldenData is a cluster with a value in every field that is no secret.
func goldenData(t *testing.T) templatedata.Data {
	t.Helper()
	cluster := &kkpv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "47s2ddlfgj", Labels: map[string]string{"project-id": "p1"}, Annotations: map[string]string{"region": "north"},
		},
		Spec: kkpv1.ClusterSpec{
			HumanReadableName: "prod", Cloud: kkpv1.CloudSpec{Datacenter: "dc-1", ProviderName: "openstack"},
			CNIPlugin: &kkpv1.CNIPlugin{Type: "cilium", Version: "1.18.6"},
			ClusterNetwork: kkpv1.ClusterNetwork{
				Services:  kkpv1.NetworkRanges{CIDRBlocks: []string{"10.240.16.0/20"}},
				Pods:      kkpv1.NetworkRanges{CIDRBlocks: []string{"172.25.0.0/16", "fd01::/48"}},
				DNSDomain: "cluster.local", ProxyMode: "ipvs", IPVS: &kkpv1.IPVS{StrictArp: new(true)},
			},
			Features: map[string]bool{"externalCloudProvider": true, "off": false}, DisableCSIDriver: true,
			MLA: &kkpv1.MLA{MonitoringEnabled: true},
		},
		Status: kkpv1.ClusterStatus{
			NamespaceName: "cluster-47s2ddlfgj", UserEmail: "a@example.com", UserName: "A",
			Versions: kkpv1.ClusterVersions{ControlPlane: "v1.36.3"},
			Address: kkpv1.ClusterAddress{
				URL: "https://a.example.com:6443", Port: 6443, ExternalName: "a.example.com", InternalName: "apiserver.svc",
				IP: "192.0.2.1", APIServerExternalAddress: "b.example.com",
			},
		},
	}
	data, err := templatedata.New(cluster, templatedata.Options{
		SeedName: "north", OverwriteRegistry: "registry.example.com:5000", Variables: map[string]any{"given": "by flag", "flag": "f"},
		IPAMAllocations: map[string]templatedata.IPAMAllocation{
			"lb": {Type: "range", Addresses: []string{"192.0.2.10-192.0.2.12"}}, "pods": {Type: "prefix", CIDR: "192.0.2.0/28"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	data.Cluster.Network.NodePortRange = "30000-32767"
	data.Cluster.CSI = templatedata.CSIOptions{
		StoragePolicy: "gold", StorageContainer: "c", Fstype: "xfs", SsSegmentedIscsiNetwork: new(true), StorageProfile: "p",
		Filesystem: "ext4", CinderTopologyEnabled: true, OverwriteRegistry: "registry.example.com:5000",
	}
	data.Cluster.KubeVirtInfraStorageClasses = []templatedata.KubeVirtInfraStorageClass{{
		Name: "fast", IsDefaultClass: new(true), VolumeBindingMode: new("Immediate"), Labels: map[string]string{"a": "b"},
		Zones: []string{"z"}, Regions: []string{"r"}, VolumeProvisioner: "csi", ReclaimPolicy: "Retain", AllowVolumeExpansion: true,
	}}
	data.Cluster.KubeVirtInfraVolumeSnapshotClasses = []templatedata.KubeVirtInfraVolumeSnapshotClass{
		{InfraVolumeSnapshotClass: "s", IsDefaultClass: new(false), DeletionPolicy: "Delete"},
	}
	return data
}

func TestGolden(t *testing.T) {
	long.Heavy(t)
	values := map[string]any{
		"given": "by values", "large": int64(12345678), "ratio": 0.5, "nulled": nil, "args": []any{"--a", "--b: c"}, "minAvailable": int64(2),
	}
	for _, name := range []string{"fields", "functions", "addon"} {
		t.Run(name, func(t *testing.T) {
			input := render.Input{
				Addon: name, Content: os.DirFS(filepath.Join("testdata", name)), Values: values, Data: goldenData(t),
			}
			first, err := gotemplate.New().Render(context.Background(), input)
			if err != nil {
				t.Fatal(err)
			}
			second, err := gotemplate.New().Render(context.Background(), input)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second rendering differs:\n%s", diff)
			}
			matchGolden(t, name+".golden.yaml", first)
		})
	}
}

func matchGolden(t *testing.T, name string, result render.Result) {
	t.Helper()
	var got bytes.Buffer
	for _, object := range result.Objects {
		encoded, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(encoded)
	}
	golden.Match(t, filepath.Join("testdata", name), got.String())
}
