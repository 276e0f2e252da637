package sandbox

import (
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Names on every sandbox.
const (
	// Master is the control plane with the authored catalogues and the Seeds.
	Master = "master"
	// Namespace is the platform's namespace.
	Namespace = "kubermatic"
	// CatalogueNamespace holds merged catalogues on the seeds.
	CatalogueNamespace = "addon-catalogue"
	// CASecret is the Secret in Namespace on the master with the certificate authority of the sources.
	CASecret = "sandbox-ca"
	// SampleCatalogue is the AddonCatalogue of deploy/sandbox.
	SampleCatalogue = "samples"
)

// kkpVersion is what the master's manager takes for the platform's version.
const kkpVersion = "v2.31.0"

// UserCluster is one user cluster and its place.
type UserCluster struct {
	// Name of the control plane and of the Cluster on its seed.
	Name string
	// Seed that the cluster belongs to.
	Seed string
	// Release of Kubernetes, without "v".
	Release string
	// Ring is the value of the Cluster's label ring: 0 for the one that gets changes first.
	Ring string
}

// LabelRing is on every Cluster.
const LabelRing = "ring"

// Namespace is the cluster's namespace on its seed.
func (c UserCluster) Namespace() string { return "cluster-" + c.Name }

// Seeds lists the seeds.
func Seeds() []string { return []string{"seed-1", "seed-2"} }

// UserClusters lists the user clusters: on each seed one of either Kubernetes minor.
func UserClusters() []UserCluster {
	return []UserCluster{
		{"amber", "seed-1", binaries.Older, "0"}, {"birch", "seed-1", binaries.Newer, "1"},
		{"cedar", "seed-2", binaries.Older, "1"}, {"dune", "seed-2", binaries.Newer, "1"},
	}
}

// names lists every control plane.
func names() []string {
	all := append([]string{Master}, Seeds()...)
	for _, cluster := range UserClusters() {
		all = append(all, cluster.Name)
	}
	return all
}

func (s *Sandbox) controlPlanes() []fleet.ClusterOptions {
	clusters := []fleet.ClusterOptions{{Name: Master, Controllers: true}}
	for _, seed := range Seeds() {
		clusters = append(clusters, fleet.ClusterOptions{Name: seed, Controllers: true})
	}
	if s.audit {
		for i := range clusters {
			clusters[i].Audit = Users(clusters[i].Name)
		}
	}
	for _, cluster := range UserClusters() {
		options := fleet.ClusterOptions{Name: cluster.Name, Release: cluster.Release, Workloads: true}
		if s.audit {
			options.Audit = []string{"admin"} // whom the managers are there
		}
		clusters = append(clusters, options)
	}
	return clusters
}
