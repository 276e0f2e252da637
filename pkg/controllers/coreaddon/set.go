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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/pkg/values"
)

// decideSet reads the list, once for each of its versions, and joins rules and list. Under a Core set it uses the
// list that the set's revision was taken from, and nothing is written before the cluster was counted.
func (r *Reconciler) decideSet(ctx context.Context, f *facts) *loop.Outcome {
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
			return &loop.Outcome{Kind: loop.Done}
		}
		f.seed, state = f.inForce.seed, f.inForce.offers.list
	}
	f.set = setFor(f.cluster, state, f.seed)
	f.set.elsewhere = r.elsewhere(ctx, f.cluster.Ref)
	return nil
}

// Listed returns the add-on references in the core list and the rules for a cluster, by the names of its installations,
// and the Core set that moves the cluster to them; nil if there is none. That set may have pinned other versions.
// Listed stores and reports nothing about the list: a reconciliation does that.
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

// readCoreList reads the list, and reports once for each version if it is refused.
func (r *Reconciler) readCoreList(ctx context.Context) (listState, error) {
	found, err := listIn(ctx, r.list, r.Options.Namespace)
	if err != nil {
		return listState{}, err
	}
	state, changed := r.lists.update(found)
	if changed {
		r.recordList(found, state)
		if found != nil && state.Problem == nil {
			r.reportUnknown(ctx, found, state)
		}
	}
	return state, nil
}

// listIn is the list of a platform namespace; nil if there is none.
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

// recordList notes which add-ons the list names, and reports its problems.
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

// refusedText says why a list is not in force, and which one applies instead.
func refusedText(list listState) string {
	if list.Read {
		return list.Problem.Error() + "; the last valid list stays in use"
	}
	return list.Problem.Error() + "; no list was valid since this process started, and the core add-ons stay as they are"
}

// unknownNamed is the maximum number of add-ons without a catalogue in an event.
const unknownNamed = 5

// reportUnknown reports, once for each version of the list, which of its add-ons no catalogue has.
func (r *Reconciler) reportUnknown(ctx context.Context, found *corev1.ConfigMap, state listState) {
	known, err := r.Marks.Addons(ctx, r.Client, r.Options.CatalogueNamespace)
	if err != nil {
		return // AddonsReady of clusters reports it too
	}
	var unknown []string
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

// coreNamespace is the target namespace of rules' add-ons, as in KKP.
const coreNamespace = "kube-system"

// wanted is one core add-on that a cluster should have.
type wanted struct {
	// name is the name of its installation in the cluster, item the item that it is made for.
	name, item string
	// origin is v1.OriginRule or v1.OriginList.
	origin string
	spec   v1.AddonInstallationSpec
}

func (w wanted) addon() string { return string(w.spec.AddonRef.Name) }

// set is the set of core add-ons that a cluster should have, as far as it is known.
type set struct {
	wanted []wanted
	// held are add-ons that may be in the set, with the reason why this is unknown: their installations stay.
	held map[string]string
	// frozen says why nothing is added or removed; usually empty.
	frozen string
	// keepListed is set if there is no list: installations of an earlier list stay.
	keepListed bool
	// refused says why an earlier list is in force instead of the present one; usually empty.
	refused string
	// elsewhere reports whether an installation of another cluster of the namespace has a name; nil if there is none.
	elsewhere func(name string) bool
	// of is the cluster that the set is for.
	of target.Ref
}

// isOfPrevious reports whether an installation is deleted together with the previous Cluster of the same name.
func (s *set) isOfPrevious(live *v1.AddonInstallation) bool {
	return live != nil && cluster.GoesWithPrevious(s.of, live)
}

// isElsewhere reports whether an installation of another cluster has a name.
func (s *set) isElsewhere(name string) bool { return s.elsewhere != nil && s.elsewhere(name) }

// setFor is the set of a cluster: the rules, which the list overrides. The name of the seed is empty if no copy of a
// set has it: then it is unknown whether an item that selects by it is for the cluster.
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
			result.held[addon] = "its item selects by the name of the seed, which is unknown until the master copies an AddonSet to the seed"
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

// wantedIn is the core add-on of an item in a cluster.
func wantedIn(of target.Ref, one wanted) wanted {
	one.name = of.NameOf(one.item)
	if !of.IsKKP() {
		one.spec.ClusterName = of.Name
	}
	return one
}

// presenceIn reports whether an item is for a cluster with these labels and facts. It is unknown for a selector that
// needs the name of the seed if that name is unknown.
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

// find is the add-on with this name; nil if the set has none.
func (s *set) find(name string) *wanted {
	i, ok := slices.BinarySearchFunc(s.wanted, name, func(w wanted, name string) int { return cmp.Compare(w.name, name) })
	if !ok {
		return nil
	}
	return &s.wanted[i]
}
