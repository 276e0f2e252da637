package addonset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// mostPreviewed is how many clusters a preview names.
const mostPreviewed = 500

// errNotStarted says that not all sets were read yet, so that it is unknown which set has a name in a cluster.
var errNotStarted = errors.New("the sets of this seed are being read")

// Preview says what a set would do with this spec. All else is that of the live copy; without one, the set is new. It plans with the
// planner of the controller and its memory, which it does not change. Errors: *addonset.InvalidError.
func (r *Reconciler) Preview(ctx context.Context, live *v1.AddonSet, asked *v1.AddonSet) (view.SetPreview, error) {
	wanted := &v1.AddonSet{Spec: asked.Spec}
	wanted.Name, wanted.CreationTimestamp = asked.Name, metav1.NewTime(r.Clock.Now())
	if live != nil {
		wanted.ObjectMeta = *live.ObjectMeta.DeepCopy()
	}
	if wanted.Spec.Type != v1.AddonSetCustom {
		return view.SetPreview{}, &addonset.InvalidError{Why: fmt.Errorf("spec.type: a preview is for sets of type %s", v1.AddonSetCustom)}
	}
	if err := addonset.Validate(wanted); err != nil {
		return view.SetPreview{}, &addonset.InvalidError{Why: err}
	}
	read, err := readSet(wanted)
	if err != nil {
		return view.SetPreview{}, &addonset.InvalidError{Why: err}
	}
	found, err := r.readDependencies(ctx, read)
	if err != nil {
		return view.SetPreview{}, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if started, err := r.start(ctx); err != nil { // a seed may have no set yet: then no reconciliation started the controller
		return view.SetPreview{}, err
	} else if !started {
		return view.SetPreview{}, errNotStarted
	}
	read.seed = cmp.Or(read.seed, r.seed())
	sets := map[string]*set{}
	for name, one := range r.sets {
		sets[name] = one.set
	}
	sets[read.name] = read
	others := newCompetitors(sets)
	others.unknown = slices.DeleteFunc(slices.Clone(r.competitors.unknown), func(one *claims) bool { return one.set == read.name })
	return r.previewOf(ctx, planner{newResolver(read, found.offersFor(read, r)), others})
}

// previewOf plans for all clusters. The caller holds the mutex: a walk takes as long as a count.
func (r *Reconciler) previewOf(ctx context.Context, by planner) (view.SetPreview, error) {
	made := view.SetPreview{Name: by.set.name, Clusters: []view.SetCluster{}, Counts: map[v1.ChangeKind]int{}}
	for _, group := range by.set.strategy.Groups {
		made.Groups = append(made.Groups, view.SetGroup{Name: group.Name})
	}
	differing := make([][]view.SetCluster, len(made.Groups))
	err := r.eachPlace(ctx, by.set.seed, func(in *place) {
		planned := by.planFor(in)
		group := by.set.strategy.GroupOf(in.labels)
		if planned.presence != waves.Absent {
			made.Groups[group].Selected++
		}
		shown := view.SetCluster{
			Namespace: in.ref.Namespace, Name: in.name, Group: made.Groups[group].Name, Waits: in.away, Changes: changesIn(&planned),
		}
		if len(shown.Changes) == 0 {
			return
		}
		if by.set.leaveOut.Has(in.ref.LongName()) {
			shown.Waits = v1.AnnotationLeaveOut
		}
		for _, one := range shown.Changes {
			made.Counts[one.Change]++
		}
		made.Groups[group].Differing++
		differing[group] = append(differing[group], shown)
	})
	for _, of := range differing {
		slices.SortFunc(of, func(a, b view.SetCluster) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		made.Clusters = append(made.Clusters, of...)
	}
	if made.Truncated = len(made.Clusters) > mostPreviewed; made.Truncated {
		made.Clusters = made.Clusters[:mostPreviewed]
	}
	return made, err
}

// changesIn are the changes of a plan by item. Repairs are none: the set is not the reason for them.
func changesIn(planned *plan) (found []view.SetChange) {
	for i := range planned.steps {
		if one := &planned.steps[i]; !one.repair {
			found = append(found, view.SetChange{Item: one.item, Change: one.kind, From: one.from, To: one.to})
		}
	}
	for _, one := range planned.blocked {
		found = append(found, view.SetChange{Item: one.Item, Change: v1.ChangeBlocked, Reason: one.Reason, Message: one.Message})
	}
	for _, item := range slices.Sorted(maps.Keys(planned.awaited)) {
		found = append(found, view.SetChange{
			Item: item, Change: v1.ChangeBlocked, Reason: v1.ReasonNameTaken, Message: "it " + planned.whyMissing(item),
		})
	}
	slices.SortStableFunc(found, func(a, b view.SetChange) int { return cmp.Compare(a.Item, b.Item) })
	return found
}

// eachPlace visits the clusters that are counted. The caller holds the mutex.
func (r *Reconciler) eachPlace(ctx context.Context, seed string, visit func(*place)) error {
	clusters, err := r.Finder.List(ctx)
	if err != nil {
		return err
	}
	claimed := make(map[cluster.Key]int, len(clusters))
	for i := range clusters {
		for _, by := range cluster.KeysOf(clusters[i].Ref) {
			claimed[by]++
		}
	}
	installations, err := r.caches.all()
	if err != nil {
		return err
	}
	for i := range clusters {
		if !r.concerns(clusters[i]) || claimed[cluster.KeyOf(clusters[i].Ref)] > 1 {
			continue
		}
		in, err := r.placeOf(&clusters[i], allOf(clusters[i].Ref, installations), seed)
		if err != nil {
			return err
		}
		visit(in)
	}
	return nil
}
