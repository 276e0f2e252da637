package sandbox

import (
	"slices"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Names on every sandbox; clusterapi.go has those of one with Cluster API.
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

	// shared is the namespace that it shares with others; "" for one of its own.
	shared string
}

// LabelRing is on every Cluster.
const LabelRing = "ring"

// Namespace is the cluster's namespace on its seed.
func (c UserCluster) Namespace() string {
	if c.shared != "" {
		return c.shared
	}
	return "cluster-" + c.Name
}

// Seeds lists the seeds.
func Seeds() []string { return []string{"seed-1", "seed-2"} }

// UserClusters lists the user clusters, two on each seed, of one Kubernetes minor.
func UserClusters() []UserCluster {
	return []UserCluster{
		{Name: "amber", Seed: "seed-1", Release: binaries.Newer, Ring: "0"}, {Name: "birch", Seed: "seed-1", Release: binaries.Newer, Ring: "1"},
		{Name: "cedar", Seed: "seed-2", Release: binaries.Newer, Ring: "1"}, {Name: "dune", Seed: "seed-2", Release: binaries.Newer, Ring: "1"},
	}
}

// UserClusters lists the user clusters of this sandbox. With two minors, the first one on each seed has the older.
func (s *Sandbox) UserClusters() []UserCluster {
	if s.clusters == ClusterAPI {
		return TeamClusters()
	}
	clusters := UserClusters()
	if s.twoMinors {
		clusters[0].Release, clusters[2].Release = binaries.Older, binaries.Older
	}
	return clusters
}

// seeds are those of this sandbox.
func (s *Sandbox) seeds() []string {
	if s.clusters == ClusterAPI {
		return []string{Management}
	}
	return Seeds()
}

// managed lists whom a manager works for: the master, and each seed.
func (s *Sandbox) managed() []string { return append([]string{Master}, s.seeds()...) }

// platform lists the control planes of master and seeds.
func (s *Sandbox) platform() []string {
	if s.clusters == ClusterAPI {
		return s.seeds()
	}
	return s.managed()
}

// names lists every control plane.
func (s *Sandbox) names() []string {
	all := s.platform()
	for _, cluster := range s.UserClusters() {
		all = append(all, cluster.Name)
	}
	return all
}

// Server is a control plane, by the names of Master, seeds and user clusters; the master may be a seed's.
func (s *Sandbox) Server(name string) *fleet.Cluster {
	if name == Master {
		name = s.platform()[0]
	}
	return s.Fleet.Cluster(name)
}

func (s *Sandbox) controlPlanes() []fleet.ClusterOptions {
	var clusters []fleet.ClusterOptions
	for _, name := range s.platform() {
		isSeed := slices.Contains(s.seeds(), name) // where agents may have certificates
		clusters = append(clusters, fleet.ClusterOptions{Name: name, Release: binaries.Newer, Controllers: true, Certificates: isSeed})
	}
	for i := range clusters {
		clusters[i].Tokens = s.webTokens()
	}
	if s.audit {
		for i := range clusters {
			clusters[i].Audit = Users(clusters[i].Name)
			if s.clusters == ClusterAPI { // which is the master too
				clusters[i].Audit = append(clusters[i].Audit, Users(Master)...)
			}
		}
	}
	for _, cluster := range s.UserClusters() {
		options := fleet.ClusterOptions{Name: cluster.Name, Release: cluster.Release, Workloads: true}
		if s.audit {
			options.Audit = []string{"admin"} // whom the managers are there
		}
		clusters = append(clusters, options)
	}
	return clusters
}
