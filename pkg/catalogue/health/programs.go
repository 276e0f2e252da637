package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// self is the one variable of expressions.
	self = "self"
	// longest is the maximal length of an expression in bytes, as in the schema, which does not check specs from git.
	longest = 1024
	// mostRules is the maximum of rules of a version.
	mostRules = 16
	// mostDepth is the maximal depth of an expression.
	mostDepth = 64
	// largestPattern is the size of a pattern for matches, in steps of its program: each step may run for each byte of a
	// text.
	largestPattern = 100
	// longestProblem is how much of CEL's own message is shown.
	longestProblem = 300
	// mostText is for the rules of one catalogue together, in bytes; each expression counts once.
	mostText = 128 << 10
	// mostRefused is how many invalid expressions of a catalogue are reported: checking wrong ones costs more than
	// checking right ones.
	mostRefused = 20
	// mostVerdicts is how many verdicts are kept.
	mostVerdicts = 4096
	// mostPrograms is how many programs are kept, each for programLife after its last use.
	mostPrograms = 1024
	programLife  = time.Hour
	// interruptEvery is the number of steps of a comprehension between checks of the time: one step may read a megabyte.
	interruptEvery = 1
)

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(self, cel.MapType(cel.StringType, cel.DynType)), cel.OptionalTypes(),
		cel.ParserRecursionLimit(mostDepth), cel.ParserExpressionSizeLimit(longest), cel.RegexProgramSizeLimit(largestPattern),
	)
})

var withoutMacros = sync.OnceValues(func() (*cel.Env, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	return env.Extend(cel.ClearMacros())
})

// verdicts on expressions are cached by text: the webhook and the controllers read the same ones.
var verdicts = lru.New[programKey, error](mostVerdicts, nil)

// Check returns a check of the expressions of versions, for one catalogue.Read: field is the path below the version. The cost of
// a catalogue is bounded by the text of its rules, and by how much of it is refused. Once the context is over, nothing else is
// checked, and the results do not count.
func Check(ctx context.Context) func(version *v1.AddonVersion) (field string, err error) {
	counted, left, refused := map[string]bool{}, mostText, 0
	return func(version *v1.AddonVersion) (field string, err error) {
		if version.Template == nil || version.Template.Health == nil || refused >= mostRefused {
			return "", nil
		}
		if err := ctx.Err(); err != nil {
			return of, err
		}
		for _, rule := range version.Template.Health.Rules {
			for _, expression := range []string{rule.Healthy, rule.Failed, rule.Message} {
				if left >= 0 && !counted[expression] {
					counted[expression], left = true, left-len(expression)
				}
			}
		}
		if left < 0 {
			refused = mostRefused
			return of + ".rules", fmt.Errorf("the rules of the catalogue have more than %d KiB of text, including earlier rules, each expression "+
				"counted once: use the same rules in several versions, or split the catalogue", mostText>>10)
		}
		if field, err = CheckVersion(version); err != nil {
			refused++
		}
		return field, err
	}
}

// of is the path of the checked field.
const of = "template.health"

// CheckVersion checks the expressions of one version's rules.
func CheckVersion(version *v1.AddonVersion) (field string, err error) {
	if version.Template == nil || version.Template.Health == nil {
		return "", nil
	}
	check := version.Template.Health
	if field, err := checkMode(check); err != nil {
		return of + field, err
	}
	versions := map[schema.GroupKind]string{}
	for at := range check.Rules {
		kind := schema.FromAPIVersionAndKind(check.Rules[at].APIVersion, check.Rules[at].Kind)
		if before, has := versions[kind.GroupKind()]; has && before != kind.Version {
			return fmt.Sprintf("%s.rules[%d].apiVersion", of, at), fmt.Errorf(
				"an earlier rule reads the kind as %s: use one version in all rules about a kind", before)
		}
		versions[kind.GroupKind()] = kind.Version
		if field, err := checkRule(&check.Rules[at]); err != nil {
			return fmt.Sprintf("%s.rules[%d].%s", of, at, field), err
		}
	}
	return "", nil
}

// modes are all modes; "" is Workloads.
var modes = []v1.HealthMode{"", v1.HealthByWorkloads, v1.HealthByLease, v1.HealthByRules, v1.HealthUnwatched}

// checkMode repeats the schema's check, for specs from git.
func checkMode(check *v1.HealthCheck) (field string, err error) {
	hasRules, byLease := len(check.Rules) > 0, check.Mode == v1.HealthByLease
	switch {
	case !slices.Contains(modes, check.Mode):
		return ".mode", fmt.Errorf("%q is not a mode", text.Cut(string(check.Mode), longestProblem))
	case len(check.Rules) > mostRules:
		return ".rules", fmt.Errorf("there are %d rules, at most %d are allowed", len(check.Rules), mostRules)
	case hasRules && (byLease || check.Mode == v1.HealthUnwatched):
		return ".rules", errors.New("rules need mode Workloads or Rules")
	case check.Mode == v1.HealthByRules && !hasRules:
		return ".mode", errors.New("mode Rules needs rules")
	case check.Lease != nil && !byLease:
		return ".lease", errors.New("lease needs mode Lease")
	case check.Lease != nil && check.Lease.StaleAfter != nil &&
		(check.Lease.StaleAfter.Duration < 30*time.Second || check.Lease.StaleAfter.Duration > time.Hour):
		return ".lease.staleAfter", fmt.Errorf("it is %s: use 30s to 1h", check.Lease.StaleAfter.Duration)
	}
	return "", nil
}

func checkRule(rule *v1.HealthRule) (field string, err error) {
	switch {
	case schema.FromAPIVersionAndKind(rule.APIVersion, rule.Kind).GroupKind() == schema.GroupKind{Kind: "Secret"}:
		return "kind", errors.New("rules can't read Secrets: use another object that shows the health")
	case rule.Namespace != "" && rule.Name == "":
		return "name", errors.New("namespace needs a name")
	}
	for _, one := range []struct {
		field, text string
		optional    bool
		result      *types.Type
	}{
		{"healthy", rule.Healthy, false, types.BoolType},
		{"failed", rule.Failed, true, types.BoolType},
		{"message", rule.Message, true, types.StringType},
	} {
		if one.text == "" && one.optional {
			continue
		}
		if err := verdict(one.text, one.result); err != nil {
			return one.field, err
		}
	}
	return "", nil
}

func verdict(expression string, result *types.Type) error {
	key := keyOf(expression, result)
	if known, found := verdicts.Get(key); found {
		return known
	}
	_, err := parse(expression, result)
	if len(expression) <= longest {
		verdicts.Put(key, err, lru.Forever)
	}
	return err
}

// parse parses and checks an expression for values of a type. An expression that rules may not have reaches no macro
// and no type check.
func parse(expression string, result *types.Type) (*cel.Ast, error) {
	if expression == "" || len(expression) > longest {
		return nil, fmt.Errorf("it has %d bytes, 1 to %d are allowed", len(expression), longest)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("creating the environment of CEL: %w", err)
	}
	plain, err := withoutMacros()
	if err != nil {
		return nil, fmt.Errorf("creating the environment of CEL: %w", err)
	}
	parsed, issues := plain.Parse(expression)
	if issues.Err() == nil {
		read, _ := readLanguage(parsed.NativeRep())
		switch {
		case read.problem != nil:
			return nil, read.problem
		case read.hasMacros:
			parsed, issues = env.Compile(expression)
		default:
			parsed, issues = env.Check(parsed)
		}
	}
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("it is not a CEL expression over self: %s", text.Cut(text.Line(err.Error()), longestProblem))
	}
	if given := parsed.OutputType(); !given.IsExactType(result) && !given.IsExactType(types.DynType) {
		return nil, fmt.Errorf("its result is %s, it has to be %s", given, result)
	}
	return parsed, nil
}

// Programs are compiled expressions, once for each text. Many goroutines may use them.
type Programs struct {
	byText *lru.Cache[programKey, compiled]
	shares *lru.Cache[string, *share]
	now    func() time.Time
}

type programKey struct {
	expression string
	isMessage  bool
}

func keyOf(expression string, result *types.Type) programKey {
	return programKey{expression, result == types.StringType}
}

type compiled struct {
	program cel.Program
	// repeats says that it has a comprehension, between whose steps the time is checked.
	repeats bool
	problem error
}

// NewPrograms is empty. The clock measures evaluations.
func NewPrograms(now func() time.Time) *Programs {
	return &Programs{lru.New[programKey, compiled](mostPrograms, now), lru.New[string, *share](mostShares, now), now}
}

// shareOf returns the share of a name, which is full if nothing was charged to it lately.
func (p *Programs) shareOf(sharer string) *share {
	return p.shares.Renew(sharer, lru.Forever, func() *share { return newShare(p.now()) })
}

func (p *Programs) of(expression string, result *types.Type) compiled {
	key := keyOf(expression, result)
	if known, found := p.byText.Get(key); found {
		return known
	}
	made := compile(expression, result) // outside of the cache's lock
	p.byText.Put(key, made, programLife)
	return made
}

func compile(expression string, result *types.Type) compiled {
	parsed, err := parse(expression, result)
	if err != nil {
		return compiled{problem: err}
	}
	env, err := environment()
	if err != nil {
		return compiled{problem: err}
	}
	program, err := env.Program(
		parsed, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(evaluationCost), cel.InterruptCheckFrequency(interruptEvery))
	repeats := false
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(one ast.Expr) {
		repeats = repeats || one.Kind() == ast.ComprehensionKind
	}))
	return compiled{program, repeats, err}
}
