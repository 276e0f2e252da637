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
	"github.com/trellis-addons/trellis/pkg/text"
)

// RuleFailed stands where kstatus has a status: the rule can't be evaluated on the object.
const RuleFailed status.Status = v1.ReasonRuleFailed

// The limits of one evaluation, and of all of a look together: in CEL's units of cost, and in time, for
// what those units do not count.
const (
	evaluationCost = 100_000
	lookCost       = 1_000_000
	evaluationTime = 100 * time.Millisecond
	lookTime       = time.Second
)

// longestWords of a rule's message or of an expression that is shown, in bytes.
const longestWords = 200

// Look is one look at objects by rules: what their evaluations cost together is bounded. Many
// goroutines may use it.
type Look struct {
	programs *Programs
	share    *share
	rules    []v1.HealthRule

	mutex sync.Mutex
	cost  uint64
	spent time.Duration
}

// Look begins one by these rules, whose evaluations are paid for by the share of this name.
func (p *Programs) Look(sharer string, rules []v1.HealthRule) *Look {
	return &Look{programs: p, share: p.shareOf(sharer), rules: rules}
}

// Judge says by a rule how an object is, in the words of kstatus: Failed, InProgress, Current, or
// RuleFailed.
func (l *Look) Judge(ctx context.Context, number int, object map[string]any) (status.Status, string) {
	by := &l.rules[number]
	if words, is := unsettled(object); is {
		return status.InProgressStatus, words
	}
	if by.Failed != "" {
		switch holds, _, err := l.holds(ctx, by.Failed, object); {
		case err != nil:
			return RuleFailed, fmt.Sprintf("failed of rule %d can't be evaluated: %v", number, err)
		case holds:
			return status.FailedStatus, l.words(ctx, by, object, "failed holds: "+text.Cut(by.Failed, longestWords))
		}
	}
	switch holds, missing, err := l.holds(ctx, by.Healthy, object); {
	case err != nil:
		return RuleFailed, fmt.Sprintf("healthy of rule %d can't be evaluated: %v", number, err)
	case missing != "":
		return status.InProgressStatus, "it has no " + missing + " yet"
	case !holds:
		return status.InProgressStatus, l.words(ctx, by, object, "healthy does not hold: "+text.Cut(by.Healthy, longestWords))
	}
	return status.CurrentStatus, ""
}

// unsettled says that an object goes, or that its controller has not seen its last change.
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

// words of a rule about an object; others where it has none, or they can't be had.
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

// shown is what messages may see of an object: values of users are in the spec, and annotations may
// repeat it.
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

// holds says whether an expression does; missing is the field that is not there yet.
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

// absences are how CEL says that something is not there, before its name.
var absences = []struct{ said, what string }{{"no such key: ", "field "}, {"index out of bounds: ", "item "}}

// missingField is what an evaluation did not find, if that is what ended it. It is named where the
// expression does: a name that the object itself brings may be a value of users.
func missingField(err error, expression string) (field string, is bool) {
	for _, one := range absences {
		name, found := strings.CutPrefix(err.Error(), one.said)
		switch {
		case found && strings.Contains(expression, name):
			return one.what + fmt.Sprintf("%q", name), true
		case found:
			return one.what + "that it asks for", true
		}
	}
	return "", false
}

var errNoBool = errors.New("it gives no bool")

// problems are how CEL says why it can't evaluate, and what is told of it: its own words may have values.
var problems = []struct{ said, told string }{
	{"no such overload", "the object's fields have other types than it takes (no such overload)"},
	{"operation cancelled: actual cost limit exceeded", fmt.Sprintf("it costs more than %d of CEL's units", evaluationCost)},
}

// problemOf an evaluation, in words without values.
func problemOf(err error) error {
	if _, is := errors.AsType[*toldError](err); is {
		return err
	}
	for _, one := range problems {
		if strings.HasPrefix(err.Error(), one.said) {
			return errors.New(one.told)
		}
	}
	return errors.New("the object has values that it can't take")
}

// toldError says why nothing was evaluated, or not to its end, in words without values: all of it may be told.
type toldError struct{ problem string }

func (e *toldError) Error() string { return e.problem }

// evaluate an expression. Its value is for a switch on its type: to unpack another would walk through all of it.
func (l *Look) evaluate(ctx context.Context, expression string, result *types.Type, object map[string]any) (ref.Val, error) {
	if err := l.left(); err != nil {
		return nil, err
	}
	within, of, began := ctx, map[string]any{self: object}, l.programs.now()
	if l.share.remaining(began) <= 0 {
		return nil, errShareSpent
	}
	made := l.programs.of(expression, result) // to compile it is paid for, too
	if made.problem != nil {
		l.share.pay(l.programs.now().Sub(began))
		return nil, &toldError{made.problem.Error() + "; correct the rule in the catalogue, best in a new version of the add-on"}
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
	case ctx.Err() != nil: // the pass is over, and what it found does not count
		return nil, &toldError{"the pass is over"}
	case within.Err() != nil:
		return nil, &toldError{fmt.Sprintf("it takes longer than %s", evaluationTime)}
	}
	return nil, err
}

// left is an error where a look has cost what it may.
func (l *Look) left() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.cost >= lookCost || l.spent >= lookTime {
		return &toldError{fmt.Sprintf("the rules cost more than a look may (%d of CEL's units, or %s): let them read less", lookCost, lookTime)}
	}
	return nil
}

func (l *Look) pay(cost uint64, took time.Duration) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.cost += cost
	l.spent += took
}
