package health

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func versionWith(rules ...v1.HealthRule) *v1.AddonVersion {
	return &v1.AddonVersion{Template: &v1.Template{Health: &v1.HealthCheck{Rules: rules}}}
}

func nestedAll(n int) string {
	expression := "[[1]].all(a0,"
	for k := 1; k <= n; k++ {
		expression += fmt.Sprintf("[[a%d,a%d]].all(a%d,", k-1, k-1, k)
	}
	return expression + fmt.Sprintf("a%d==a%d", n, n) + strings.Repeat(")", n+1)
}

// AG20: Red when a rule is taken, or evaluated from a record, that makes values without bound of a small object: one step of
// it took hours, or asked for a tebibyte.
func TestNoValueOfARuleGrows(t *testing.T) {
	for name, expression := range map[string]string{
		"sums, walked":           "[[1]]" + strings.Repeat(".map(a,a+a)", 60) + ".all(a,!(2 in a))",
		"sums, unpacked":         "dyn([[1]]" + strings.Repeat(".map(a,a+a)", 36) + "[0])",
		"lists, compared":        "[[1]]" + strings.Repeat(".map(a,[a,a])", 40) + ".all(a,a==a)",
		"maps, compared":         "[[1]]" + strings.Repeat(".map(a,{1:a,2:a})", 40) + ".all(a,a==a)",
		"lists, looked into":     "[[1]]" + strings.Repeat(".map(a,[a,a])", 40) + ".all(a,a in [a])",
		"all in each other":      nestedAll(40),
		"optional fields":        "self.?a" + strings.Repeat(".optMap(a,a+a)", 60) + ".hasValue()",
		"copies by the macro":    "self.?a" + strings.Repeat(".optMap(a,a)", 20) + ".hasValue()",
		"sums of the object's":   "self.a" + strings.Repeat(".map(a,a+a)", 8) + ".size() > 0",
		"the object per element": "self.a.map(a, self) == self.a.map(a, self)",
		"one of another loop's":  "self.a.map(a, self.a.map(b, a)) == []",
		"by a second name":       "self.a.map(x, x.?y.optMap(v, self.a.map(x, v)).orValue(1)) == []",
		"the name with a dot":    "self.a.map(a, .self) == self.a.map(a, .self)",
		"the result of a loop":   "self.a.map(a, __result__) == []",
		"lists of lists":         "self.a.map(a, self.a.map(b, 1)) == []",
		"a sum of lists":         "(self.a.filter(a, true) + [1]).all(a, true)",
		"sums of empty lists":    "([] + self.a + self.a).map(a, a).size() > 0",
		"a chosen sum":           "(true ? self.a + self.a : self.a).map(a, a + a).size() > 0",
		"bytes":                  `self.a.map(a, bytes(self.text)).size() > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			rule := v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: expression}
			if _, err := CheckVersion(versionWith(rule)); err == nil {
				t.Fatalf("it is taken: %s", expression) // to evaluate it might never end
			}
			state, words := NewPrograms(time.Now).Look("one", []v1.HealthRule{rule}).Evaluate(t.Context(), 0, map[string]any{"a": []any{int64(1)}})
			if state != RuleFailed || !strings.Contains(words, `"healthy" of rule 0 can't be evaluated`) {
				t.Errorf("from a record it is %s (%s)", state, words)
			}
		})
	}
}

// AG20: Red when a limit of the language is gone, or a refusal says neither where nor what to do.
func TestWhatTheLanguageOfRulesRefuses(t *testing.T) {
	for name, test := range map[string]struct{ expression, says string }{
		"too many loops":        {strings.Repeat("self.a.all(a, a) && ", 8) + "self.a.all(a, a)", "at character 171: at most 8 of all"},
		"loops in each other":   {"self.a.all(a, a.b.all(b, b.c.all(c, c.d.all(d, d.e.all(e, e)))))", "nested at most 4 deep: split the rule"},
		"a long chain":          {"self.a" + strings.Repeat(".filter(a, a)", 9) + " == []", "at most 8 of all"},
		"copies count":          {"self.?a" + strings.Repeat(".optMap(a, a)", 4) + ".hasValue()", "at most 8 of all"},
		"a sum gone through":    {"(self.a + self.b).all(a, a)", "at character 22: only a field of the object, or a list of literals"},
		"a sum under a name":    {"optional.of(self.a + self.b).optMap(a, a).hasValue()", "only a field of the object"},
		"no name":               {"self.a.all(1, true)", "its first argument has to be a name"},
		"a list of fields":      {"[self.a].all(a, a)", "at character 1: a list or map has at most 64 items, and literals only"},
		"a map of fields":       {"{'a': self.a} == self.b", "at most 64 items, and literals only"},
		"a long list":           {"self.a in [" + strings.Repeat("1,", 64) + "1]", "at most 64 items"},
		"lists put together":    {"[1] + self.a == self.b", "+ is for numbers and strings, and not for lists"},
		"another in map":        {"self.a.map(a, self.b) == self.c", "the last argument of map has to be a field of its element"},
		"a list after map":      {"['a'].map(a, 'b') + self.a == self.b", "+ is for numbers and strings"},
		"a list in map":         {"self.a.map(a, [1]) == self.c", "the last argument of map has to be a field of its element"},
		"an object":             {"google.protobuf.Int64Value{value: 1} == self.a", "a rule can't create objects"},
		"comparisons":           {strings.Repeat("self.a==self.b&&", 32) + "self.a!=self.b", "at character 519: more than 32 comparisons of fields with fields"},
		"looks into lists":      {strings.Repeat("1 in self.b && ", 32) + "1 in self.b", "more than 32 comparisons"},
		"a dot":                 {".self.a == 1", "write the name without a dot"},
		"a function":            {"self.a.split(',') == []", `at character 13: "split" is not a function of rules`},
		"bytes":                 {"bytes(self.a) == b'a'", `"bytes" is not a function`},
		"before types":          {"1 + 'a' == [self]", "a list or map has at most"},
		"a pattern of a field":  {"'a'.matches(self.a)", "has to be a literal"},
		"a pattern, many times": {"self.a.matches('" + strings.Repeat("a{999}", 100) + "')", "its pattern has more than 100 steps"},
		"a loop over something": {"all(a, a)", `"all" is not a function`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(test.expression, types.BoolType); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want %q", test.expression, err, test.says)
			}
		})
	}
}

const everything = `
metadata: {name: web, namespace: prod, generation: 3, labels: {app: web}, finalizers: [a/b]}
spec:
  replicas: 3
  instances: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example.com/web:1"}]}}
status:
  observedGeneration: 3
  phase: Running
  id: web-prod
  replicas: 3
  readyReplicas: 3
  updatedReplicas: 3
  availableReplicas: 3
  readyInstances: 3
  numberReady: 9
  desiredNumberScheduled: 10
  health: {status: Healthy}
  sync: {status: Synced}
  notBefore: "2026-01-01T00:00:00Z"
  renewalTime: "2026-02-01T00:00:00Z"
  nodes: {a: {phase: Running, addresses: ["10.0.0.1"]}, b: {phase: Running, addresses: []}}
  parents: [{conditions: [{type: Accepted, status: "True"}]}, {conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "True"}]}]
  conditions:
  - {type: Ready, status: "True", message: up}
  - {type: Synced, status: "True", reason: ReconcileSuccess}
  - {type: Issuing, status: "False", reason: Failed, message: no issuer}
`

// AG20: Red when what health checks of known add-ons ask (those of cert-manager, Argo CD, Crossplane, the Gateway API, Strimzi, CloudNativePG
// and of workloads) can't be said as a rule.
func TestHonestRulesAreTaken(t *testing.T) {
	about := object(t, everything)
	var rules []v1.HealthRule
	for _, healthy := range []string{
		`self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`,
		`self.status.conditions.exists_one(c, c.type == "Ready")`,
		`self.?status.?conditions.orValue([]).exists(c, c.type == "Issuing" && c.status == "False" && c.reason == "Failed")`,
		`["Ready", "Synced"].all(t, self.status.conditions.exists(c, c.type == t && c.status == "True"))`,
		`self.status.parents.all(p, p.conditions.exists(c, c.type == "Accepted" && c.status == "True"))`,
		`self.status.parents.exists(p, p.conditions.all(c, c.status == "True" && !(c.?reason.orValue("") in ["Pending", "Invalid"])))`,
		`self.status.conditions.filter(c, c.type == "Ready")[0].status == "True"`,
		`size(self.status.conditions.filter(c, c.status == "Unknown")) == 0`,
		`self.status.conditions.filter(c, c.status == "True").map(c, c.type).exists(t, t == "Synced")`,
		`self.status.conditions.map(c, c.status == "True", c.type) == ["Ready", "Synced"]`,
		`"Ready" in self.status.conditions.map(c, c.type)`,
		`self.status.conditions.map(c, c.type + "=" + c.status)[0] == "Ready=True"`,
		`self.status.nodes.all(n, self.status.nodes[n].phase == "Running")`,
		`self.status.parents.map(p, p.conditions.map(c, c.type))[1] == ["Accepted", "Programmed"]`,
		`self.status.nodes.map(n, self.metadata.name + "-" + n).size() == 2`,
		`self.status.health.status == "Healthy" && self.status.sync.status == "Synced"`,
		`has(self.status.updatedReplicas) && self.status.updatedReplicas == self.spec.replicas && self.status.availableReplicas >= self.spec.replicas - 1`,
		`(has(self.spec.minimum) ? self.spec.minimum : 1) <= self.status.readyReplicas`,
		`(has(self.status.failures) ? self.status.failures : []).all(f, f.resolved)`,
		`self.status.readyReplicas + self.status.updatedReplicas == self.spec.replicas * 2`,
		`self.status.numberReady * 100 / self.status.desiredNumberScheduled >= 80`,
		`double(self.status.numberReady) / double(self.status.desiredNumberScheduled) > 0.8`,
		`self.?status.?replicas.optMap(r, r > 0).orValue(false)`,
		`self.?spec.?replicas.optFlatMap(r, self.?status.?replicas.optMap(s, r == s)).orValue(false)`,
		`self.?status.?lastError.hasValue() == false`,
		`self.status.?phase.or(self.?spec.?phase).value() == "Running"`,
		`self.status.phase in ["Running", "Succeeded"]`,
		`self.status.phase.matches("^(Ready|Running)$")`,
		`{"Running": true, "Failed": false}[self.status.phase]`,
		`self.metadata.name + "-" + self.metadata.namespace == self.status.id`,
		`self.spec.template.spec.containers.all(c, c.image.startsWith("registry.example.com/") && !c.image.endsWith(":latest") && !c.image.contains(" "))`,
		`self.spec.selector.matchLabels == self.spec.template.metadata.labels`,
		`self.spec.selector.matchLabels.all(k, self.metadata.?labels[?k].orValue("") == self.spec.selector.matchLabels[k])`,
		`!("foregroundDeletion" in self.metadata.finalizers)`,
		`timestamp(self.status.renewalTime) - timestamp(self.status.notBefore) > duration("24h")`,
		`timestamp(self.status.renewalTime).getMonth() == 1`,
		`type(self.status.replicas) == int && string(self.status.replicas) == "3" && int("-3") == -3 && -3 in [-3]`,
		`dyn(self.status.replicas) == 3.0`,
		`self.status.phase == "Running" ? true : self.status.phase == "Ready"`,
		`self.status.nodes.exists(n, self.status.nodes[n].addresses.exists(a, self.status.conditions.exists(c, c.type == "Ready") && a != ""))`,
		`optional.of(1).hasValue() && !optional.none().hasValue() && optional.ofNonZeroValue(self.status.phase).hasValue()`,
	} {
		rules = append(rules, v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: healthy})
	}
	for _, message := range []string{
		`self.status.conditions.filter(c, c.status != "True")[0].message`,
		`"it has " + string(self.status.availableReplicas) + " of " + string(self.status.replicas)`,
		`self.status.conditions.exists(c, c.type == "Ready") ? "ready, in " + self.status.phase : self.status.phase`,
	} {
		rules = append(rules, v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: "true", Message: message})
	}
	check := Check(t.Context())
	for version := range 64 { // each with as many rules as may be, which the one before has, or the one before that
		if field, err := check(versionWith(slices.Concat(rules, rules)[version%len(rules):][:mostRules]...)); err != nil {
			t.Fatalf("%s: %v", field, err)
		}
	}
	for i := range rules {
		if field, err := checkRule(&rules[i]); err != nil {
			t.Errorf("%s%s: %s: %v", rules[i].Healthy, rules[i].Message, field, err)
			continue
		}
		state, words := NewPrograms(time.Now).Look("one", rules).Evaluate(t.Context(), i, about)
		if state != status.CurrentStatus {
			t.Errorf("%s: it is %s (%s)", rules[i].Healthy, state, words)
		}
		if rules[i].Message != "" {
			rules[i].Healthy = "false"
			if _, words := NewPrograms(time.Now).Look("one", rules).Evaluate(t.Context(), i, about); strings.Contains(words, "is false") {
				t.Errorf("%s: it says %q", rules[i].Message, words)
			}
		}
	}
}

// dearRules of a version: each text differs.
func dearRules(version int) []v1.HealthRule {
	var rules []v1.HealthRule
	for number := range mostRules {
		rules = append(rules, v1.HealthRule{
			APIVersion: "v1", Kind: "ConfigMap", Healthy: fmt.Sprintf("%s%d > 0", strings.Repeat("self.a > 1 || ", 70), version*1000+number),
		})
	}
	return rules
}

// AG20: Red when one catalogue has more of its rules read than its share, or when what is over it is not told with its place. How
// many were read is counted, and not how long it took.
func TestRulesOfACatalogueAreReadWithinItsShare(t *testing.T) {
	check, refusedFrom := Check(t.Context()), -1
	for version := range 100 {
		before := verdicts.Len()
		field, err := check(versionWith(dearRules(version)...))
		switch {
		case err != nil && refusedFrom >= 0:
			t.Errorf("version %d is told too: %v", version, err)
		case err != nil:
			refusedFrom = version
			if field != "template.health.rules" || !strings.Contains(err.Error(), "more than 128 KiB") {
				t.Errorf("it says %s: %v", field, err)
			}
		}
		if refusedFrom >= 0 && verdicts.Len() > before {
			t.Errorf("rules of version %d are read beyond the share", version)
		}
	}
	if size := len(dearRules(0)[0].Healthy) * mostRules; refusedFrom != mostText/size {
		t.Errorf("version %d is the first that is refused, want %d", refusedFrom, mostText/size)
	}
	for version := range 3 * mostText / 1024 {
		if _, err := Check(t.Context())(versionWith(dearRules(0)...)); err != nil {
			t.Fatalf("version %d, with rules as the one before has them, is refused: %v", version, err)
		}
	}
}

// AG20: Red when the check goes on after its pass is over.
func TestACheckEndsWithItsReconciliation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	check, version := Check(ctx), versionWith(v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: "self.a == 'ended'"})
	cancel()
	before := verdicts.Len()
	if _, err := check(version); err == nil || verdicts.Len() != before {
		t.Errorf("it says %v, and %d expressions are known, %d before", err, verdicts.Len(), before)
	}
	if _, err := check(&v1.AddonVersion{}); err != nil {
		t.Errorf("a version without rules is refused: %v", err)
	}
}

// weight of a value as a tree, up to a limit.
func weight(of ref.Val, most int) int {
	items := func(from traits.Iterable) (sum int) {
		for at := from.Iterator(); at.HasNext() == types.True && sum < most; {
			key := at.Next()
			sum += weight(key, most)
			if whole, isMap := of.(traits.Mapper); isMap {
				sum += weight(whole.Get(key), most)
			}
		}
		return sum
	}
	switch of := of.(type) {
	case traits.Mapper:
		return 1 + items(of)
	case traits.Lister:
		return 1 + items(of)
	case *types.Optional:
		if of.HasValue() {
			return 1 + weight(of.GetValue(), most)
		}
	}
	return 1
}

// expressions are made by chance, from what a value may be made of.
type expressions struct{ chance *rand.Rand }

func (e expressions) one(depth int, names ...string) string {
	if depth == 0 {
		return names[e.chance.IntN(len(names))] + []string{"", ".a", ".b", ".c", ".?a", ".?b", ".a[0]"}[e.chance.IntN(7)]
	}
	next := func() string { return e.one(depth-1, names...) }
	name := string(rune('u' + e.chance.IntN(5)))
	inner := func() string { return e.one(depth-1, append(slices.Clone(names), name, name)...) }
	return "(" + []func() string{
		func() string { return next() + ".a" },
		func() string { return next() + "[0]" },
		func() string { return next() + ".?b" },
		func() string { return next() + " + " + next() },
		func() string { return next() + " == " + next() },
		func() string { return next() + " in " + next() },
		func() string { return "self.c == 1 ? " + next() + " : " + next() },
		func() string { return next() + ".map(" + name + ", " + inner() + ")" },
		func() string { return next() + ".map(" + name + ", true, " + inner() + ")" },
		func() string { return next() + ".filter(" + name + ", " + inner() + " == " + next() + ")" },
		func() string { return next() + ".all(" + name + ", " + inner() + " != " + next() + ")" },
		func() string { return next() + ".optMap(" + name + ", " + inner() + ")" },
		func() string { return next() + ".optFlatMap(" + name + ", optional.of(" + inner() + "))" },
		func() string { return next() + ".orValue(" + next() + ")" },
		func() string { return next() + ".or(optional.of(" + next() + "))" },
		func() string { return "optional.of(" + next() + ")" },
		func() string { return "dyn(" + next() + ")" },
		func() string { return "dyn([])" },
		func() string { return "[1, 2]" },
		func() string { return "[" + next() + "]" },
		func() string { return next() + ".value()" },
	}[e.chance.IntN(21)]() + ")"
}

// AG20: Red when an expression that is taken gives more than what the language says of it: so many times the object, and what is
// written in it.
func TestValuesAreAsLargeAsTheLanguageSays(t *testing.T) {
	item := func(more ...any) map[string]any {
		return map[string]any{"a": more, "b": []any{"x", "y"}, "c": int64(1)}
	}
	about := item(item(item(), item()), item(item()), item(item(item())))
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	whole, made := weight(env.CELTypeAdapter().NativeToValue(about), 1_000_000), expressions{rand.New(rand.NewPCG(1, 2))}
	plain, err := withoutMacros()
	if err != nil {
		t.Fatal(err)
	}
	taken, largest := 0, 0
	for range 6_000 {
		text := made.one(1+made.chance.IntN(5), self)
		parsed, issues := plain.Parse(text)
		if issues.Err() != nil {
			continue
		}
		if r, says := readLanguage(parsed.NativeRep()); r.problem == nil {
			program := compile(text, types.DynType)
			if program.problem != nil {
				continue
			}
			found, _, err := program.program.Eval(map[string]any{self: about})
			if err != nil {
				continue
			}
			taken++
			size := weight(found, 100*whole)
			largest = max(largest, size)
			if most := says.times*whole + 2*len(text); size > most {
				t.Errorf("%s has %d, the object %d: it is said to be at most %d times as large", text, size, whole, says.times)
			}
		}
	}
	t.Logf("%d expressions are taken; the largest value has %d, the object %d", taken, largest, whole)
	if taken < 300 {
		t.Errorf("only %d expressions are taken", taken)
	}
}

// AG20: Red when a catalogue has expressions read without end that are refused: those cost most, and are no longer.
func TestWhatIsRefusedIsReadSoManyTimes(t *testing.T) {
	check, reported := Check(t.Context()), 0
	before := verdicts.Len()
	for number := range 10 * mostRefused {
		if _, err := check(versionWith(v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: fmt.Sprintf("([{(%d", number)})); err != nil {
			reported++
		}
	}
	if read := verdicts.Len() - before; reported != mostRefused || read != mostRefused {
		t.Errorf("%d are told and %d read, want %d", reported, read, mostRefused)
	}
}

// AG20: Red when rules are compiled on a seed beyond the share of the time that their cluster has.
func TestCompilingIsPaidForByTheShare(t *testing.T) {
	now := time.Unix(0, 0)
	programs := NewPrograms(func() time.Time { return now })
	programs.shareOf("spent").pay(2 * shareAtOnce)
	look := programs.Look("spent", []v1.HealthRule{{Healthy: "self.a"}})
	if state, words := look.Evaluate(t.Context(), 0, map[string]any{"a": true}); state != RuleFailed || programs.byText.Len() != 0 {
		t.Errorf("it is %s (%s), and %d expressions are compiled", state, words, programs.byText.Len())
	}
}
