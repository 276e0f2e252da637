package addonset

import (
	"maps"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// sight is an installation with what plans ask of each, taken from it once: a walk over tens of
// thousands would wait for the memory of all that they point to.
type sight struct {
	*v1.AddonInstallation
	// set that made it; empty: none did.
	set string
	// digest of the intent that was applied last.
	digest string
	// version that the cluster has; empty: none.
	version string
	// asked is what it asks for, without the digest.
	asked asked
	// release that it asks for, and wanted the version.
	release, wanted string
	report          installation.Report
	// key is what its cluster is kept by.
	key cluster.Key
}

func sightOf(live *v1.AddonInstallation) *sight {
	found := &sight{
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

// setOf is the name of the set that made an installation; empty: none did.
func setOf(live *v1.AddonInstallation) string {
	if live.Labels[v1.LabelManagedBy] != v1.ManagedBySets || live.Spec.CoreAddon {
		return ""
	}
	return live.Labels[v1.LabelSet]
}

// isOf says whether a set made an installation.
func (s *sight) isOf(set string) bool { return s.set == set && set != "" }

// installed is the version that the cluster has; empty: none, or there is no installation.
func (s *sight) installed() string {
	if s == nil {
		return ""
	}
	return s.version
}

// object is the installation; nil: there is none.
func (s *sight) object() *v1.AddonInstallation {
	if s == nil {
		return nil
	}
	return s.AddonInstallation
}

// byName are installations of one cluster.
type byName map[string]*sight

// with what was written over what the cache has of a cluster; what the cache has by now is written no
// more. The mutex is held.
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
	maps.Copy(found, b) // that of the cache is shared
	for name, live := range cached {
		if one := b[name]; one == nil || one.AddonInstallation != live {
			found[name] = sightOf(live)
		}
	}
	return found
}

// sights are all installations of the cache that were looked at, by cluster. The caller holds a lock;
// what is handed out is shared, and only read.
type sights struct {
	byObject  map[*v1.AddonInstallation]*sight
	byCluster map[cluster.Key]byName
}

// of an installation as the cache has it: taken from it once.
func (s *sights) of(live *v1.AddonInstallation) *sight {
	if known := s.byObject[live]; known != nil {
		return known
	}
	if s.byObject == nil {
		s.byObject, s.byCluster = map[*v1.AddonInstallation]*sight{}, map[cluster.Key]byName{}
	}
	found := sightOf(live)
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

// forget an installation that the cache has otherwise by now.
func (s *sights) forget(live *v1.AddonInstallation) {
	if known := s.byObject[live]; known != nil {
		s.drop(known)
	}
}

// forgetGone forgets an installation that is gone. Its event need not have the object that the cache
// had.
func (s *sights) forgetGone(gone *v1.AddonInstallation) {
	if known := s.byCluster[cluster.KeyOf(target.InstalledIn(gone))][gone.Name]; known != nil {
		s.drop(known)
	}
}

func (s *sights) drop(known *sight) {
	delete(s.byObject, known.AddonInstallation)
	own := s.byCluster[known.key]
	if own[known.Name] == known {
		delete(own, known.Name)
	}
	if len(own) == 0 {
		delete(s.byCluster, known.key)
	}
}

// forgetAllBut what a list has.
func (s *sights) forgetAllBut(listed []any) {
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
