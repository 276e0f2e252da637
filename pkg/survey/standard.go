package survey

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Standard is what objects are judged by. The zero value is kstatus for all of them.
type Standard struct {
	// Rules judge objects in place of kstatus, in the words of Judge.
	Rules []Rule
	Judge Judge
	// OnlyRules says that what no rule is about does not count. Of that only Jobs and Pods are read, until they
	// ended.
	OnlyRules bool
	// Shared is a round of which installations of a cluster that were healthy share one list for each kind of
	// workload: only those that are not healthy there are read. nil: each is.
	Shared *Survey
}

// Rule says which objects a rule is about: each of the kind that the installation has or, with a name,
// that one of the user cluster.
type Rule struct {
	Kind schema.GroupVersionKind
	calls.Place
}

// Judge judges objects by rules of one Standard, by their place in it. The status is one of kstatus, or
// another word for what can't be judged. Many goroutines use it.
type Judge interface {
	Judge(ctx context.Context, rule int, object map[string]any) (status.Status, string)
}

// Assess computes health. It reads only kinds whose health can change, and those with rules; all others
// count as healthy. It costs one call for each object, or a list for several of a kind and namespace, and a
// read of each object that a rule names.
func (s Standard) Assess(ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory) (Health, error) {
	return s.assessor(target, owner, inventory).all(ctx, inventory)
}

// Reassess is Assess for an installation that was just unhealthy. It reads what was not healthy, and
// everything once that is; until then it misses new failures.
func (s Standard) Reassess(
	ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory, before Health,
) (Health, error) {
	rest := inventory.Only(before.unhealthy)
	if len(rest) == 0 {
		return s.Assess(ctx, target, owner, inventory)
	}
	health, err := s.assessor(target, owner, inventory).all(ctx, rest)
	if err != nil {
		return Health{}, err
	}
	if health.Healthy == health.Total {
		return s.Assess(ctx, target, owner, inventory)
	}
	health.Finished = slices.Concat(before.Finished, health.Finished)
	return health, nil
}

// assessor of an installation that has all of an inventory.
func (s Standard) assessor(target calls.Target, owner ownership.Owner, whole ownership.Inventory) *assessor {
	a := &assessor{
		owner: owner, target: target, kinds: &calls.Kinds{Mapper: target.Mapper}, survey: s.Shared, standard: s,
		ofKind: map[schema.GroupKind][]int{}, ofObject: map[ownership.Key][]int{}, whole: whole, total: len(whole),
	}
	for at, rule := range s.Rules {
		if rule.Name == "" {
			kind := rule.Kind.GroupKind()
			a.ofKind[kind] = append(a.ofKind[kind], at)
			continue
		}
		key := ownership.Key{Group: rule.Kind.Group, Kind: rule.Kind.Kind, Namespace: rule.Namespace, Name: rule.Name}
		a.ofObject[key] = append(a.ofObject[key], at)
	}
	for key := range a.ofObject {
		if !slices.ContainsFunc(whole, func(entry ownership.Entry) bool { return entry.Key == key }) {
			a.total++
		}
	}
	return a
}

// changes says in which version the health of an entry is to be read, if it can change.
func (a *assessor) changes(entry ownership.Entry) (version string, can bool) {
	kind := entry.GroupKind()
	if len(a.ofObject[entry.Key]) > 0 { // it is read by itself
		return "", false
	}
	if rules := a.ofKind[kind]; len(rules) > 0 {
		return a.standard.Rules[rules[0]].Kind.Version, !entry.Finished
	}
	if a.standard.OnlyRules {
		return entry.Version, calls.Runs(kind) && !entry.Finished
	}
	return entry.Version, (workloadKinds[kind] || changingKinds[kind] || calls.IsCustom(kind)) && !entry.Finished
}

// isRuled says whether a rule is about all objects of a kind.
func (a *assessor) isRuled(kind schema.GroupKind) bool { return len(a.ofKind[kind]) > 0 }

// judged is the worst that rules say of an object: first what can't be judged.
func (a *assessor) judged(ctx context.Context, rules []int, live *unstructured.Unstructured) (worst status.Status, words string) {
	worst = status.CurrentStatus
	for _, rule := range rules {
		if state, said := a.standard.Judge.Judge(ctx, rule, live.Object); severity(state) > severity(worst) {
			worst, words = state, said
		}
	}
	return worst, words
}

// unjudged is the severity of what a rule can't be evaluated on.
const unjudged = 3

func severity(state status.Status) int {
	switch state {
	case status.CurrentStatus:
		return 0
	case status.InProgressStatus:
		return 1
	case status.FailedStatus:
		return 2
	}
	return unjudged
}

// counts says whether what is found of an object matters: by rules alone, only what they are about does.
func (a *assessor) counts(key ownership.Key) bool {
	return !a.standard.OnlyRules || a.isRuled(key.GroupKind()) || len(a.ofObject[key]) > 0
}

// readNamed reads the object that rules name, whoever's it is.
func (a *assessor) readNamed(ctx context.Context, key ownership.Key) error {
	rules := a.ofObject[key]
	lacks := func(state status.Status, format string, about ...any) {
		a.add(finding{note: calls.Note{Key: key, Reason: string(state), Message: fmt.Sprintf(format, about...)}})
	}
	kind := a.standard.Rules[rules[0]].Kind
	where, served, err := a.kinds.Find(kind)
	switch {
	case err != nil:
		return fmt.Errorf("looking up the kind of %q: %w", key, err)
	case !served:
		lacks(status.UnknownStatus, "its kind is not served, which rule %d of the add-on is about", rules[0])
		return nil
	case where.Namespaced != (key.Namespace != ""):
		lacks(status.UnknownStatus, "rule %d of the add-on names a namespace where its kind has none, or none where it has", rules[0])
		return nil
	}
	live, err := calls.ReadWhole(ctx, client(a.target, where, key.Namespace), calls.Place{Namespace: key.Namespace, Name: key.Name})
	switch {
	case apierrors.IsNotFound(err):
		lacks(status.NotFoundStatus, "it does not exist, which rule %d of the add-on is about", rules[0])
	case calls.IsKindTrouble(kind.GroupKind(), err):
		lacks(status.UnknownStatus, "the API server can't read objects of its kind")
	case err != nil:
		return fmt.Errorf("reading %q: %w", key, err)
	default:
		if state, words := a.judged(ctx, rules, live); state != status.CurrentStatus {
			note := calls.Note{Key: key, Reason: string(state), Message: calls.CutText(words)}
			a.add(finding{note: note, failed: state == status.FailedStatus, unjudged: severity(state) == unjudged})
		}
	}
	return nil
}

// expectObjects has a rule that is about no object of the installation count as one that is not there.
func (a *assessor) expectObjects() {
	for kind, rules := range a.ofKind {
		if !slices.ContainsFunc(a.whole, func(entry ownership.Entry) bool { return entry.GroupKind() == kind }) {
			a.total++
			a.add(finding{note: calls.Note{
				Key:    ownership.Key{Group: kind.Group, Kind: kind.Kind, Name: "*"},
				Reason: string(status.NotFoundStatus), Message: fmt.Sprintf("the add-on has none, which its rule %d is about", rules[0]),
			}})
		}
	}
}
