package addonset

import (
	"maps"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// observation is an installation with the fields that plans read, extracted once: a walk over tens of thousands would
// otherwise wait for the memory of everything that they point to.
type observation struct {
	*v1.AddonInstallation
	// set is the set that made it; empty if none did.
	set string
	// digest is that of the last applied intent.
	digest string
	// version is the one that the cluster has; empty if none.
	version string
	// asked is the requested add-on, without the digest.
	asked asked
	// release is the requested release, and wanted the requested version.
	release, wanted string
	report          installation.Report
	// key is that of its cluster.
	key cluster.Key
}

func observationOf(live *v1.AddonInstallation) *observation {
	found := &observation{
		AddonInstallation: live, set: setOf(live), digest: live.Annotations[v1.AnnotationDigest], version: live.Status.Version,
		asked:   asked{live.Name, string(live.Spec.AddonRef.Name), live.Spec.TargetNamespace},
		release: live.Spec.ReleaseName, wanted: live.Spec.AddonRef.Version,
		report: installation.ReportOf(live), key: cluster.KeyOf(target.InstalledIn(live)),
	}
	if applied := live.Status.LastApplied; applied != nil && applied.Version != "" {
		found.version = applied.Version
	}
	return found
}

// setOf is the name of the set that made an installation; empty if none did.
func setOf(live *v1.AddonInstallation) string {
	if live.Labels[v1.LabelManagedBy] != v1.ManagedBySets || live.Spec.CoreAddon {
		return ""
	}
	return live.Labels[v1.LabelSet]
}

// isOf reports whether a set made an installation.
func (s *observation) isOf(set string) bool { return s.set == set && set != "" }

// installed is the version that the cluster has; empty if it has none, or there is no installation.
func (s *observation) installed() string {
	if s == nil {
		return ""
	}
	return s.version
}

// object is the installation; nil if there is none.
func (s *observation) object() *v1.AddonInstallation {
	if s == nil {
		return nil
	}
	return s.AddonInstallation
}

// byName are installations of one cluster.
type byName map[string]*observation

// with merges written installations of a cluster into those of the cache. Writes that the cache has by now are
// dropped. The caller holds the mutex.
func (b byName) with(written waves.Written, in cluster.Key) byName {
	names := written.Names(in)
	if len(names) == 0 {
		return b
	}
	cached := make(map[string]*v1.AddonInstallation, len(names))
	for _, name := range names {
		if one := b[name]; one != nil {
			cached[name] = one.AddonInstallation
		}
	}
	written.Over(in, cached)
	found := make(byName, len(b)+len(cached))
	maps.Copy(found, b) // the cache's map is shared
	for name, live := range cached {
		if one := b[name]; one == nil || one.AddonInstallation != live {
			found[name] = observationOf(live)
		}
	}
	return found
}

// observations are all installations of the cache that were read, by cluster. The caller holds a lock; results are shared,
// and only read.
type observations struct {
	byObject  map[*v1.AddonInstallation]*observation
	byCluster map[cluster.Key]byName
}

// of returns the sight of a cached installation, extracted once.
func (s *observations) of(live *v1.AddonInstallation) *observation {
	if known := s.byObject[live]; known != nil {
		return known
	}
	if s.byObject == nil {
		s.byObject, s.byCluster = map[*v1.AddonInstallation]*observation{}, map[cluster.Key]byName{}
	}
	found := observationOf(live)
	own := s.byCluster[found.key]
	if own == nil {
		own = make(byName, 1)
		s.byCluster[found.key] = own
	}
	if before := own[live.Name]; before != nil {
		delete(s.byObject, before.AddonInstallation)
	}
	s.byObject[live], own[live.Name] = found, found
	return found
}

// forget drops an installation that has another state in the cache by now.
func (s *observations) forget(live *v1.AddonInstallation) {
	if known := s.byObject[live]; known != nil {
		s.drop(known)
	}
}

// forgetGone drops a deleted installation. Its event need not have the object that the cache had.
func (s *observations) forgetGone(gone *v1.AddonInstallation) {
	if known := s.byCluster[cluster.KeyOf(target.InstalledIn(gone))][gone.Name]; known != nil {
		s.drop(known)
	}
}

func (s *observations) drop(known *observation) {
	delete(s.byObject, known.AddonInstallation)
	own := s.byCluster[known.key]
	if own[known.Name] == known {
		delete(own, known.Name)
	}
	if len(own) == 0 {
		delete(s.byCluster, known.key)
	}
}

// forgetAllBut drops all installations that are not in a list.
func (s *observations) forgetAllBut(listed []any) {
	isListed := make(map[any]bool, len(listed))
	for _, object := range listed {
		isListed[object] = true
	}
	for live, known := range s.byObject {
		if !isListed[live] {
			s.drop(known)
		}
	}
}
