package survey

import (
	"context"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Standard decides the health of objects. The zero value is kstatus for all of them.
type Standard struct {
	// Rules evaluate objects in place of kstatus, by means of Evaluator.
	Rules     []Rule
	Evaluator Evaluator
	// OnlyRules says that objects without a rule do not count. Of these only Jobs and Pods are read, until they ended.
	OnlyRules bool
	// Extra are objects of others that the installation uses: a rule about their kind has objects.
	Extra ownership.Inventory
	// Shared is a round in which installations of a cluster that were healthy share one list for each kind of workload:
	// only objects that are not healthy there are read. nil: each object is read.
	Shared *Survey
}

// Rule names the objects of a rule: each object of the kind in the installation or, with a name, that one of the user
// cluster.
type Rule struct {
	Kind schema.GroupVersionKind
	calls.Place
}

// Evaluator evaluates objects by the rules of one Standard, by the rule's index. The status is one of kstatus, or another
// text if the rule can't be evaluated. Many goroutines use it.
type Evaluator interface {
	Evaluate(ctx context.Context, rule int, object map[string]any) (status.Status, string)
}

// Assess computes health. It reads only kinds whose health can change, and those with rules; all others count as
// healthy. It costs one call for each object, or a list for several of a kind and namespace, and a read of each
// object that a rule names.
func (s Standard) Assess(ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory) (Health, error) {
	return s.assessor(target, owner, inventory).all(ctx, inventory)
}

// Reassess is Assess for an installation with objects that were not healthy, or had not ended. It reads those, and
// everything once they are; until then it misses new failures.
func (s Standard) Reassess(
	ctx context.Context, target calls.Target, owner ownership.Owner, inventory ownership.Inventory, before Health,
) (Health, error) {
	if len(before.unhealthy)+len(before.running) == 0 {
		return s.Assess(ctx, target, owner, inventory)
	}
	a := s.assessor(target, owner, inventory)
	a.isLater = true
	health, err := a.all(ctx, inventory.Only(slices.Concat(before.unhealthy, before.running)))
	if err != nil {
		return Health{}, err
	}
	if health.Healthy == health.Total && len(before.unhealthy) > 0 {
		return s.Assess(ctx, target, owner, inventory)
	}
	health.Finished = slices.Concat(before.Finished, health.Finished)
	return health, nil
}

// assessor is for an installation with all objects of an inventory.
func (s Standard) assessor(target calls.Target, owner ownership.Owner, whole ownership.Inventory) *assessor {
	a := &assessor{
		owner: owner, target: target, kinds: &calls.Kinds{Mapper: target.Mapper}, standard: s,
		ofKind: map[schema.GroupKind][]int{}, ofObject: map[ownership.Key][]int{}, whole: whole,
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
			a.foreign = append(a.foreign, key)
		}
	}
	a.total = len(whole) + len(a.foreign)
	return a
}

// rulesOf are the indices of the rules about an object.
func (a *assessor) rulesOf(key ownership.Key) []int {
	if len(a.standard.Rules) == 0 {
		return nil
	}
	return slices.Concat(a.ofKind[key.GroupKind()], a.ofObject[key])
}

// isRuled says whether a rule is about an object.
func (a *assessor) isRuled(key ownership.Key) bool { return len(a.rulesOf(key)) > 0 }

// counts says whether the health of an object matters: with OnlyRules, only objects with a rule count.
func (a *assessor) counts(key ownership.Key) bool { return !a.standard.OnlyRules || a.isRuled(key) }

// changes returns the version in which to read the health of an entry, if it can change.
func (a *assessor) changes(entry ownership.Entry) (version string, can bool) {
	kind := entry.GroupKind()
	if rules := a.rulesOf(entry.Key); len(rules) > 0 {
		return a.standard.Rules[rules[0]].Kind.Version, !entry.Finished
	}
	if a.standard.OnlyRules {
		return entry.Version, calls.Runs(kind) && !entry.Finished
	}
	return entry.Version, (workloadKinds[kind] || changingKinds[kind] || calls.IsCustom(kind)) && !entry.Finished
}

// find returns the resource of a kind. A kind that a rule is about and that is not served is discovered once, not in
// each later assessment.
func (a *assessor) find(kind schema.GroupVersionKind, isRuled bool) (where calls.Resource, served bool, err error) {
	if !isRuled || !a.isLater {
		return a.kinds.Find(kind)
	}
	where, served, err = a.kinds.Known(ownership.Key{Group: kind.Group, Kind: kind.Kind}, kind.Version)
	return where, served && where.Version == kind.Version, err
}

// assessRuled evaluates an object of the installation by rules, or not at all. Jobs and Pods end regardless of rules.
func (a *assessor) assessRuled(ctx context.Context, key ownership.Key, rules []int, live *unstructured.Unstructured) {
	isWell := a.evaluate(ctx, key, rules, live)
	switch {
	case isFinishing(key.GroupKind(), live):
		a.add(finding{note: calls.Note{Key: key}, finished: true})
	case isWell && mayEnd(key.GroupKind(), live):
		a.add(finding{note: calls.Note{Key: key}, running: true})
	}
}

// mayEnd says that a Job runs, or that a Pod is starting: a Pod that serves is not awaited.
func mayEnd(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	if !calls.Runs(kind) {
		return false
	}
	result, err := status.Compute(live)
	return err == nil && (result.Status == status.InProgressStatus || kind == calls.JobGK && result.Status == status.CurrentStatus)
}

// evaluate evaluates an object by rules.
func (a *assessor) evaluate(ctx context.Context, key ownership.Key, rules []int, live *unstructured.Unstructured) (isWell bool) {
	state, words := a.evaluated(ctx, rules, live)
	if state == status.CurrentStatus {
		return true
	}
	note := calls.Note{Key: key, Reason: string(state), Message: calls.CutText(words)}
	a.add(finding{note: note, failed: state == status.FailedStatus, unjudged: severity(state) == notEvaluated})
	return false
}

// evaluated is the worst result of the rules for an object. A rule that can't be evaluated is the worst.
func (a *assessor) evaluated(ctx context.Context, rules []int, live *unstructured.Unstructured) (worst status.Status, words string) {
	worst = status.CurrentStatus
	for _, rule := range rules {
		if state, said := a.standard.Evaluator.Evaluate(ctx, rule, live.Object); severity(state) > severity(worst) {
			worst, words = state, said
		}
	}
	return worst, words
}

// notEvaluated is the severity of an object on which a rule can't be evaluated.
const notEvaluated = 3

func severity(state status.Status) int {
	switch state {
	case status.CurrentStatus:
		return 0
	case status.InProgressStatus:
		return 1
	case status.FailedStatus:
		return 2
	}
	return notEvaluated
}

// readForeign reads an object that rules name and that is not the installation's.
func (a *assessor) readForeign(ctx context.Context, key ownership.Key) error {
	rules := a.ofObject[key]
	lacks := func(state status.Status, format string, about ...any) {
		a.add(finding{note: calls.Note{Key: key, Reason: string(state), Message: fmt.Sprintf(format, about...)}})
	}
	where, served, err := a.find(a.standard.Rules[rules[0]].Kind, true)
	switch {
	case err != nil:
		return fmt.Errorf("looking up the kind of %q: %w", key, err)
	case !served:
		lacks(status.UnknownStatus, "its kind, which rule %d of the add-on reads, is not served", rules[0])
		return nil
	case where.Namespaced != (key.Namespace != ""):
		lacks(status.UnknownStatus, "rule %d of the add-on names a namespace for a cluster-scoped kind, or none for a namespaced one", rules[0])
		return nil
	}
	live, err := calls.ReadWhole(ctx, calls.DynamicOf(a.target, where, key.Namespace), calls.Place{Namespace: key.Namespace, Name: key.Name})
	switch {
	case apierrors.IsNotFound(err):
		lacks(status.NotFoundStatus, "it does not exist, but rule %d of the add-on reads it", rules[0])
	case calls.IsAnswer(err):
		lacks(status.UnknownStatus, "rule %d of the add-on reads it, but the API server refuses the read (%s)",
			rules[0], apierrors.ReasonForError(err))
	case err != nil:
		return fmt.Errorf("reading %q: %w", key, err)
	default:
		a.evaluate(ctx, key, rules, live)
	}
	return nil
}

// expectObjects makes a rule without any object of the installation count as a missing object.
func (a *assessor) expectObjects() {
	has := map[schema.GroupKind]bool{}
	for _, entry := range slices.Concat(a.whole, a.standard.Extra) {
		has[entry.GroupKind()] = true
	}
	for kind, rules := range a.ofKind {
		if has[kind] {
			continue
		}
		a.total++
		a.add(finding{note: calls.Note{
			Key:    ownership.Key{Group: kind.Group, Kind: kind.Kind, Name: "*"},
			Reason: string(status.NotFoundStatus), Message: fmt.Sprintf("the add-on has no object of this kind, which its rule %d reads", rules[0]),
		}})
	}
}
