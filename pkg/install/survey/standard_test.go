package survey_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/cost"
	"github.com/trellis-addons/trellis/test/lab"
	"github.com/trellis-addons/trellis/test/long"
)

// judge evaluates objects by the results for the rule in their data, or spec.
type evaluator struct{}

// Evaluate implements survey.Evaluator.
func (evaluator) Evaluate(_ context.Context, rule int, object map[string]any) (status.Status, string) {
	said, _, _ := unstructured.NestedString(object, "data", "is")
	if said == "" {
		return status.InProgressStatus, "it says nothing"
	}
	return status.Status(said), "by rule " + string(rune('0'+rule))
}

var (
	aboutMaps        = survey.Rule{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}
	aboutDeployments = survey.Rule{Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}}
)

func standard(rules ...survey.Rule) survey.Standard {
	return survey.Standard{Rules: rules, Evaluator: evaluator{}}
}

// TestRulesTakeThePlaceOfKstatus fails if rules are not evaluated for the objects of their kind, or kstatus still is;
// if the other objects no longer count; or if, with rules alone, they do.
func TestRulesTakeThePlaceOfKstatus(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stuck := strings.Replace(lab.Deployment, "spec: {", "spec: "+nowhere, 1)
	inventory := l.Install(l.Prepare(stuck+"\n---\n"+lab.TwoMaps), nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {is: Current}}`)
	assess := func(by survey.Standard) survey.Health {
		return lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t)
	}
	for name, test := range map[string]struct {
		by   survey.Standard
		want string
	}{
		"a rule about ConfigMaps":  {standard(aboutMaps), "1/3 healthy, 0 failing, in progress true, ConfigMap:InProgress Deployment:InProgress"},
		"a rule about Deployments": {standard(aboutDeployments), "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"},
		"by rules alone": {
			survey.Standard{Rules: []survey.Rule{aboutMaps}, Evaluator: evaluator{}, OnlyRules: true}, "2/3 healthy, 0 failing, in progress true, ConfigMap:InProgress",
		},
		"by nothing": {survey.Standard{OnlyRules: true}, "3/3 healthy, 0 failing, in progress false, "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := states(assess(test.by)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	l.Edit(lab.ConfigMaps, "other", `{data: {is: Failed}}`)
	if got, want := states(assess(standard(aboutMaps, aboutMaps))), "1/3 healthy, 1 failing, in progress true, ConfigMap:Failed Deployment:InProgress"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	l.Edit(lab.ConfigMaps, "other", `{data: {is: RuleFailed}}`)
	if health := assess(standard(aboutMaps)); health.Unjudged != 1 || health.Failing != 0 || health.Healthy != 1 {
		t.Errorf("what can't be judged counts otherwise: %s, %d", states(health), health.Unjudged)
	}
}

// The page on health has a rule for an APIService that nothing serves. It fails if the APIService is still awaited, and
// if a false rule is ignored for an available one.
func TestARuleOfAnAPIService(t *testing.T) {
	programs := health.NewPrograms(time.Now)
	for _, test := range []struct{ why, service, healthy, want string }{
		{"nothing serves it", ", insecureSkipTLSVerify: true, service: {name: nobody, namespace: NAME}", "true", "1/1 healthy, 0 failing, in progress false, "},
		{"the API server serves it", "", "false", "0/1 healthy, 0 failing, in progress true, APIService:InProgress"},
	} {
		t.Run(test.why, func(t *testing.T) {
			l := lab.New(t)
			inventory := l.Install(l.Prepare("{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, "+
				"spec: {group: NAME.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 10"+test.service+"}}"), nil)
			defer l.Delete(apiServices, "", "v1."+l.Unique+".example.com") // otherwise no namespace of the server can be finalized
			by := survey.Standard{
				Rules:     []survey.Rule{{Kind: schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}}},
				Evaluator: programs.Look("one", []v1.HealthRule{{Healthy: test.healthy}}),
			}
			if got := states(lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestRulesNameObjects fails if a rule that names an object reads another one, counts an object of the add-on twice, or
// counts a missing one as healthy.
func TestRulesNameObjects(t *testing.T) {
	l := lab.New(t)
	inventory := l.Install(l.Prepare(lab.TwoMaps, lab.CreateNamespace), nil)
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}, data: {is: Current}}`)
	named := func(name string) survey.Rule {
		return survey.Rule{Kind: aboutMaps.Kind, Place: calls.Place{Namespace: l.Unique, Name: name}}
	}
	nameless, unserved := named("foreign"), named("foreign")
	nameless.Namespace, unserved.Kind.Kind = "", "Nothing"
	for name, test := range map[string]struct {
		rules []survey.Rule
		want  string
	}{
		"of somebody":            {[]survey.Rule{named("foreign")}, "4/4 healthy, 0 failing, in progress false, "},
		"of somebody, twice":     {[]survey.Rule{named("foreign"), named("foreign")}, "4/4 healthy, 0 failing, in progress false, "},
		"of its own":             {[]survey.Rule{named("settings")}, "2/3 healthy, 0 failing, in progress true, ConfigMap:InProgress"},
		"that is not there":      {[]survey.Rule{named("none")}, "3/4 healthy, 0 failing, in progress true, ConfigMap:NotFound"},
		"without its namespace":  {[]survey.Rule{nameless}, "3/4 healthy, 0 failing, in progress true, ConfigMap:Unknown"},
		"of a kind not served":   {[]survey.Rule{unserved}, "3/4 healthy, 0 failing, in progress true, Nothing:Unknown"},
		"a kind without objects": {[]survey.Rule{aboutDeployments}, "3/4 healthy, 0 failing, in progress true, Deployment:NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := states(lab.Must(standard(test.rules...).Assess(t.Context(), l.Target, l.Owner, inventory))(t)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestRulesMeet fails if a rule about one object disables that about its kind, if the end of a Job that a rule names is
// not seen, or if used objects of another installation are ignored.
func TestRulesMeet(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Job+"\n---\n"+lab.Settings), nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {is: Failed}}`)
	assess := func(by survey.Standard) survey.Health {
		return lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t)
	}
	named := survey.Rule{Kind: aboutMaps.Kind, Place: calls.Place{Namespace: l.Unique, Name: "settings"}}
	both := survey.Standard{OnlyRules: true, Rules: []survey.Rule{aboutMaps, named}, Evaluator: evaluator{}}
	if got, want := states(assess(both)), "1/2 healthy, 1 failing, in progress false, ConfigMap:Failed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	job := survey.Rule{Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Place: calls.Place{Namespace: l.Unique, Name: "once"}}
	ofJob := survey.Standard{OnlyRules: true, Rules: []survey.Rule{job}, Evaluator: evaluator{}}
	l.Eventually("the Job's end is seen", func() bool { return len(assess(ofJob).Finished) == 1 })
	finished := inventory.Finish(assess(ofJob).Finished)
	l.Delete(jobs, l.Unique, "once")
	l.Eventually("the Job is gone", func() bool { return l.Get(jobs, l.Unique, "once") == nil })
	if got := lab.Must(ofJob.Assess(t.Context(), l.Target, l.Owner, finished))(t); got.Healthy != got.Total {
		t.Errorf("a Job that ended is missed: %s", states(got))
	}
	used := survey.Standard{OnlyRules: true, Rules: []survey.Rule{aboutDeployments}, Evaluator: evaluator{}}
	used.Extra = ownership.Inventory{{Key: ownership.Key{Group: "apps", Kind: "Deployment", Name: "web", Namespace: l.Unique}}}
	if got := assess(used); got.Healthy != got.Total {
		t.Errorf("what is used of another installation is missed: %s", states(got))
	}
}

// TestRulesInLaterLooks fails if a second assessment evaluates a rule for objects that it did not read, or reads
// healthy ones; and if a kind with rules uses the list of healthy workloads.
func TestRulesInLaterLooks(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Deployment+"\n---\n"+lab.TwoMaps), nil)
	l.Edit(lab.ConfigMaps, "settings", `{data: {is: Current}}`)
	by := standard(aboutMaps)
	var health survey.Health
	l.Eventually("the Deployment is healthy", func() bool {
		health = lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t)
		return states(health) == "2/3 healthy, 0 failing, in progress true, ConfigMap:InProgress"
	})
	reads := l.Calls.During("GET", func() { health = lab.Must(by.Reassess(t.Context(), l.Target, l.Owner, inventory, health))(t) })
	if got, want := states(health), "2/3 healthy, 0 failing, in progress true, ConfigMap:InProgress"; got != want || len(reads) != 1 {
		t.Errorf("got %s by %q, want %s by one read", got, reads, want)
	}
	l.Edit(lab.ConfigMaps, "other", `{data: {is: Current}}`)
	health = lab.Must(by.Reassess(t.Context(), l.Target, l.Owner, inventory, health))(t)
	if got, want := states(health), "3/3 healthy, 0 failing, in progress false, "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	shared := survey.Standard{Rules: []survey.Rule{aboutDeployments}, Evaluator: evaluator{}, Shared: survey.New(time.Minute, time.Now)}
	reads = l.Calls.During("GET", func() { health = lab.Must(shared.Assess(t.Context(), l.Target, l.Owner, inventory))(t) })
	if slices.ContainsFunc(reads, func(call string) bool { return strings.Contains(call, "/apis/apps/v1/deployments") }) {
		t.Errorf("the list of well workloads is read for a kind with rules: %q", reads)
	}
	if got, want := states(health), "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestARuleAboutOneOfTwoWorkloads fails if a workload that a rule names counts as healthy because it is in the list of
// healthy workloads, as another one is.
func TestARuleAboutOneOfTwoWorkloads(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	other := strings.Replace(lab.Deployment, "name: web}", "name: other}", 1)
	inventory := l.Install(l.Prepare(lab.Deployment+"\n---\n"+other), nil)
	l.Eventually("both are healthy", func() bool { return l.Assess(inventory).Healthy == 2 })
	for _, name := range []string{"web", "other"} {
		by := standard(survey.Rule{Kind: aboutDeployments.Kind, Place: calls.Place{Namespace: l.Unique, Name: name}})
		by.Shared = survey.New(time.Minute, time.Now)
		health := lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t)
		if health.Healthy != 1 || len(health.Unhealthy) != 1 || health.Unhealthy[0].Key.Name != name {
			t.Errorf("a rule about %s: %s, %+v", name, states(health), health.Unhealthy)
		}
	}
}

// TestJobsEndWhateverCounts fails if Jobs are not observed until they end, with rules alone: their deletion would be
// drift.
func TestJobsEndWhateverCounts(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Job), nil)
	l.Eventually("the Job's end is seen", func() bool {
		health := lab.Must(survey.Standard{OnlyRules: true}.Assess(t.Context(), l.Target, l.Owner, inventory))(t)
		if health.Healthy != 1 {
			t.Fatalf("it counts: %s", states(health))
		}
		return len(health.Finished) == 1
	})
}

// TestRulesCostLittle fails if an assessment of a thousand objects with sixteen rules takes more than three times the
// processor time of the same assessment by kstatus.
func TestRulesCostLittle(t *testing.T) {
	long.Heavy(t)
	l := lab.New(t)
	manifests := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME}", lab.Definition("Gadget", "Namespaced", "")}
	for i := range 1000 {
		manifests = append(manifests, lab.Custom("Gadget", "v1", fmt.Sprintf("gadget-%d", i)))
	}
	inventory := l.Install(l.Prepare(strings.Join(manifests, "\n---\n")), nil)
	var rules []v1.HealthRule
	by := survey.Standard{}
	for i := range 16 {
		rules = append(rules, v1.HealthRule{
			Healthy: fmt.Sprintf(`self.spec.size > %d && self.?status.?phase.orValue("Ready") == "Ready"`, i-15), Failed: `self.spec.size < 0`,
		})
		by.Rules = append(by.Rules, survey.Rule{Kind: schema.GroupVersionKind{Group: l.Unique + ".example.com", Version: "v1", Kind: "Gadget"}})
	}
	look := func(by survey.Standard) {
		if found := lab.Must(by.Assess(t.Context(), l.Target, l.Owner, inventory))(t); found.Healthy != found.Total {
			t.Fatalf("it finds %s: %+v", states(found), found.Unhealthy[0])
		}
	}
	began := time.Now()
	programs := health.NewPrograms(func() time.Time { return began }) // on a busy machine the rules may exceed their share of the time
	cost.Share(t, 3, func() { look(survey.Standard{}) }, func() {
		by.Evaluator = programs.Look("one", rules)
		look(by)
	})
}
