package health

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/cost"
	"github.com/trellis-addons/trellis/test/long"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	if err := json.Unmarshal(content, &found); err != nil { // with whole numbers, as clients read objects
		t.Fatal(err)
	}
	return found
}

const database = `
metadata: {name: db, generation: 3, annotations: {copy: "spec-secret"}}
spec: {password: spec-secret}
status: {observedGeneration: 3, phase: Ready, backup: "done <b>\n", conditions: [{type: Ready, status: "True"}], empty: [], nothing: null}
`

// TestRules turns red when a rule says something else of an object than its words do: what is missing and
// what nobody observed is progress, what can't be evaluated is neither that nor failed.
func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		rule   v1.HealthRule
		status string // appended to the object's status
		state  status.Status
		says   string
	}{
		"healthy":         {v1.HealthRule{Healthy: `self.status.phase == "Ready"`}, "", status.CurrentStatus, ""},
		"not healthy":     {v1.HealthRule{Healthy: `self.status.phase == "Done"`}, "", status.InProgressStatus, `expression "healthy" is false: self.status.phase == "Done"`},
		"failed":          {v1.HealthRule{Healthy: `true`, Failed: `self.status.phase == "Ready"`}, "", status.FailedStatus, `"failed" is true`},
		"a list":          {v1.HealthRule{Healthy: `self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`}, "", status.CurrentStatus, ""},
		"not failed":      {v1.HealthRule{Healthy: `true`, Failed: `self.status.phase == "Broken"`}, "", status.CurrentStatus, ""},
		"missing":         {v1.HealthRule{Healthy: `self.status.other.state == "Ready"`}, "", status.InProgressStatus, `it has no field "other" yet`},
		"missing in list": {v1.HealthRule{Healthy: `self.status.empty[0] == 1`}, "", status.InProgressStatus, `it has no item "0" yet`},
		"missing, failed": {v1.HealthRule{Healthy: `true`, Failed: `self.status.other == 1`}, "", status.CurrentStatus, ""},
		"null":            {v1.HealthRule{Healthy: `self.status.nothing == "Ready"`}, "", status.InProgressStatus, `"healthy" is false`},
		"optional":        {v1.HealthRule{Healthy: `self.?status.?other.orValue("Ready") == "Ready"`}, "", status.CurrentStatus, ""},
		"goes": {
			v1.HealthRule{Healthy: `true`, Failed: `true`}, "", status.InProgressStatus, "it is being deleted",
		},
		"a value of the spec": {
			v1.HealthRule{Healthy: `timestamp(self.spec.password) < timestamp("2026-01-01T00:00:00Z")`}, "", RuleFailed, "values that it can't use",
		},
		"a field that the spec names": {v1.HealthRule{Healthy: `self.status[self.spec.password] == 1`}, "", status.InProgressStatus, "it has no field that the expression reads yet"},
		"not a bool":                  {v1.HealthRule{Healthy: `self.status.phase`}, "", RuleFailed, "its result is not a bool"},
		"wrong types":                 {v1.HealthRule{Healthy: `self.status.phase > 1`}, "", RuleFailed, "no such overload"},
		"behind":                      {v1.HealthRule{Healthy: `true`, Failed: `true`}, "observedGeneration: 2", status.InProgressStatus, "its controller has seen generation 2 of 3"},
		"message":                     {v1.HealthRule{Healthy: `false`, Message: `"backup " + self.status.backup`}, "", status.InProgressStatus, "backup done <b>"},
		"message of spec":             {v1.HealthRule{Healthy: `false`, Message: `self.spec.password`}, "", status.InProgressStatus, `expression "healthy" is false`},
		"message of annotations": {
			v1.HealthRule{Healthy: `false`, Message: `self.metadata.annotations.copy`}, "", status.InProgressStatus, `expression "healthy" is false`,
		},
		"a message of no text": {v1.HealthRule{Healthy: `false`, Message: `self.status.empty`}, "", status.InProgressStatus, `expression "healthy" is false`},
	} {
		t.Run(name, func(t *testing.T) {
			about := object(t, database)
			if test.status != "" {
				maps.Copy(about["status"].(map[string]any), object(t, test.status))
			}
			if name == "goes" {
				about["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			}
			state, words := NewPrograms(time.Now).Look("one", []v1.HealthRule{test.rule}).Evaluate(t.Context(), 0, about)
			if state != test.state || !strings.Contains(words, test.says) || test.says == "" && words != "" {
				t.Errorf("it is %s (%s), want %s (%s)", state, words, test.state, test.says)
			}
			if strings.Contains(words, "spec-secret") || strings.ContainsAny(words, "\n") {
				t.Errorf("it says %q", words)
			}
		})
	}
}

// TestWhatIsNoRule turns red when a version is accepted whose rules can't be evaluated, or is refused
// without a word about the place.
func TestWhatIsNoRule(t *testing.T) {
	rule := func(change func(*v1.HealthRule)) v1.HealthCheck {
		made := v1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: "true"}
		change(&made)
		return v1.HealthCheck{Rules: []v1.HealthRule{made}}
	}
	healthy := func(expression string) v1.HealthCheck {
		return rule(func(of *v1.HealthRule) { of.Healthy = expression })
	}
	for name, test := range map[string]struct {
		check       v1.HealthCheck
		field, says string // no words: it is right
	}{
		"nothing":                   {v1.HealthCheck{}, "", ""},
		"a rule":                    {healthy("self.status.ready"), "", ""},
		"another root":              {healthy("object.status.ready"), "rules[0].healthy", "undeclared reference to 'object'"},
		"not a bool":                {healthy("1 + 1"), "rules[0].healthy", "its result is int, it has to be bool"},
		"unfinished":                {healthy("self.status."), "rules[0].healthy", "it is not a CEL expression"},
		"empty":                     {healthy(""), "rules[0].healthy", "it has 0 bytes"},
		"too long":                  {healthy(strings.Repeat("true || ", 128) + "true"), "rules[0].healthy", "1 to 1024 are allowed"},
		"too deep":                  {healthy(strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200)), "rules[0].healthy", "recursion"},
		"a pattern of the object's": {healthy("'a'.matches(self.status.pattern)"), "rules[0].healthy", "has to be a literal"},
		"a wrong pattern":           {healthy("self.status.name.matches('(')"), "rules[0].healthy", "its pattern can't be read"},
		"a large pattern":           {healthy("self.status.name.matches('" + strings.Repeat("a{0,99}", 4) + "b')"), "rules[0].healthy", "it is not a CEL expression"},
		"a pattern":                 {healthy("self.status.name.matches('^a+$')"), "", ""},
		"failed":                    {rule(func(of *v1.HealthRule) { of.Failed = "'text'" }), "rules[0].failed", "its result is string"},
		"message":                   {rule(func(of *v1.HealthRule) { of.Message = "true" }), "rules[0].message", "it has to be string"},
		"Secret, spelled otherwise": {rule(func(of *v1.HealthRule) { of.APIVersion, of.Kind = "/v1", "Secret" }), "rules[0].kind", "rules can't read Secrets"},
		"Secret":                    {rule(func(of *v1.HealthRule) { of.Kind = "Secret" }), "rules[0].kind", "rules can't read Secrets"},
		"a namespace":               {rule(func(of *v1.HealthRule) { of.Namespace = "a" }), "rules[0].name", "namespace needs a name"},
		"two versions of a kind": {v1.HealthCheck{Rules: []v1.HealthRule{
			{APIVersion: "apps/v1", Kind: "Deployment", Healthy: "true"}, {APIVersion: "apps/v1beta1", Kind: "Deployment", Healthy: "true"},
		}}, "rules[1].apiVersion", "in all rules about a kind"},
		"another mode":      {v1.HealthCheck{Mode: "Pods"}, "mode", "is not a mode"},
		"stale at once":     {v1.HealthCheck{Mode: v1.HealthByLease, Lease: &v1.HealthLease{StaleAfter: &metav1.Duration{}}}, "lease.staleAfter", "30s to 1h"},
		"no rules":          {v1.HealthCheck{Mode: v1.HealthByRules}, "mode", "needs rules"},
		"rules and a lease": {v1.HealthCheck{Mode: v1.HealthByLease, Rules: []v1.HealthRule{{Healthy: "true"}}}, "rules", "mode Workloads or Rules"},
		"a lease of none":   {v1.HealthCheck{Lease: &v1.HealthLease{}}, "lease", "needs mode Lease"},
		"too many":          {v1.HealthCheck{Rules: make([]v1.HealthRule, 17)}, "rules", "there are 17 rules"},
	} {
		t.Run(name, func(t *testing.T) {
			field, err := CheckVersion(&v1.AddonVersion{Template: &v1.Template{Health: &test.check}})
			switch {
			case test.says == "" && err != nil:
				t.Errorf("%s is refused: %v", field, err)
			case test.says == "":
			case err == nil || !strings.Contains(err.Error(), test.says) || field != "template.health."+test.field:
				t.Errorf("%s: %v, want %s: %s", field, err, test.field, test.says)
			}
		})
	}
}

// TestBombs (AG20) turns red when a rule over a large status takes longer than it may, or a look does.
func TestBombs(t *testing.T) {
	long.Heavy(t)
	const largest = "a{0,40}b"
	items := make([]any, 0, 20_000)
	for i := range cap(items) {
		items = append(items, map[string]any{"name": fmt.Sprintf("item-%d-%s", i, strings.Repeat("x", 30)), "ready": true})
	}
	about := map[string]any{"metadata": map[string]any{}, "status": map[string]any{"items": items, "text": strings.Repeat("a", 1<<20)}}
	began := cost.Spent()
	regexp.MustCompile(largest).MatchString(strings.Repeat("a", 1<<20))
	step := cost.Spent() - began // the dearest that nothing interrupts; the race detector makes it twenty times as dear
	t.Logf("a pattern over 1 MiB takes %s", step)
	for name, expression := range map[string]string{
		"nested":   `self.status.items.all(a, self.status.items.all(b, self.status.items.all(c, a.name != b.name + c.name)))`,
		"equal":    `self.status.items.all(a, self.status == self.status)`,
		"text":     `self.status.items.all(a, self.status.text + self.status.text != self.status.text)`,
		"contains": `self.status.items.all(a, !self.status.text.contains(a.name))`,
		"pattern":  `self.status.items.all(a, !self.status.text.matches("(a|aa)+(a|aa)+(a|aa)+b"))`,
		"largest":  `!self.status.text.matches("` + largest + `")`,
		"compared": strings.Repeat(`self.status == self.status && `, 31) + `self.metadata != self.metadata`,
		"one":      `!self.status.text.matches("(a|aa)+(a|aa)+(a|aa)+b")`,
	} {
		t.Run(name, func(t *testing.T) {
			look := NewPrograms(time.Now).Look("one", []v1.HealthRule{{Healthy: expression}})
			const many = 50
			took, dearest := time.Duration(0), time.Duration(0)
			for range many {
				began := cost.Spent()
				if state, words := look.Evaluate(t.Context(), 0, about); state == status.CurrentStatus && name != "one" && name != "largest" {
					t.Fatalf("it is %s (%s)", state, words)
				}
				one := cost.Spent() - began
				took, dearest = took+one, max(dearest, one)
			}
			t.Logf("%d looks at 1.9 MiB take %s, the dearest %s", many, took, dearest)
			if dearest > 5*evaluationTime+2*step || took > 3*lookTime+2*step { // a step comes to its end
				t.Errorf("%d evaluations take %s, one %s: the limits are %s and %s", many, took, dearest, lookTime, evaluationTime)
			}
		})
	}
}

// TestALookCostsNoMoreThanItMay turns red when evaluations that are cheap cost more together than a look
// may, or when the next look is refused too.
func TestALookCostsNoMoreThanItMay(t *testing.T) {
	long.Heavy(t)
	began := time.Now()
	programs := NewPrograms(func() time.Time { return began }) // what counts here is CEL's
	rules := []v1.HealthRule{{Healthy: `self.status.items.all(i, i > 0)`}}
	items := make([]any, 2000) // each evaluation ends long before its time
	for i := range items {
		items[i] = int64(1)
	}
	about, evaluated := map[string]any{"status": map[string]any{"items": items}}, 0
	look := programs.Look("one", rules)
	stalled := "takes longer than" // a busy machine lets an evaluation wait for more than its time, which is another limit
	for ; evaluated < 1000; evaluated++ {
		if state, words := look.Evaluate(t.Context(), 0, about); state == RuleFailed && !strings.Contains(words, stalled) {
			if !strings.Contains(words, "cost more than one check may") {
				t.Errorf("it says %q", words)
			}
			break
		}
	}
	if evaluated < 10 || evaluated == 1000 {
		t.Errorf("%d evaluations of at most %d are within %d", evaluated, evaluationCost, lookCost)
	}
	if state, words := programs.Look("one", rules).Evaluate(t.Context(), 0, about); state != status.CurrentStatus && !strings.Contains(words, stalled) {
		t.Errorf("the next look says %s (%s)", state, words)
	}
	if programs.byText.Len() != 1 {
		t.Errorf("one expression is compiled %d times", programs.byText.Len())
	}
}

// FuzzRules turns red when an expression, or an object, ends the process or takes longer than it may.
func FuzzRules(f *testing.F) {
	f.Add(`self.status.phase == "Ready"`, database)
	f.Add(`self.status.items.all(a, self.status.items.exists(b, a == b))`, "status: {items: [1, 2, [3]]}")
	f.Add(`self.?status.?a[?"b"].hasValue()`, "status: {a: {b: null}}")
	f.Fuzz(func(t *testing.T, expression, text string) {
		about := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &about); err != nil {
			return // no object
		}
		rule := v1.HealthRule{APIVersion: "v1", Kind: "A", Healthy: expression, Failed: expression, Message: expression}
		began := time.Now()
		_, _ = CheckVersion(&v1.AddonVersion{Template: &v1.Template{Health: &v1.HealthCheck{Rules: []v1.HealthRule{rule}}}})
		_, _ = NewPrograms(time.Now).Look("one", []v1.HealthRule{rule}).Evaluate(t.Context(), 0, about)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it takes %s", took)
		}
	})
}
