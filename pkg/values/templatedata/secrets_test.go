package templatedata_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

func secretData(pairs ...string) map[string][]byte {
	data := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		data[pairs[i]] = []byte(pairs[i+1])
	}
	return data
}

var named = &kkpv1.CredentialsReference{Namespace: "kubermatic", Name: "credential-x"}

// AC10: Every provider's keys, as KKP has them (pkg/resources/credentials.go there).
func TestCredentialsOfEveryProvider(t *testing.T) {
	for _, test := range []struct {
		why     string
		cloud   kkpv1.CloudSpec
		secret  map[string][]byte
		want    templatedata.Credentials
		missing string
	}{
		{
			why: "alibaba", cloud: kkpv1.CloudSpec{Alibaba: &kkpv1.AlibabaCloudSpec{CredentialsReference: named}},
			secret: secretData("accessKeyId", "a", "accessKeySecret", "b"),
			want:   templatedata.Credentials{Alibaba: templatedata.AlibabaCredentials{AccessKeyID: "a", AccessKeySecret: "b"}},
		},
		{
			why: "anexia", cloud: kkpv1.CloudSpec{Anexia: &kkpv1.TokenCloudSpec{CredentialsReference: named}}, secret: secretData("token", "a"),
			want: templatedata.Credentials{Anexia: templatedata.TokenCredentials{Token: "a"}},
		},
		{
			why: "aws, the Cluster's own goes first",
			cloud: kkpv1.CloudSpec{AWS: &kkpv1.AWSCloudSpec{
				CredentialsReference: named, AccessKeyID: "own", AssumeRoleARN: "arn", AssumeRoleExternalID: "id",
			}},
			secret: secretData("accessKeyId", "a", "secretAccessKey", "b"),
			want: templatedata.Credentials{AWS: templatedata.AWSCredentials{
				AccessKeyID: "own", SecretAccessKey: "b", AssumeRoleARN: "arn", AssumeRoleExternalID: "id",
			}},
		},
		{
			why: "azure", cloud: kkpv1.CloudSpec{Azure: &kkpv1.AzureCloudSpec{CredentialsReference: named}},
			secret: secretData("tenantID", "a", "subscriptionID", "b", "clientID", "c", "clientSecret", "d"),
			want: templatedata.Credentials{Azure: templatedata.AzureCredentials{
				TenantID: "a", SubscriptionID: "b", ClientID: "c", ClientSecret: "d",
			}},
		},
		{
			why: "bare metal", cloud: kkpv1.CloudSpec{Baremetal: &kkpv1.BaremetalCloudSpec{CredentialsReference: named}},
			secret: secretData("kubeConfig", "a"),
			want:   templatedata.Credentials{Baremetal: templatedata.BaremetalCredentials{Tinkerbell: templatedata.TinkerbellCredentials{Kubeconfig: "a"}}},
		},
		{
			why: "digitalocean", cloud: kkpv1.CloudSpec{Digitalocean: &kkpv1.TokenCloudSpec{CredentialsReference: named}},
			secret: secretData("token", "a"), want: templatedata.Credentials{Digitalocean: templatedata.TokenCredentials{Token: "a"}},
		},
		{
			why: "gcp", cloud: kkpv1.CloudSpec{GCP: &kkpv1.GCPCloudSpec{CredentialsReference: named}},
			secret: secretData("serviceAccount", "a"), want: templatedata.Credentials{GCP: templatedata.GCPCredentials{ServiceAccount: "a"}},
		},
		{
			why: "hetzner", cloud: kkpv1.CloudSpec{Hetzner: &kkpv1.TokenCloudSpec{CredentialsReference: named}},
			secret: secretData("token", "a"), want: templatedata.Credentials{Hetzner: templatedata.TokenCredentials{Token: "a"}},
		},
		{
			why: "kubevirt", cloud: kkpv1.CloudSpec{Kubevirt: &kkpv1.KubevirtCloudSpec{CredentialsReference: named}},
			secret: secretData("kubeConfig", "a"), want: templatedata.Credentials{Kubevirt: templatedata.KubevirtCredentials{KubeConfig: "a"}},
		},
		{
			why:    "nutanix with its driver's own user",
			cloud:  kkpv1.CloudSpec{Nutanix: &kkpv1.NutanixCloudSpec{CredentialsReference: named, CSI: &kkpv1.NutanixCSIConfig{}}},
			secret: secretData("username", "a", "password", "b", "csiUsername", "c", "csiPassword", "d", "proxyURL", "e"),
			want: templatedata.Credentials{Nutanix: templatedata.NutanixCredentials{
				Username: "a", Password: "b", CSIUsername: "c", CSIPassword: "d", ProxyURL: "e",
			}},
		},
		{
			why: "openstack with an application", cloud: kkpv1.CloudSpec{Openstack: &kkpv1.OpenstackCloudSpec{CredentialsReference: named}},
			secret: secretData("domain", "d", "applicationCredentialID", "a", "applicationCredentialSecret", "b", "username", "not this"),
			want: templatedata.Credentials{Openstack: templatedata.OpenstackCredentials{
				Domain: "d", ApplicationCredentialID: "a", ApplicationCredentialSecret: "b",
			}},
		},
		{
			why: "openstack with a user and the older names", cloud: kkpv1.CloudSpec{Openstack: &kkpv1.OpenstackCloudSpec{CredentialsReference: named}},
			secret: secretData("domain", "d", "username", "a", "password", "b", "tenant", "c", "tenantID", "e"),
			want: templatedata.Credentials{Openstack: templatedata.OpenstackCredentials{
				Domain: "d", Username: "a", Password: "b", Project: "c", ProjectID: "e",
			}},
		},
		{
			why:    "cloud director with a token",
			cloud:  kkpv1.CloudSpec{VMwareCloudDirector: &kkpv1.VMwareCloudDirectorCloudSpec{CredentialsReference: named}},
			secret: secretData("organization", "o", "vdc", "v", "apiToken", "t"),
			want: templatedata.Credentials{VMwareCloudDirector: templatedata.VMwareCloudDirectorCredentials{
				Organization: "o", VDC: "v", APIToken: "t",
			}},
		},
		{
			why: "vsphere with the manager only", cloud: kkpv1.CloudSpec{VSphere: &kkpv1.VSphereCloudSpec{CredentialsReference: named}},
			secret: secretData("infraManagementUserUsername", "a", "infraManagementUserPassword", "b"),
			want:   templatedata.Credentials{VSphere: templatedata.VSphereCredentials{Username: "a", Password: "b"}},
		},
		{
			why: "a key is missing", cloud: kkpv1.CloudSpec{Hetzner: &kkpv1.TokenCloudSpec{CredentialsReference: named}},
			secret: secretData("tokin", "hunter2"), missing: "token",
		},
		{why: "no Secret is named", cloud: kkpv1.CloudSpec{Hetzner: &kkpv1.TokenCloudSpec{}}},
		{why: "no provider"},
	} {
		cluster := fullCluster()
		cluster.Spec.Cloud = test.cloud
		data, err := templatedata.WithSecrets(templatedata.Data{}, cluster, templatedata.Secrets{Kubeconfig: "k", Credentials: test.secret})
		if test.missing != "" {
			want := &templatedata.MissingCredentialError{Secret: types.NamespacedName{Namespace: "kubermatic", Name: "credential-x"}, Key: test.missing}
			var got *templatedata.MissingCredentialError
			if !errors.As(err, &got) || cmp.Diff(want, got) != "" {
				t.Errorf("%s: got %v, want %v", test.why, err, want)
			}
			continue
		}
		if diff := cmp.Diff(test.want, data.Credentials); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.why, err, diff)
		}
		if data.Cluster.Kubeconfig != "k" || data.Cluster.Address.AdminToken != "hunter2" {
			t.Errorf("%s: the kubeconfig or the token is not there", test.why)
		}
		secret, found := templatedata.CredentialsSecret(cluster)
		if found != (test.secret != nil) || found && secret.Name != named.Name {
			t.Errorf("%s: the Secret is %v, %v", test.why, secret, found)
		}
	}
}

func TestCSIOfProviders(t *testing.T) {
	for _, test := range []struct {
		provider string
		cloud    kkpv1.CloudSpec
		want     templatedata.CSIOptions
	}{
		{"vsphere", kkpv1.CloudSpec{VSphere: &kkpv1.VSphereCloudSpec{StoragePolicy: "gold"}}, templatedata.CSIOptions{StoragePolicy: "gold"}},
		{
			"nutanix",
			kkpv1.CloudSpec{Nutanix: &kkpv1.NutanixCloudSpec{CSI: &kkpv1.NutanixCSIConfig{
				StorageContainer: "c", Fstype: "xfs", SsSegmentedIscsiNetwork: new(true),
			}}},
			templatedata.CSIOptions{StorageContainer: "c", Fstype: "xfs", SsSegmentedIscsiNetwork: new(true)},
		},
		{
			"vmwareclouddirector",
			kkpv1.CloudSpec{VMwareCloudDirector: &kkpv1.VMwareCloudDirectorCloudSpec{CSI: &kkpv1.VMwareCloudDirectorCSIConfig{
				StorageProfile: "p", Filesystem: "ext4",
			}}},
			templatedata.CSIOptions{StorageProfile: "p", Filesystem: "ext4"},
		},
		{"openstack", kkpv1.CloudSpec{Openstack: &kkpv1.OpenstackCloudSpec{CinderTopologyEnabled: true}}, templatedata.CSIOptions{CinderTopologyEnabled: true}},
		{
			"kubevirt",
			kkpv1.CloudSpec{Kubevirt: &kkpv1.KubevirtCloudSpec{CSIDriverOperator: &kkpv1.KubeVirtCSIDriverOperator{OverwriteRegistry: "r"}}},
			templatedata.CSIOptions{OverwriteRegistry: "r"},
		},
		{"hetzner", kkpv1.CloudSpec{Hetzner: &kkpv1.TokenCloudSpec{}}, templatedata.CSIOptions{}},
	} {
		cluster := fullCluster()
		cluster.Spec.Cloud = test.cloud
		data, err := templatedata.New(cluster, templatedata.Options{OverwriteRegistry: "another"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, data.Cluster.CSI); diff != "" || data.Cluster.CloudProviderName != test.provider {
			t.Errorf("%s, told as %s (-want +got):\n%s", test.provider, data.Cluster.CloudProviderName, diff)
		}
	}
}

func TestKubeVirtClasses(t *testing.T) {
	cluster := fullCluster()
	cluster.Spec.Cloud.Kubevirt = &kkpv1.KubevirtCloudSpec{
		StorageClasses: []kkpv1.KubeVirtInfraStorageClass{{
			Name: "fast", IsDefaultClass: new(true), VolumeBindingMode: new("Immediate"), Labels: map[string]string{"a": "b"},
			Zones: []string{"z"}, Regions: []string{"r"}, VolumeProvisioner: "csi", ReclaimPolicy: "Retain", AllowVolumeExpansion: true,
		}},
		VolumeSnapshotClasses: []kkpv1.KubeVirtInfraVolumeSnapshotClass{{InfraVolumeSnapshotClass: "s", DeletionPolicy: "Delete"}},
	}
	data, err := templatedata.New(cluster, templatedata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	classes := []templatedata.KubeVirtInfraStorageClass{{
		Name: "fast", IsDefaultClass: new(true), VolumeBindingMode: new("Immediate"), Labels: map[string]string{"a": "b"},
		Zones: []string{"z"}, Regions: []string{"r"}, VolumeProvisioner: "csi", ReclaimPolicy: "Retain", AllowVolumeExpansion: true,
	}}
	snapshots := []templatedata.KubeVirtInfraVolumeSnapshotClass{{InfraVolumeSnapshotClass: "s", DeletionPolicy: "Delete"}}
	if diff := cmp.Diff(classes, data.Cluster.KubeVirtInfraStorageClasses); diff != "" {
		t.Errorf("storage classes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(snapshots, data.Cluster.KubeVirtInfraVolumeSnapshotClasses); diff != "" {
		t.Errorf("snapshot classes (-want +got):\n%s", diff)
	}
}

func TestCSIMigration(t *testing.T) {
	condition := func(status metav1.ConditionStatus) map[string]kkpv1.ClusterCondition {
		return map[string]kkpv1.ClusterCondition{"CSIKubeletMigrationCompleted": {Status: status}}
	}
	for _, test := range []struct {
		why    string
		change func(*kkpv1.Cluster)
		want   bool
	}{
		{"it is needed", func(*kkpv1.Cluster) {}, true},
		{"it is through", func(c *kkpv1.Cluster) { c.Annotations, c.Status.Conditions = nil, condition(metav1.ConditionTrue) }, true},
		{"it is not through", func(c *kkpv1.Cluster) { c.Annotations, c.Status.Conditions = nil, condition(metav1.ConditionFalse) }, false},
		{"never needed", func(c *kkpv1.Cluster) { c.Annotations = nil }, false},
	} {
		cluster := fullCluster()
		test.change(cluster)
		if data, err := templatedata.New(cluster, templatedata.Options{}); err != nil || data.Cluster.CSIMigration != test.want {
			t.Errorf("%s: got %v, %v", test.why, data.Cluster.CSIMigration, err)
		}
	}
}

// The hash is KKP's, so that a move to Trellis rolls no pod. Red when a field is added to the
// network, or its order changes.
func TestConfigHashIsThatOfKKP(t *testing.T) {
	network := templatedata.ClusterNetwork{
		DNSDomain: "cluster.local", DNSClusterIP: "10.240.16.10", DNSResolverIP: "169.254.20.10",
		PodCIDRBlocks: []string{"fd01::/48", "172.25.0.0/16"}, ServiceCIDRBlocks: []string{"10.240.16.0/20"}, ProxyMode: "ipvs",
		StrictArp: new(true), DualStack: true, PodCIDRIPv4: "172.25.0.0/16", PodCIDRIPv6: "fd01::/48", NodeCIDRMaskSizeIPv4: 24,
		NodeCIDRMaskSizeIPv6: 64, IPAMAllocations: map[string]templatedata.IPAMAllocation{"lb": {Type: "prefix", CIDR: "192.0.2.0/28"}},
	}
	sum := sha1.Sum([]byte(`{"DNSDomain":"cluster.local","DNSClusterIP":"10.240.16.10","DNSResolverIP":"169.254.20.10",` +
		`"PodCIDRBlocks":["172.25.0.0/16","fd01::/48"],"ServiceCIDRBlocks":["10.240.16.0/20"],"ProxyMode":"ipvs","StrictArp":true,` +
		`"DualStack":true,"PodCIDRIPv4":"172.25.0.0/16","PodCIDRIPv6":"fd01::/48","NodeCIDRMaskSizeIPv4":24,"NodeCIDRMaskSizeIPv6":64,` +
		`"IPAMAllocations":{"lb":{"Type":"prefix","CIDR":"192.0.2.0/28","Addresses":null}},"NodePortRange":""}`))
	if got := network.ConfigHash(); got != hex.EncodeToString(sum[:]) {
		t.Errorf("got %s", got)
	}
	if network.PodCIDRBlocks[0] != "fd01::/48" {
		t.Error("the network's ranges were sorted in place")
	}
}

func TestPlatform(t *testing.T) {
	seed := func(name string, datacenters ...string) kkpv1.Seed {
		made := kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name}}
		made.Spec.Datacenters = map[string]kkpv1.Datacenter{}
		for _, datacenter := range datacenters {
			made.Spec.Datacenters[datacenter] = kkpv1.Datacenter{}
		}
		return made
	}
	seeds := []kkpv1.Seed{seed("north", "dc-1", "dc-2"), seed("south", "dc-2", "dc-3")}
	for datacenter, want := range map[string]string{"dc-1": "north", "dc-3": "south", "dc-2": "", "dc-4": ""} {
		if got := templatedata.SeedOf(datacenter, seeds); got != want {
			t.Errorf("datacenter %q is told to be of Seed %q, want %q", datacenter, got, want)
		}
	}
	allocation := kkpv1.IPAMAllocation{ObjectMeta: metav1.ObjectMeta{Name: "lb"}}
	allocation.Spec = kkpv1.IPAMAllocationSpec{Type: "range", Addresses: []string{"192.0.2.1"}}
	want := map[string]templatedata.IPAMAllocation{"lb": {Type: "range", Addresses: []string{"192.0.2.1"}}}
	if diff := cmp.Diff(want, templatedata.Allocations([]kkpv1.IPAMAllocation{allocation})); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}
