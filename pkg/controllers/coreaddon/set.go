package coreaddon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/text"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// decideSet reads the list, once for each of its versions, and joins rules and list. Under a Core
// set that is what its revision was taken from; nothing is written before its clusters were
// counted.
func (r *Reconciler) decideSet(ctx context.Context, f *facts) loop.Outcome {
	state, err := r.readCoreList(ctx)
	if err != nil {
		return failed(err)
	}
	of, err := r.coreSet(ctx)
	if err != nil {
		return failed(err)
	}
	f.seed = of.seed
	if !of.isNone() {
		if f.inForce = r.staging.inForceFor(of, f.key(), r.Clock.Now()); f.inForce == nil {
			return loop.Done{}
		}
		f.seed, state = f.inForce.seed, f.inForce.offers.list
	}
	f.set = setFor(f.cluster, state, f.seed)
	f.set.elsewhere = r.elsewhere(ctx, f.cluster.Ref)
	return nil
}

// Listed is what list and rules have for a cluster, by the names of its installations, and the Core
// set that moves it there; nil: there is none. That set may have pinned them to something else. Nothing
// is kept or told of the list: a pass does that.
func (r *Reconciler) Listed(ctx context.Context, of target.Description) (map[string]v1.AddonReference, *v1.AddonSet, error) {
	found, err := listIn(ctx, r.list, r.Options.Namespace)
	if err != nil {
		return nil, nil, err
	}
	copies, err := r.coreSet(ctx)
	if err != nil {
		return nil, nil, err
	}
	listed := map[string]v1.AddonReference{}
	for _, one := range setFor(of, r.lists.with(found), copies.seed).wanted {
		listed[one.name] = one.spec.AddonRef
	}
	return listed, copies.set, nil
}

// readCoreList reads the list, and tells once of each version that it is refused.
func (r *Reconciler) readCoreList(ctx context.Context) (listState, error) {
	found, err := listIn(ctx, r.list, r.Options.Namespace)
	if err != nil {
		return listState{}, err
	}
	state, changed := r.lists.update(found)
	if changed {
		r.recordList(found, state)
		if found != nil && state.Problem == nil {
			r.tellUnknown(ctx, found, state)
		}
	}
	return state, nil
}

// listIn is the list of a platform namespace; nil: there is none.
func listIn(ctx context.Context, reader client.Reader, namespace string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ListName}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting ConfigMap %q: %w", ListName, err)
	}
	return found, nil
}

// recordList notes which add-ons the list names, and reports what is wrong with it.
func (r *Reconciler) recordList(found *corev1.ConfigMap, state listState) {
	names := map[string]bool{}
	for _, one := range state.Items {
		names[string(one.spec.AddonRef.Name)], names[one.name] = true, true
	}
	r.interesting.Store(&names)
	if state.Problem != nil {
		r.Recorder.Eventf(found, nil, corev1.EventTypeWarning, v1.EventListRefused, "Read", "%s", refusedText(state))
	}
}

// refusedText says why a list is not in force, and what is in place of it.
func refusedText(list listState) string {
	if list.Read {
		return list.Problem.Error() + "; the last good list stays in force"
	}
	return list.Problem.Error() + "; no list was good since this process began, and the core add-ons stay as they are"
}

// unknownNamed is how many add-ons an event names that no catalogue has.
const unknownNamed = 5

// tellUnknown reports, once of each version of the list, which of its add-ons no catalogue has.
func (r *Reconciler) tellUnknown(ctx context.Context, found *corev1.ConfigMap, state listState) {
	var merged v1.AddonCatalogueList
	if err := r.Client.List(ctx, &merged, client.InNamespace(r.Options.CatalogueNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return // AddonsReady of clusters says so too
	}
	var known, unknown []string
	for i := range merged.Items {
		if r.Marks.Believes(&merged.Items[i]) {
			known = append(known, merged.Items[i].Name)
		}
	}
	for _, one := range state.Items {
		if addon := string(one.spec.AddonRef.Name); !slices.Contains(known, addon) {
			unknown = append(unknown, fmt.Sprintf("item %q: %s", one.name, values.UnknownAddon(addon, known)))
		}
	}
	if len(unknown) > 0 {
		r.Recorder.Eventf(found, nil, corev1.EventTypeWarning, v1.EventAddonUnknown, "Read", "%s",
			text.Message(text.First(unknown, unknownNamed)))
	}
}

// coreNamespace is the namespace of rules' add-ons, where all of KKP's are.
const coreNamespace = "kube-system"

// wanted is one core add-on that a cluster is to have.
type wanted struct {
	// name of its installation in the cluster, and of the item that it is made for.
	name, item string
	// origin is v1.OriginRule or v1.OriginList.
	origin string
	spec   v1.AddonInstallationSpec
}

func (w wanted) addon() string { return string(w.spec.AddonRef.Name) }

// set is what a cluster is to have, as far as it is known.
type set struct {
	wanted []wanted
	// held are add-ons that may be wanted, with the reason why it is not known: they stay.
	held map[string]string
	// frozen says why nothing is added or removed; empty as a rule.
	frozen string
	// keepListed is set where there is no list: what an earlier one brought stays.
	keepListed bool
	// refused says why an earlier list is in force instead of the present one; empty as a rule.
	refused string
	// elsewhere says whether an installation of another cluster of the namespace has a name; nil: none
	// has.
	elsewhere func(name string) bool
	// of is the cluster that the set is for.
	of target.Ref
}

// isFormers says whether an installation, where there is one, goes with the Cluster that had the name before.
func (s *set) isFormers(live *v1.AddonInstallation) bool {
	return live != nil && cluster.GoesWithFormer(s.of, live)
}

// isElsewhere says whether an installation of another cluster has a name.
func (s *set) isElsewhere(name string) bool { return s.elsewhere != nil && s.elsewhere(name) }

// setFor is the set of a cluster: the rules, and above them the list. The name of the seed is empty
// where no copy of a set tells it: whether an item that selects by it is for the cluster is not
// known.
func setFor(found target.Description, list listState, seed string) set {
	result := set{held: map[string]string{}, keepListed: list.Absent, of: found.Ref}
	switch {
	case list.Problem != nil && !list.Read:
		result.frozen = refusedText(list)
	case list.Problem != nil:
		result.refused = refusedText(list)
	}
	facts := cluster.Labels(found, seed)
	listed := map[string]bool{}
	for _, one := range list.Items {
		addon := string(one.spec.AddonRef.Name)
		switch one.presenceIn(facts) {
		case waves.Present:
			listed[addon] = true
			result.wanted = append(result.wanted, wantedIn(found.Ref, wanted{item: one.name, origin: v1.OriginList, spec: one.spec}))
		case waves.Unknown:
			listed[addon] = true
			result.held[addon] = "its item selects by the name of the seed, which no copy of an AddonSet tells"
		case waves.Absent:
		}
	}
	kkp, isKKP := kkpCluster(found)
	for _, rule := range rules() {
		if !isKKP || listed[rule.addon] {
			continue
		}
		switch answer := rule.decide(kkp); answer.presence {
		case waves.Present:
			result.wanted = append(result.wanted, wantedIn(found.Ref, wanted{item: rule.addon, origin: v1.OriginRule, spec: specOf(rule.addon)}))
		case waves.Unknown:
			result.held[rule.addon] = answer.detail
		case waves.Absent:
		}
	}
	slices.SortFunc(result.wanted, func(a, b wanted) int { return cmp.Compare(a.name, b.name) })
	return result
}

// wantedIn a cluster is a core add-on of an item.
func wantedIn(of target.Ref, one wanted) wanted {
	one.name = of.NameOf(one.item)
	if !of.IsKKP() {
		one.spec.ClusterName = of.Name
	}
	return one
}

// presenceIn says whether an item is for a cluster with these labels and facts. A selector that
// needs the name of the seed says nothing where that is not known.
func (i item) presenceIn(facts labels.Set) waves.Presence {
	switch selected, isKnown := target.Selects(i.selector, facts); {
	case !isKnown:
		return waves.Unknown
	case selected:
		return waves.Present
	}
	return waves.Absent
}

func specOf(addon string) v1.AddonInstallationSpec {
	spec := v1.AddonInstallationSpec{
		AddonRef: v1.AddonReference{Name: v1.AddonName(addon)}, TargetNamespace: coreNamespace,
	}
	fillIn(&spec)
	return spec
}

// find is the wanted add-on of a name; nil where the set has none.
func (s *set) find(name string) *wanted {
	i, ok := slices.BinarySearchFunc(s.wanted, name, func(w wanted, name string) int { return cmp.Compare(w.name, name) })
	if !ok {
		return nil
	}
	return &s.wanted[i]
}
