package templatedata_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
	"github.com/trellis-addons/trellis/test/golden"
)

// AC10: What a template sees is an explicit list; nothing gets in, and nothing of KKP's is lost,
// unnoticed.
func TestTemplateDataIsAnExplicitList(t *testing.T) {
	var list strings.Builder
	describe(&list, "", reflect.TypeFor[templatedata.Data]())
	golden.Match(t, "testdata/fields.txt", list.String())
}

// describe lists the fields and methods of our own types, and the types of other fields.
func describe(list *strings.Builder, at string, kind reflect.Type) {
	for method := range kind.Methods() {
		fmt.Fprintf(list, "%s.%s()\n", at, method.Name)
	}
	for field := range kind.Fields() {
		name := at + "." + field.Name
		element := field.Type
		if element.Kind() == reflect.Map || element.Kind() == reflect.Slice {
			element = element.Elem()
			name += "[]"
		}
		if element.Kind() == reflect.Struct && strings.HasSuffix(element.PkgPath(), "/templatedata") {
			describe(list, name, element)
			continue
		}
		fmt.Fprintf(list, "%s %s\n", name, field.Type)
	}
}

func fullCluster() *kkpv1.Cluster {
	return &kkpv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "47s2ddlfgj", Labels: map[string]string{"project-id": "p1"},
			Annotations: map[string]string{
				"region":                                "north",
				"presetName":                            "gold",
				"csi-migration.k8c.io/migration-needed": "",
				"kubectl.kubernetes.io/last-applied-configuration":        "{}",
				"kubermatic.io/initial-application-installations-request": "{}",
			},
		},
		Spec: kkpv1.ClusterSpec{
			HumanReadableName: "prod", Version: "1.35.0",
			Cloud: kkpv1.CloudSpec{
				Datacenter: "dc-1", ProviderName: "openstack",
				Openstack: &kkpv1.OpenstackCloudSpec{CinderTopologyEnabled: true, Username: "u", Password: "hunter2", Domain: "d"},
			},
			ComponentsOverride: kkpv1.ComponentSettings{APIServer: kkpv1.APIServerSettings{NodePortRange: "30000-32767"}},
			CNIPlugin:          &kkpv1.CNIPlugin{Type: "cilium", Version: "1.18.6"},
			ClusterNetwork: kkpv1.ClusterNetwork{
				Services:  kkpv1.NetworkRanges{CIDRBlocks: []string{"10.240.16.0/20", "fd02::/120"}},
				Pods:      kkpv1.NetworkRanges{CIDRBlocks: []string{"172.25.0.0/16", "fd01::/48"}},
				DNSDomain: "cluster.local", ProxyMode: "ipvs", IPVS: &kkpv1.IPVS{StrictArp: new(true)},
				NodeCIDRMaskSizeIPv4: new(int32(25)),
			},
			Features: map[string]bool{"externalCloudProvider": true, "off": false}, DisableCSIDriver: true,
			MLA: &kkpv1.MLA{MonitoringEnabled: true},
		},
		Status: kkpv1.ClusterStatus{
			NamespaceName: "cluster-47s2ddlfgj", UserEmail: "a@example.com", UserName: "A",
			Versions: kkpv1.ClusterVersions{ControlPlane: "v1.36.3"},
			Address: kkpv1.ClusterAddress{
				URL: "https://a.example.com:6443", Port: 6443, ExternalName: "a.example.com", InternalName: "apiserver.svc",
				IP: "192.0.2.1", APIServerExternalAddress: "b.example.com", AdminToken: "hunter2",
			},
		},
	}
}

func TestNew(t *testing.T) {
	options := templatedata.Options{
		SeedName: "north", Variables: map[string]any{"NodeAccessNetwork": "10.254.0.0/16"}, OverwriteRegistry: "registry.example.com",
		IPAMAllocations: map[string]templatedata.IPAMAllocation{"lb": {Type: "range", Addresses: []string{"192.0.2.10-192.0.2.12"}}},
	}
	minimal := &kkpv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Status:     kkpv1.ClusterStatus{NamespaceName: "cluster-small", Versions: kkpv1.ClusterVersions{ControlPlane: "1.37.1"}},
	}
	for _, test := range []struct {
		name    string
		cluster *kkpv1.Cluster
		options templatedata.Options
	}{
		{"full.json", fullCluster(), options},
		{"minimal.json", minimal, templatedata.Options{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := templatedata.New(test.cluster, test.options)
			if err != nil {
				t.Fatal(err)
			}
			canonical, err := templatedata.Canonical(data)
			if err != nil {
				t.Fatal(err)
			}
			var indented bytes.Buffer
			if err := json.Indent(&indented, canonical, "", "  "); err != nil {
				t.Fatal(err)
			}
			golden.Match(t, "testdata/"+test.name, indented.String()+"\n")
		})
	}
}

// AC10: The data of templates holds no secret that a Cluster has.
func TestTemplateDataHoldsNoSecret(t *testing.T) {
	data, err := templatedata.New(fullCluster(), templatedata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(templatedata.Credentials{}, data.Credentials); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	if data.Cluster.Kubeconfig != "" || data.Cluster.Address.AdminToken != "" {
		t.Error("the kubeconfig or the admin token is there")
	}
}

func TestVersion(t *testing.T) {
	cluster := fullCluster()
	data, err := templatedata.New(cluster, templatedata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	version := data.Cluster.Version
	got := fmt.Sprintf("%v %d %d %s", version, version.Major(), version.Minor(), data.Cluster.MajorMinorVersion)
	if got != "1.36.3 1 36 1.36" {
		t.Errorf("got version %s", got)
	}

	cluster.Status.Versions.ControlPlane = ""
	if data, err = templatedata.New(cluster, templatedata.Options{}); err != nil || data.Cluster.MajorMinorVersion != "1.35" {
		t.Errorf("without a control plane's version the wanted one counts, got %q, %v", data.Cluster.MajorMinorVersion, err)
	}
	cluster.Spec.Version = ""
	if data, err = templatedata.New(cluster, templatedata.Options{}); err != nil || data.Cluster.Version != nil {
		t.Errorf("without any version there is none, got %v, %v", data.Cluster.Version, err)
	}
	cluster.Spec.Version = "latest"
	var wrong *templatedata.VersionError
	if _, err = templatedata.New(cluster, templatedata.Options{}); !errors.As(err, &wrong) {
		t.Errorf("got %v, want VersionError", err)
	}
}

func TestNetwork(t *testing.T) {
	for _, test := range []struct {
		why    string
		change func(*kkpv1.ClusterNetwork)
		want   func(*templatedata.ClusterNetwork)
	}{
		{
			"the node-local cache is off",
			func(spec *kkpv1.ClusterNetwork) { spec.NodeLocalDNSCacheEnabled = new(false) },
			func(data *templatedata.ClusterNetwork) { data.DNSResolverIP = "10.240.16.10" },
		},
		{
			"one family only",
			func(spec *kkpv1.ClusterNetwork) { spec.Pods.CIDRBlocks = spec.Pods.CIDRBlocks[:1] },
			func(data *templatedata.ClusterNetwork) {
				data.PodCIDRBlocks, data.PodCIDRIPv6, data.DualStack = data.PodCIDRBlocks[:1], "", false
			},
		},
		{
			"a service range too small for a tenth address",
			func(spec *kkpv1.ClusterNetwork) { spec.Services.CIDRBlocks = []string{"10.0.0.0/30"} },
			func(data *templatedata.ClusterNetwork) {
				data.ServiceCIDRBlocks, data.DNSClusterIP = []string{"10.0.0.0/30"}, ""
			},
		},
		{
			"a range that is none",
			func(spec *kkpv1.ClusterNetwork) { spec.Services.CIDRBlocks = []string{"ten"} },
			func(data *templatedata.ClusterNetwork) {
				data.ServiceCIDRBlocks, data.DNSClusterIP = []string{"ten"}, ""
			},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			before, err := templatedata.New(fullCluster(), templatedata.Options{})
			if err != nil {
				t.Fatal(err)
			}
			cluster := fullCluster()
			test.change(&cluster.Spec.ClusterNetwork)
			after, err := templatedata.New(cluster, templatedata.Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := before.Cluster.Network
			test.want(&want)
			if diff := cmp.Diff(want, after.Cluster.Network); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if before.Cluster.Network.ConfigHash() == after.Cluster.Network.ConfigHash() {
				t.Error("the configuration's hash did not change")
			}
		})
	}
}

func TestNothingIsShared(t *testing.T) {
	cluster, variables := fullCluster(), map[string]any{"a": map[string]any{"b": "c"}}
	data, err := templatedata.New(cluster, templatedata.Options{Variables: variables})
	if err != nil {
		t.Fatal(err)
	}
	data.Variables["a"].(map[string]any)["b"] = "changed"
	data.Cluster.Labels["project-id"] = "changed"
	data.Cluster.Network.PodCIDRBlocks[0] = "changed"
	if diff := cmp.Diff(fullCluster(), cluster); diff != "" {
		t.Errorf("the Cluster was changed (-want +got):\n%s", diff)
	}
	if variables["a"].(map[string]any)["b"] != "c" {
		t.Error("the flag's variables were changed: one cluster's values reach all others")
	}
}

func TestMap(t *testing.T) {
	data, err := templatedata.New(fullCluster(), templatedata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := templatedata.Map(data)
	if err != nil {
		t.Fatal(err)
	}
	cluster := content["Cluster"].(map[string]any)
	got := []any{cluster["Version"], cluster["Features"], cluster["Address"].(map[string]any)["Port"]}
	if diff := cmp.Diff([]any{"1.36.3", map[string]any{"externalCloudProvider": map[string]any{}}, int64(6443)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
