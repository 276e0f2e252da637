package webhook

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// SeedClusters are the clusters that sets are carried out for, if the master is also a seed.
type SeedClusters struct {
	// Reader reads copies of sets from a cache, Uncached the master's ConfigMap, if the seed has it.
	Reader, Uncached client.Reader
	// Clusters lists clusters from a cache.
	Clusters interface {
		List(ctx context.Context) ([]target.Description, error)
	}
	CatalogueNamespace string
	// WorkerName selects the clusters, as for the controllers.
	WorkerName string
}

// How many clusters and items a warning names.
const (
	lostClusters = 3
	lostItems    = 5
)

// lost warns about clusters that lose installations of a set by an edit. If something can't be read there is no
// warning; the status reports it.
func (s *SeedClusters) lost(ctx context.Context, found change[v1.AddonSet]) []string {
	if s == nil || found.before == nil || found.after.Spec.Removal == v1.RemovalRelease {
		return nil
	}
	copied := s.copied(ctx, found.after.Name)
	if copied == nil {
		return nil
	}
	before, problem := metav1.LabelSelectorAsSelector(found.before.Spec.ClusterSelector)
	after, err := metav1.LabelSelectorAsSelector(found.after.Spec.ClusterSelector)
	all, listProblem := s.Clusters.List(ctx)
	if problem != nil || err != nil || listProblem != nil {
		return nil
	}
	var leaving []string
	had, selected := 0, 0
	for i := range all {
		one := &all[i]
		if one.Namespace == "" || one.Deleted || !cluster.BelongsTo(*one, s.WorkerName) {
			continue
		}
		facts := cluster.Labels(*one, copied.Annotations[v1.AnnotationSeed])
		stays := after.Matches(facts)
		if stays {
			selected++
		}
		if !before.Matches(facts) {
			continue
		}
		if had++; !stays {
			leaving = append(leaving, text.Cut(one.LongName(), maxNameWarned))
		}
	}
	return append(selectorWarnings(leaving, selected), takenOut(found, had)...)
}

// copied is the seed's copy of a set, or nil.
func (s *SeedClusters) copied(ctx context.Context, name string) *v1.AddonSet {
	found := &v1.AddonSet{}
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.CatalogueNamespace, Name: name}, found)
	if err != nil || found.Labels[v1.LabelRole] != v1.RoleCopy {
		return nil
	}
	return found
}

// maxNameWarned bounds the name of a cluster in a warning, in bytes.
const maxNameWarned = 32

const onceApproved = "once annotation " + v1.AnnotationRemovalApproved + " approves it"

func selectorWarnings(leaving []string, selected int) []string {
	number, names := text.Count(len(leaving), "cluster"), text.Names(leaving, lostClusters)
	switch {
	case len(leaving) == 0:
		return nil
	case selected == 0:
		return []string{fmt.Sprintf("spec.clusterSelector no longer selects any cluster: the set's installations are removed from %s (%s), %s",
			number, names, onceApproved)}
	}
	return []string{fmt.Sprintf("spec.clusterSelector no longer selects %s: the set's installations there are removed (%s)", number, names)}
}

// takenOut warns about items that a set no longer has; had is the number of clusters that have them.
func takenOut(found change[v1.AddonSet], had int) (warnings []string) {
	stays := map[v1.AddonName]bool{}
	for i := range found.after.Spec.Addons {
		stays[found.after.Spec.Addons[i].Name] = true
	}
	for i := range found.before.Spec.Addons {
		if item := found.before.Spec.Addons[i].Name; !stays[item] && had > 0 && len(warnings) < lostItems {
			warnings = append(warnings, fmt.Sprintf("the set no longer has item %q: it is removed from %s, %s",
				item, text.Count(had, "cluster"), onceApproved))
		}
	}
	return warnings
}
