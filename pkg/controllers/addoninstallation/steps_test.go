package addoninstallation

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// TestWhatGoesOnInWhichState compares the table of docs/spec/addoninstallation.md with the steps of each course.
func TestWhatGoesOnInWhichState(t *testing.T) {
	stepOf := map[string]string{
		"render":                         "render",
		"apply objects":                  "apply",
		"renew [credentials](agents.md)": "access",
		"update Secrets with credentials in the user cluster": "secrets",
		"update copies of the pull Secret":                    "copies",
		"repair drift":                                        "drift",
		"adopt shared objects of removed installations":       "inherit",
		"write the Helm release's Secret":                     "release",
		"run `post-` hooks":                                   "post-hooks",
		"watch health":                                        "health",
		"prune":                                               "prune",
		"run deletion hooks, and remove objects":              "remove",
	}
	page, err := os.ReadFile("../../../docs/spec/addoninstallation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "### What Trellis does in each state\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	states := cells(rows[0])[1:]
	courses := New(Dependencies{}).courses()
	columns := [][]loop.Step[facts]{courses[install], courses[hold], courses[maintain], courses[finish], courses[renew], courses[remove]}
	if len(states) != len(columns) || len(rows)-2 != len(stepOf) {
		t.Fatalf("the page has %d states and %d rows, want %d and %d", len(states), len(rows)-2, len(columns), len(stepOf))
	}
	for _, row := range rows[2:] {
		found := cells(row)
		step, isKnown := stepOf[found[0]]
		if !isKnown {
			t.Errorf("no step does %q", found[0])
			continue
		}
		for at, steps := range columns {
			want := found[at+1] != "no"
			if got := slices.ContainsFunc(steps, func(one loop.Step[facts]) bool { return one.Name == step }); got != want {
				t.Errorf("%s, %q: step %q is there: %t, and the page says %q", states[at], found[0], step, got, found[at+1])
			}
		}
	}
}

// cells of a row of a table.
func cells(row string) []string {
	found := strings.Split(strings.Trim(row, "|"), "|")
	for at := range found {
		found[at] = strings.TrimSpace(found[at])
	}
	return found
}
