package charts

import (
	"net/http"
	"slices"
	"testing"

	"github.com/trellis-addons/trellis/test/audit"
	"github.com/trellis-addons/trellis/test/fleet"
)

// jobs are the charts' Jobs, by the names of their accounts in the platform namespace.
var jobs = []string{
	"trellis-master-crds", "trellis-master-removal", "trellis-master-check", "trellis-seed-crds", "trellis-seed-removal", "trellis-seed-check",
}

const (
	makesCRDs = "create customresourcedefinitions.apiextensions.k8s.io"
	byApply   = "asked for by the API server where an apply makes what is not there, and no call: TestChartsAreUpgradedAndRemoved"
)

// excusedOfJobs are rights that no call shows while charts are upgraded and removed, with the test that is red without them.
var excusedOfJobs = map[string]map[string]string{"trellis-master-crds": {makesCRDs: byApply}, "trellis-seed-crds": {makesCRDs: byApply}}

// userOf is who a Job is to an API server.
func userOf(job string) string { return "system:serviceaccount:" + namespace + ":" + job }

// usersOfJobs are those whose calls the API server of upgraded charts notes.
func usersOfJobs() (users []string) {
	for _, job := range jobs {
		users = append(users, userOf(job))
	}
	return users
}

// callsOfJobs are those until now, on the API server of upgraded charts.
func callsOfJobs(t *testing.T) []audit.Event {
	t.Helper()
	events, err := audit.Read(fleet.Shared().Cluster(upgraded).AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// hooks are the objects of a release that Helm runs by itself, such as Jobs with their accounts.
func hooks(t *testing.T, where *fleet.Cluster, release string) string {
	t.Helper()
	text, err := helm(t, where, "get", "hooks", release)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return text
}

// expectRightsUsed puts the calls of a Job against the rights that hooks of its release grant it. Refused may be what these allow: the API
// server hears of a role a moment after it was made, and the Job tries again.
func expectRightsUsed(t *testing.T, job, hooks string, events []audit.Event, excused map[string]string) {
	t.Helper()
	objects, err := Documents("hooks", hooks)
	if err != nil {
		t.Fatal(err)
	}
	rights, err := audit.Granted(objects, namespace+":"+job)
	if err != nil || len(rights) == 0 {
		t.Fatalf("%s has %d rights: %v", job, len(rights), err)
	}
	refused, foreign, spare := audit.Replay(events, userOf(job), rights)
	for _, event := range slices.Concat(foreign, refused) {
		if !isEarly(event, rights) {
			t.Errorf("no right of the Job: %s", event)
		}
	}
	unused := map[string]bool{}
	for _, right := range spare {
		unused[right.String()] = true
		if excused[right.String()] == "" {
			t.Errorf("%s does not use the right to %s", job, right)
		}
	}
	for right := range excused {
		if !unused[right] {
			t.Errorf("%s uses the right to %s, or has none: it needs no excuse", job, right)
		}
	}
}

// isEarly holds for a call that was refused for want of a right that is there by now, and not by a policy.
func isEarly(event audit.Event, rights []audit.Right) bool {
	if event.ResponseStatus.Code != http.StatusForbidden || event.Annotations["authorization.k8s.io/decision"] != "forbid" {
		return false
	}
	later := event
	later.ResponseStatus.Code = http.StatusOK
	_, foreign, _ := audit.Replay([]audit.Event{later}, event.User.Username, rights)
	return len(foreign) == 0
}
