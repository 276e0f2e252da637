package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
)

// figures are what a page says of values of the charts, as `key` (1Gi), or `key` (2Gi on seeds, 1Gi on the master).
var figures = regexp.MustCompile("`([a-z]\\w*(?:\\.\\w+)*)` \\((\\w+)(?: on seeds, (\\w+) on the master)?\\)")

// defaults are the values that the charts have where nobody gives others.
type defaults struct{ seed, master chartutil.Values }

func defaultsOfCharts(t *testing.T) defaults {
	t.Helper()
	values := map[string]chartutil.Values{}
	for _, name := range []string{"trellis-seed", "trellis-master"} {
		loaded, err := charts.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		values[name] = loaded.Values
	}
	return defaults{seed: values["trellis-seed"], master: values["trellis-master"]}
}

// at is a value as it is written; "" where the chart lacks the key.
func at(values chartutil.Values, key string) string {
	value, err := values.PathValue(key)
	if err != nil {
		return ""
	}
	return fmt.Sprint(value)
}

// wrong are the figures of a text that the charts don't have, and how many it gives.
func (d defaults) wrong(text string) (found []string, count int) {
	for _, match := range figures.FindAllStringSubmatch(text, -1) {
		key, ofSeed, ofMaster := match[1], match[2], match[3]
		seed, master := at(d.seed, key), at(d.master, key)
		if ofMaster == "" && master != "" {
			ofMaster = ofSeed // said of both
		}
		if seed == "" && ofMaster == ofSeed {
			ofSeed = "" // said of the master alone
		}
		if ofSeed != seed || ofMaster != master || ofSeed+ofMaster == "" {
			found = append(found, fmt.Sprintf("%s: the seed's chart has %q, the master's %q", match[0], seed, master))
		}
		count++
	}
	return found, count
}

// sentences are what the page of sizes says of values without their keys.
func (d defaults) sentences(t *testing.T) []string {
	t.Helper()
	resources := func(values chartutil.Values) string {
		return fmt.Sprintf("%s CPU, %s requested, limit %s", at(values, "resources.requests.cpu"), at(values, "resources.requests.memory"),
			at(values, "resources.limits.memory"))
	}
	children, err := strconv.Atoi(at(d.seed, "render.children"))
	if err != nil {
		t.Fatal(err)
	}
	processes, memory := children+1, at(d.seed, "render.memory") // one more waits for work
	rest, each := resource.MustParse(at(d.seed, "resources.limits.memory")), resource.MustParse(memory)
	for range processes {
		rest.Sub(each)
	}
	numerals := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	return []string{
		"| master's manager | " + resources(d.master), "| seed's manager | " + resources(d.seed),
		fmt.Sprintf("%s renderers of %s each and %s for itself", numerals[processes], memory, rest.String()),
	}
}

// Red when a default of the charts is changed, and the page of sizes still tells the former one.
func TestSizesAreThoseOfTheCharts(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "guides", "sizing.md"))
	if err != nil {
		t.Fatal(err)
	}
	of := defaultsOfCharts(t)
	wrong, count := of.wrong(string(page))
	for _, one := range wrong {
		t.Error(one)
	}
	if count < 2 {
		t.Errorf("the page has %d figures with their keys: this test reads the wrong one", count)
	}
	for _, sentence := range of.sentences(t) {
		if !strings.Contains(string(page), sentence) {
			t.Errorf("the page does not say %q", sentence)
		}
	}
}

// Red when a wrong figure counts as right, or a right one as wrong.
func TestFiguresOfATextAreCompared(t *testing.T) {
	of := defaults{
		seed:   chartutil.Values{"store": map[string]any{"limit": "2Gi"}, "replicas": 1, "concurrency": 10},
		master: chartutil.Values{"store": map[string]any{"limit": "1Gi"}, "replicas": 1, "usage": "5m"},
	}
	for text, isRight := range map[string]bool{
		"`store.limit` (2Gi on seeds, 1Gi on the master)": true, "`concurrency` (10)": true, "`replicas` (1)": true, "`usage` (5m)": true,
		"`store.limit` (1Gi on seeds, 1Gi on the master)": false, "`store.limit` (2Gi on seeds, 2Gi on the master)": false,
		"`store.limit` (2Gi)": false, "`concurrency` (8)": false, "`replicas` (2)": false, "`usage` (1m)": false, "`replica` (1)": false,
	} {
		if wrong, count := of.wrong(text); count != 1 || isRight != (len(wrong) == 0) {
			t.Errorf("of %s is said %q", text, wrong)
		}
	}
}
