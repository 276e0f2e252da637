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
	// Besides are objects that the installation uses of others: a rule about their kind has objects.
	Besides ownership.Inventory
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

// Reassess is Assess for an installation of which not everything was healthy, or had ended. It reads what
// was not, and everything once that is; until then it misses new failures.
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

// assessor of an installation that has all of an inventory.
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

// rulesOf are the rules about an object, by their places.
func (a *assessor) rulesOf(key ownership.Key) []int {
	if len(a.standard.Rules) == 0 {
		return nil
	}
	return slices.Concat(a.ofKind[key.GroupKind()], a.ofObject[key])
}

// isRuled says whether a rule is about an object.
func (a *assessor) isRuled(key ownership.Key) bool { return len(a.rulesOf(key)) > 0 }

// counts says whether what is found of an object matters: by rules alone, only what they are about does.
func (a *assessor) counts(key ownership.Key) bool { return !a.standard.OnlyRules || a.isRuled(key) }

// changes says in which version the health of an entry is to be read, if it can change.
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

// find gives the resource of a kind. One that a rule is about and that is not served is discovered once,
// and not in each later look.
func (a *assessor) find(kind schema.GroupVersionKind, isRuled bool) (where calls.Resource, served bool, err error) {
	if !isRuled || !a.isLater {
		return a.kinds.Find(kind)
	}
	where, served, err = a.kinds.Known(ownership.Key{Group: kind.Group, Kind: kind.Kind}, kind.Version)
	return where, served && where.Version == kind.Version, err
}

// assessRuled judges an object of the installation by rules, or not at all. Jobs and Pods end whatever
// rules say.
func (a *assessor) assessRuled(ctx context.Context, key ownership.Key, rules []int, live *unstructured.Unstructured) {
	isWell := a.judge(ctx, key, rules, live)
	switch {
	case isFinishing(key.GroupKind(), live):
		a.add(finding{note: calls.Note{Key: key}, finished: true})
	case isWell && mayEnd(key.GroupKind(), live):
		a.add(finding{note: calls.Note{Key: key}, running: true})
	}
}

// mayEnd says that a Job runs, or that a Pod is on its way: nobody waits for the end of one that serves.
func mayEnd(kind schema.GroupKind, live *unstructured.Unstructured) bool {
	if !calls.Runs(kind) {
		return false
	}
	result, err := status.Compute(live)
	return err == nil && (result.Status == status.InProgressStatus || kind == calls.JobGK && result.Status == status.CurrentStatus)
}

// judge an object by rules.
func (a *assessor) judge(ctx context.Context, key ownership.Key, rules []int, live *unstructured.Unstructured) (isWell bool) {
	state, words := a.judged(ctx, rules, live)
	if state == status.CurrentStatus {
		return true
	}
	note := calls.Note{Key: key, Reason: string(state), Message: calls.CutText(words)}
	a.add(finding{note: note, failed: state == status.FailedStatus, unjudged: severity(state) == beyondJudging})
	return false
}

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

// beyondJudging is the severity of what a rule can't be evaluated on.
const beyondJudging = 3

func severity(state status.Status) int {
	switch state {
	case status.CurrentStatus:
		return 0
	case status.InProgressStatus:
		return 1
	case status.FailedStatus:
		return 2
	}
	return beyondJudging
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
		lacks(status.UnknownStatus, "its kind is not served, which rule %d of the add-on is about", rules[0])
		return nil
	case where.Namespaced != (key.Namespace != ""):
		lacks(status.UnknownStatus, "rule %d of the add-on names a namespace where its kind has none, or none where it has", rules[0])
		return nil
	}
	live, err := calls.ReadWhole(ctx, calls.DynamicOf(a.target, where, key.Namespace), calls.Place{Namespace: key.Namespace, Name: key.Name})
	switch {
	case apierrors.IsNotFound(err):
		lacks(status.NotFoundStatus, "it does not exist, which rule %d of the add-on is about", rules[0])
	case calls.IsAnswer(err):
		lacks(status.UnknownStatus, "rule %d of the add-on is about it, and the API server does not show it (%s)",
			rules[0], apierrors.ReasonForError(err))
	case err != nil:
		return fmt.Errorf("reading %q: %w", key, err)
	default:
		a.judge(ctx, key, rules, live)
	}
	return nil
}

// expectObjects has a rule that is about no object of the installation count as one that is not there.
func (a *assessor) expectObjects() {
	has := map[schema.GroupKind]bool{}
	for _, entry := range slices.Concat(a.whole, a.standard.Besides) {
		has[entry.GroupKind()] = true
	}
	for kind, rules := range a.ofKind {
		if has[kind] {
			continue
		}
		a.total++
		a.add(finding{note: calls.Note{
			Key:    ownership.Key{Group: kind.Group, Kind: kind.Kind, Name: "*"},
			Reason: string(status.NotFoundStatus), Message: fmt.Sprintf("the add-on has none, which its rule %d is about", rules[0]),
		}})
	}
}
