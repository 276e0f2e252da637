package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/test/binaries"
)

var (
	metricOfRule = regexp.MustCompile(`trellis_[a-z_]+`)
	headingOf    = regexp.MustCompile(`(?m)^## (\S+)$`)
	// histogramSeries are the ends of the names of a histogram's series.
	histogramSeries = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestAlertsAreAboutMetricsThatExist: red when an alert is about a metric that no manager has, or can't be read, when it has no page that says
// what to do, and when a page is about none.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	metrics, pages := specPage(t, "metrics.md"), headingOf.FindAllStringSubmatch(specPage(t, "alerts.md"), -1)
	explained := map[string]bool{}
	for _, page := range pages {
		explained[page[1]] = false
	}
	for _, r := range withEverySetting() {
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
			annotations := rule["annotations"].(map[string]any)
			if annotations["runbook"] != "docs/spec/alerts.md#"+strings.ToLower(name) || annotations["summary"] == "" {
				t.Errorf("%s has annotations %v", name, annotations)
			}
		}
	}
	for name, isThere := range explained {
		if !isThere {
			t.Errorf("docs/spec/alerts.md explains %s, which no chart has", name)
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
