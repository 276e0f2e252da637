package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// RuleFailed is a status in addition to those of kstatus: the rule can't be evaluated on the object.
const RuleFailed status.Status = v1.ReasonRuleFailed

// The limits of one evaluation, and of all of a look together: in CEL's units of cost, and in time, for costs that
// those units do not count.
const (
	evaluationCost = 100_000
	lookCost       = 1_000_000
	evaluationTime = 100 * time.Millisecond
	lookTime       = time.Second
)

// longestWords is the length of a rule's message, or of an expression, that is shown, in bytes.
const longestWords = 200

// Look is one assessment of objects by rules: it bounds what their evaluations cost together. Many goroutines may use
// it.
type Look struct {
	programs *Programs
	share    *share
	rules    []v1.HealthRule

	mutex sync.Mutex
	cost  uint64
	spent time.Duration
}

// Look begins one with these rules. The share of this name pays for their evaluations.
func (p *Programs) Look(sharer string, rules []v1.HealthRule) *Look {
	return &Look{programs: p, share: p.shareOf(sharer), rules: rules}
}

// Evaluate returns the status of an object by a rule, as kstatus names them: Failed, InProgress, Current, or RuleFailed.
func (l *Look) Evaluate(ctx context.Context, number int, object map[string]any) (status.Status, string) {
	by := &l.rules[number]
	if words, is := unsettled(object); is {
		return status.InProgressStatus, words
	}
	if by.Failed != "" {
		switch holds, _, err := l.holds(ctx, by.Failed, object); {
		case err != nil:
			return RuleFailed, fmt.Sprintf("expression \"failed\" of rule %d can't be evaluated: %v", number, err)
		case holds:
			return status.FailedStatus, l.words(ctx, by, object, "expression \"failed\" is true: "+text.Cut(by.Failed, longestWords))
		}
	}
	switch holds, missing, err := l.holds(ctx, by.Healthy, object); {
	case err != nil:
		return RuleFailed, fmt.Sprintf("expression \"healthy\" of rule %d can't be evaluated: %v", number, err)
	case missing != "":
		return status.InProgressStatus, "it has no " + missing + " yet"
	case !holds:
		return status.InProgressStatus, l.words(ctx, by, object, "expression \"healthy\" is false: "+text.Cut(by.Healthy, longestWords))
	}
	return status.CurrentStatus, ""
}

// unsettled says that an object is being deleted, or that its controller has not seen its last change.
func unsettled(object map[string]any) (words string, is bool) {
	if _, goes, _ := unstructured.NestedFieldNoCopy(object, "metadata", "deletionTimestamp"); goes {
		return "it is being deleted", true
	}
	wanted, _, _ := unstructured.NestedInt64(object, "metadata", "generation")
	observed, known, err := unstructured.NestedInt64(object, "status", "observedGeneration")
	if err != nil || !known || observed >= wanted {
		return "", false
	}
	return fmt.Sprintf("its controller has seen generation %d of %d", observed, wanted), true
}

// words is the rule's message about an object, or others if the rule has none, or it can't be evaluated.
func (l *Look) words(ctx context.Context, by *v1.HealthRule, object map[string]any, others string) string {
	if by.Message == "" {
		return others
	}
	said, err := l.evaluate(ctx, by.Message, types.StringType, shown(object))
	if words, isText := said.(types.String); err == nil && isText {
		return text.Message(text.Cut(string(words), longestWords))
	}
	return others
}

// shown are the parts of an object that messages may see: the spec has values of users, and annotations may repeat
// it.
func shown(object map[string]any) map[string]any {
	seen := map[string]any{}
	if state, has := object["status"]; has {
		seen["status"] = state
	}
	if metadata, isMap := object["metadata"].(map[string]any); isMap {
		of := make(map[string]any, len(metadata))
		for name, value := range metadata {
			if name != "annotations" && name != "managedFields" {
				of[name] = value
			}
		}
		seen["metadata"] = of
	}
	return seen
}

// holds says whether an expression is true; missing is a field that does not exist yet.
func (l *Look) holds(ctx context.Context, expression string, object map[string]any) (holds bool, missing string, err error) {
	found, err := l.evaluate(ctx, expression, types.BoolType, object)
	if err != nil {
		if field, is := missingField(err, expression); is {
			return false, field, nil
		}
		return false, "", problemOf(err)
	}
	is, isBool := found.(types.Bool)
	if !isBool {
		return false, "", errNoBool
	}
	return bool(is), "", nil
}

// absences are CEL's messages about a missing part, up to its name.
var absences = []struct{ said, what string }{{"no such key: ", "field "}, {"index out of bounds: ", "item "}}

// missingField is the missing field that ended an evaluation, if that is the cause. It is named only if the
// expression names it: a name from the object itself may be a value of users.
func missingField(err error, expression string) (field string, is bool) {
	for _, one := range absences {
		name, found := strings.CutPrefix(err.Error(), one.said)
		switch {
		case found && strings.Contains(expression, name):
			return one.what + fmt.Sprintf("%q", name), true
		case found:
			return one.what + "that the expression reads", true
		}
	}
	return "", false
}

var errNoBool = errors.New("its result is not a bool")

// problems are CEL's messages about failed evaluations, and the messages shown instead: CEL's own may have values.
var problems = []struct{ said, reported string }{
	{"no such overload", "the object's fields have other types than it accepts (no such overload)"},
	{"operation cancelled: actual cost limit exceeded", fmt.Sprintf("it costs more than %d of CEL's units", evaluationCost)},
}

// problemOf describes a failed evaluation, without values.
func problemOf(err error) error {
	if _, is := errors.AsType[*shownError](err); is {
		return err
	}
	for _, one := range problems {
		if strings.HasPrefix(err.Error(), one.said) {
			return errors.New(one.reported)
		}
	}
	return errors.New("the object has values that it can't use")
}

// shownError says why nothing was evaluated, or not completely, without values: all of it may be shown.
type shownError struct{ problem string }

func (e *shownError) Error() string { return e.problem }

// evaluate evaluates an expression. Use a type switch on its value: unpacking another type would walk through all of
// it.
func (l *Look) evaluate(ctx context.Context, expression string, result *types.Type, object map[string]any) (ref.Val, error) {
	if err := l.left(); err != nil {
		return nil, err
	}
	within, of, began := ctx, map[string]any{self: object}, l.programs.now()
	if l.share.remaining(began) <= 0 {
		return nil, errShareSpent
	}
	made := l.programs.of(expression, result) // compiling costs the share, too
	if made.problem != nil {
		l.share.pay(l.programs.now().Sub(began))
		return nil, &shownError{made.problem.Error() + "; correct the rule in the catalogue, preferably in a new version of the add-on"}
	}
	evaluate := func() (ref.Val, *cel.EvalDetails, error) { return made.program.Eval(of) }
	if made.repeats {
		limited, cancel := context.WithTimeout(ctx, evaluationTime)
		defer cancel()
		within, evaluate = limited, func() (ref.Val, *cel.EvalDetails, error) { return made.program.ContextEval(limited, of) }
	}
	value, details, err := evaluate()
	var cost uint64
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	took := l.programs.now().Sub(began)
	l.pay(cost, took)
	l.share.pay(took)
	switch {
	case err == nil:
		return value, nil
	case ctx.Err() != nil: // the reconciliation ended before the rule was evaluated, and its results do not count
		return nil, &shownError{"the reconciliation ended before the rule was evaluated"}
	case within.Err() != nil:
		return nil, &shownError{fmt.Sprintf("it takes longer than %s", evaluationTime)}
	}
	return nil, err
}

// left is an error if a look has used up its limits.
func (l *Look) left() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.cost >= lookCost || l.spent >= lookTime {
		return &shownError{fmt.Sprintf("the rules cost more than one check may (%d of CEL's units, or %s): let them read "+
			"less", lookCost, lookTime)}
	}
	return nil
}

func (l *Look) pay(cost uint64, took time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cost += cost
	l.spent += took
}
