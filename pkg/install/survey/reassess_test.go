package survey_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

// TestReassessReadsWhatWasNotHealthy fails if Reassess reads objects that were healthy before, reports everything as
// healthy without reading it once more, or counts wrongly.
func TestReassessReadsWhatWasNotHealthy(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stuck := strings.Replace(strings.Replace(lab.Deployment, "name: web}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	inventory := l.Install(l.Prepare(lab.Deployment+"\n---\n"+stuck+"\n---\n"+lab.Settings), nil)
	const want = "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"
	var health survey.Health
	l.Eventually("one Deployment is healthy", func() bool {
		health = l.Assess(inventory)
		return states(health) == want
	})
	again := func() []string {
		return l.Calls.During("GET", func() {
			health = lab.Must(survey.Standard{}.Reassess(t.Context(), l.Target, l.Owner, inventory, health))(t)
		})
	}
	path := "GET /apis/apps/v1/namespaces/" + l.Unique + "/deployments/"
	if diff := cmp.Diff([]string{path + "stuck"}, again()); diff != "" || states(health) != want {
		t.Errorf("got %s; reads (-want +got):\n%s", states(health), diff)
	}

	l.Edit(lab.Deployments, "web", `{spec: {replicas: 0}}`)
	l.Eventually("the healthy one is healthy again", func() bool { return states(l.Assess(inventory)) == want })
	l.Edit(lab.Deployments, "stuck", `{spec: {replicas: 0}}`)
	var reads []string
	l.Eventually("everything is healthy", func() bool {
		reads = again()
		return health.Healthy == health.Total
	})
	slices.Sort(reads)
	if diff := cmp.Diff([]string{path + "stuck", path + "stuck", path + "web"}, reads); diff != "" || health.Total != 3 {
		t.Errorf("got %s; reads of the last look (-want +got):\n%s", states(health), diff)
	}
}
