package addonset

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
	"github.com/trellis-addons/trellis/pkg/values"
)

// set is a copy of an AddonSet as it was read. It does not change afterwards.
type set struct {
	name       string
	uid        types.UID
	generation int64
	// claim decides which set has a name that several sets claim.
	claim addonset.Claim
	// seed is the name of the seed, from the distributor.
	seed     string
	paused   bool
	deleting bool
	// leaveOut are the clusters that annotation leave-out names.
	leaveOut rollout.LeaveOut
	selector labels.Selector
	// k8s and kkp are nil if the set does not constrain them.
	k8s, kkp *catalogue.Range
	items    []item
	byName   map[string]*item
	// names are those of the items.
	names     []string
	overrides []override
	removal   v1.RemovalPolicy
	// staged says that the set has a rollout.
	staged   bool
	strategy rollout.Strategy
	// removing is the strategy of a set that is being deleted: by places, not by groups, and no failure halts it.
	removing rollout.Strategy
	// dependsOn are the names of the add-ons of the items.
	dependsOn []string
}

// item is one add-on of a set.
type item struct {
	v1.AddonSetItem
	values map[string]any
}

func (i *item) addon() string { return string(i.AddonRef.Name) }

func (i *item) allows(permission v1.Permission) bool {
	return slices.Contains(i.Allow, permission)
}

// override adds values of an item for some clusters.
type override struct {
	selector labels.Selector
	item     string
	values   map[string]any
}

// invalidError names a field of a set that can't be used, and the reason.
type invalidError struct {
	field string
	why   error
}

func (e *invalidError) Error() string { return fmt.Sprintf("spec.%s: %v", e.field, e.why) }

// Unwrap is the reason why the field can't be used.
func (e *invalidError) Unwrap() error { return e.why }

// readSet reads a copy of type Custom. Errors: *invalidError.
func readSet(found *v1.AddonSet) (*set, error) {
	spec := &found.Spec
	read := &set{
		name: found.Name, uid: found.UID, generation: found.Generation, claim: addonset.ClaimOf(found),
		seed: found.Annotations[v1.AnnotationSeed], paused: spec.Paused,
		deleting: !found.DeletionTimestamp.IsZero(), removal: spec.Removal, staged: spec.Rollout != nil,
		byName: map[string]*item{},
	}
	read.leaveOut, _ = rollout.ReadLeaveOut(found.Annotations[v1.AnnotationLeaveOut]) // the master reports an annotation that can't be read
	var err error
	if read.strategy, err = rollout.NewStrategy(spec.Rollout); err != nil {
		return nil, &invalidError{"rollout", err}
	}
	read.removing = read.strategy.Ungrouped()
	if spec.Rollout != nil {
		all, pace := intstr.FromString("100%"), spec.Rollout.Pace
		pace.MaxFailures = &all
		if read.removing, err = rollout.NewStrategy(&v1.Rollout{Pace: pace}); err != nil {
			return nil, &invalidError{"rollout", err}
		}
	}
	if read.selector, err = metav1.LabelSelectorAsSelector(spec.ClusterSelector); err != nil {
		return nil, &invalidError{"clusterSelector", err}
	}
	if err := read.constrain(spec.Constraints); err != nil {
		return nil, err
	}
	if err := read.addItems(spec.Addons); err != nil {
		return nil, err
	}
	return read, read.addOverrides(spec.Overrides)
}

func (s *set) constrain(constraints *v1.Constraints) error {
	if constraints == nil {
		return nil
	}
	for _, one := range []struct {
		field string
		text  v1.VersionRange
		into  **catalogue.Range
	}{{"k8sVersion", constraints.K8sVersion, &s.k8s}, {"kkpVersion", constraints.KKPVersion, &s.kkp}} {
		if one.text == "" {
			continue
		}
		parsed, err := catalogue.ParseRange(string(one.text))
		if err != nil {
			return &invalidError{"constraints." + one.field, err}
		}
		*one.into = parsed
	}
	return nil
}

func (s *set) addItems(items []v1.AddonSetItem) error {
	s.items = make([]item, len(items))
	addons := map[string]bool{}
	for i := range items {
		field := fmt.Sprintf("addons[%q]", items[i].Name)
		if s.byName[string(items[i].Name)] != nil {
			return &invalidError{field, fmt.Errorf("the name is used twice")}
		}
		if wanted := items[i].AddonRef.Version; catalogue.IsRange(wanted) {
			if _, err := catalogue.ParseRange(wanted); err != nil {
				return &invalidError{field + ".addonRef.version", err}
			}
		}
		decoded, err := decode(items[i].Values)
		if err != nil {
			return &invalidError{field + ".values", err}
		}
		s.items[i] = item{items[i], decoded}
		s.byName[string(items[i].Name)] = &s.items[i]
		s.names = append(s.names, string(items[i].Name))
		if addon := s.items[i].addon(); !addons[addon] {
			addons[addon] = true
			s.dependsOn = append(s.dependsOn, addon)
		}
	}
	return nil
}

func (s *set) addOverrides(overrides []v1.AddonSetOverride) error {
	for i := range overrides {
		field := fmt.Sprintf("overrides[%d]", i)
		selector, err := metav1.LabelSelectorAsSelector(overrides[i].ClusterSelector)
		if err != nil {
			return &invalidError{field + ".clusterSelector", err}
		}
		name := string(overrides[i].Addon)
		if s.byName[name] == nil {
			return &invalidError{field + ".addon", fmt.Errorf("the set has no item %q", name)}
		}
		decoded, err := decode(overrides[i].Values)
		if err != nil {
			return &invalidError{field + ".values", err}
		}
		s.overrides = append(s.overrides, override{selector, name, decoded})
	}
	return nil
}

// moves is the strategy by which a set's clusters move. The installations of a deleted set are removed by places, not
// by groups.
func (s *set) moves() rollout.Strategy {
	if s.deleting {
		return s.removing
	}
	return s.strategy
}

// before is negative if a set has a name that the other set claims too.
func (s *set) before(other *set) int { return s.claim.Compare(other.claim) }

func decode(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	return values.Decode(raw.Raw)
}
