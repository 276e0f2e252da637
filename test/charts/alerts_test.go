package charts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
	"github.com/trellis-addons/trellis/test/binaries"
)

var (
	metricOfRule = regexp.MustCompile(`trellis_[a-z_]+`)
	headingOf    = regexp.MustCompile(`(?m)^## (\S+)$`)
	// histogramSeries are the ends of the names of a histogram's series.
	histogramSeries = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestAlertsAreAboutMetricsThatExist: red when an alert is about a metric that no program has, or can't be read, when no part of the page
// is about it, and when a part is about none.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	metrics, pages := specPage(t, "metrics.md"), headingOf.FindAllStringSubmatch(specPage(t, "alerts.md"), -1)
	explained := map[string]bool{}
	for _, page := range pages {
		explained[page[1]] = false
	}
	for _, r := range append(withEverySetting(), webRenderings[2]) {
		_, objects := render(t, r)
		for _, rule := range alertsOf(t, objects) {
			name, expression := rule["alert"].(string), rule["expr"].(string)
			if _, isExplained := explained[name]; !isExplained {
				t.Errorf("docs/spec/alerts.md does not explain %s", name)
			}
			explained[name] = true
			for _, metric := range metricOfRule.FindAllString(expression, -1) {
				if !strings.Contains(metrics, "`"+histogramSeries.ReplaceAllString(metric, "")+"`") {
					t.Errorf("%s is about %s, which docs/spec/metrics.md does not have", name, metric)
				}
			}
			for _, pair := range []string{"()", "{}", "[]"} {
				if strings.Count(expression, pair[:1]) != strings.Count(expression, pair[1:]) {
					t.Errorf("%s: %s", name, expression)
				}
			}
			if summary, _ := rule["annotations"].(map[string]any)["summary"].(string); summary == "" {
				t.Errorf("%s has no summary", name)
			}
		}
	}
	for name, isThere := range explained {
		if !isThere {
			t.Errorf("docs/spec/alerts.md explains %s, which no chart has", name)
		}
	}
}

// TestAlertsFireWhenTheyShould: red when an alert is silent over figures that it is about, or fires over those of a platform at work.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	leads := func(chart string, is int) string {
		return fmt.Sprintf("leader_election_master_status{name=%q} %d\n", chart+".kubermatic.k8c.io", is)
	}
	sets := func(reason string, number int) string {
		return fmt.Sprintf("trellis_sets{state=\"failing\",reason=%q} %d\n", reason, number)
	}
	for _, test := range []struct {
		chart, alert string
		replicas     []string
		firing       int
	}{
		{"trellis-master", "TrellisNoLeader", []string{leads("trellis-master", 0), leads("trellis-master", 0)}, 1},
		{"trellis-master", "TrellisNoLeader", []string{leads("trellis-master", 0), leads("trellis-master", 1)}, 0},
		{"trellis-seed", "TrellisNoLeader", []string{leads("trellis-seed", 0)}, 1},
		{"trellis-seed", "TrellisNoLeader", []string{leads("trellis-seed", 1), leads("trellis-seed", 0), leads("trellis-master", 0)}, 0},
		{"trellis-master", "TrellisSetReachesNoCluster", []string{sets("NoClusterSelected", 1) + sets("Blocked", 2) + sets("NoEvidence", 1)}, 3},
		{"trellis-master", "TrellisSetReachesNoCluster", []string{sets("Complete", 9) + sets("RollingOut", 1) + sets("SeedsBehind", 1)}, 0},
	} {
		_, objects := render(t, rendering{chart: test.chart, why: "with alerts", values: map[string]any{"metrics": map[string]any{
			"prometheusRule": map[string]any{"enabled": true},
		}}})
		rules := alertsOf(t, objects)
		at := slices.IndexFunc(rules, func(rule map[string]any) bool { return rule["alert"] == test.alert })
		if at < 0 {
			t.Errorf("%s has no alert %s", test.chart, test.alert)
			continue
		}
		var scrapes []scrape
		for number, text := range test.replicas {
			scrapes = append(scrapes, scrape{
				At: time.Unix(1_800_000_000, 0), Labels: map[string]string{"namespace": namespace, "pod": fmt.Sprint(number)}, Text: text,
			})
		}
		if got := answers(t, scrapes, []string{rules[at]["expr"].(string)})[0]; got.Problem != "" || got.Firing != test.firing {
			t.Errorf("%s of %s: %d fire over %q, want %d; %s", test.alert, test.chart, got.Firing, test.replicas, test.firing, got.Problem)
		}
	}
}

// advice is in what an alert's page says to do: a word to run or to look at, or a page to read.
var advice = regexp.MustCompile("`[^`]+`|\\]\\([^)]+\\)")

// TestRunbooksSayWhatToDo: red when an alert leads to no part of a page of the checkout, or to one that does not say what it means and what
// to do, and when a page of the platform's own does not take that place.
func TestRunbooksSayWhatToDo(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(withEverySetting(), webRenderings[2]) {
		hosted := load(t, r.chart).Metadata.Home + "/blob/main/"
		_, objects := render(t, r)
		for _, rule := range alertsOf(t, objects) {
			file, isHosted := strings.CutPrefix(runbookOf(rule), hosted)
			name, anchor, _ := strings.Cut(file, "#")
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if !isHosted || err != nil {
				t.Errorf("%s leads to %q, which is no page below %s: %v", rule["alert"], runbookOf(rule), hosted, err)
				continue
			}
			if missing := missingOfRunbook(string(text), anchor); missing != "" {
				t.Errorf("%s leads to %s#%s, which lacks %s", rule["alert"], name, anchor, missing)
			}
		}
		const own = "https://docs.example.com/spec/alerts.html"
		r.values = withLeast(r.chart, map[string]any{"metrics": map[string]any{"prometheusRule": map[string]any{"enabled": true, "runbookURL": own}}})
		_, objects = render(t, r)
		for _, rule := range alertsOf(t, objects) {
			if want := own + "#" + strings.ToLower(rule["alert"].(string)); runbookOf(rule) != want {
				t.Errorf("%s leads to %q, expected %q", rule["alert"], runbookOf(rule), want)
			}
		}
	}
}

// runbookOf is the URL that an alert leads to; "" without one.
func runbookOf(rule map[string]any) string {
	url, _ := rule["annotations"].(map[string]any)["runbook_url"].(string)
	return url
}

// missingOfRunbook is what a page lacks to say of an alert what it means and what to do.
func missingOfRunbook(text, anchor string) string {
	for _, part := range strings.Split(text, "\n## ")[1:] {
		heading, below, _ := strings.Cut(part, "\n")
		if markdown.Anchor(heading, map[string]int{}) != anchor {
			continue
		}
		meaning, toDo, _ := strings.Cut(strings.TrimSpace(below), "**What to do.**")
		switch {
		case meaning == "":
			return "what the alert means"
		case !advice.MatchString(toDo):
			return "what to do"
		}
		return ""
	}
	return "the heading"
}

// Red when a heading alone, or a sentence that names nothing, counts as what to do.
func TestRunbooksThatSayNothing(t *testing.T) {
	for want, text := range map[string]string{
		"":                     "## Broken\n\nIt broke.\n\n**What to do.** Look at `kubectl get pods`.\n",
		"what to do":           "## Broken\n\nIt broke.\n\n**What to do.** Be patient.\n\n## Next\n\n**What to do.** `ls`.\n",
		"what the alert means": "## Broken\n\n**What to do.** [Read](x.md).\n",
		"the heading":          "## BrokenToo\n\nIt broke.\n\n**What to do.** `ls`.\n",
	} {
		page := "# Alerts\n\n" + text
		if missing := missingOfRunbook(page, "broken"); missing != want {
			t.Errorf("%q lacks %q, expected %q", page, missing, want)
		}
	}
}

func specPage(t *testing.T, name string) string {
	t.Helper()
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "spec", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// alertsOf the only PrometheusRule among objects.
func alertsOf(t *testing.T, objects []*unstructured.Unstructured) (rules []map[string]any) {
	t.Helper()
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "PrometheusRule" })
	if at < 0 {
		t.Fatal("the chart has no PrometheusRule")
	}
	groups, _, err := unstructured.NestedSlice(objects[at].Object, "spec", "groups")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		for _, rule := range group.(map[string]any)["rules"].([]any) {
			rules = append(rules, rule.(map[string]any))
		}
	}
	return rules
}
