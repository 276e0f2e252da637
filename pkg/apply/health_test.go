package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

var (
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	claims  = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	classes = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

const job = `apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: once, image: "example.com/once:1"}]}}`

func (l *lab) assess(inventory ownership.Inventory) apply.Health {
	l.Helper()
	return must(apply.Assess(l.Context(), l.target, l.owner, inventory))(l)
}

func states(health apply.Health) string {
	var words []string
	for _, note := range health.Unhealthy {
		words = append(words, note.Key.Kind+":"+note.Reason)
	}
	return fmt.Sprintf("%d/%d healthy, %d failing, in progress %t, %s",
		health.Healthy, health.Total, health.Failing, health.InProgress, strings.Join(words, " "))
}

// nowhere keeps pods from being scheduled.
const nowhere = "{nodeSelector: {no: where}, "

// Red when ConfigMaps are read, or workloads are not; when sum forgets who is on the way.
func TestHealthOfWorkloads(t *testing.T) {
	l := newLab(t)
	l.namespace()
	stuck := strings.Replace(strings.Replace(deployment, "name: web}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	inventory := l.install(l.prepare(deployment+"\n---\n"+stuck+"\n---\n"+settings), nil)

	want := "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"
	l.eventually("one Deployment is healthy", func() bool { return states(l.assess(inventory)) == want })
	reads := l.calls.during("GET", func() { l.assess(inventory) })
	if slices.Contains(reads, "GET /api/v1/namespaces/"+l.name+"/configmaps/settings") || len(reads) != 2 {
		t.Errorf("read %q, want the two Deployments alone", reads)
	}

	l.delete(deployments, l.name, "web")
	want = "1/3 healthy, 0 failing, in progress true, Deployment:InProgress Deployment:NotFound"
	l.eventually("a missing Deployment is not healthy", func() bool { return states(l.assess(inventory)) == want })
}

// Red when a running Job counts as healthy (kstatus calls it current), or Finished is not filled in.
func TestHealthOfJobs(t *testing.T) {
	l := newLab(t)
	l.namespace()
	stuck := strings.Replace(strings.Replace(job, "name: once}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	objects := l.prepare(job + "\n---\n" + stuck)
	inventory := l.install(objects, nil)
	var health apply.Health
	l.eventually("one Job is complete", func() bool {
		health = l.assess(inventory)
		return states(health) == "1/2 healthy, 0 failing, in progress true, Job:InProgress"
	})
	if diff := cmp.Diff([]ownership.Key{inventory[0].Key}, health.Finished); diff != "" {
		t.Fatalf("finished (-want +got):\n%s", diff)
	}

	finished := inventory.Finish(health.Finished)
	l.delete(jobs, l.name, "once")
	l.eventually("the Job is gone", func() bool { return l.get(jobs, l.name, "once") == nil })
	if health := l.assess(finished); health.Healthy != 1 {
		t.Errorf("a finished Job that vanished is healthy, got %s", states(health))
	}
	l.install(objects, finished)
	if l.get(jobs, l.name, "once") != nil {
		t.Error("a finished Job was run again by a rollout of the same content")
	}
}

// Red when awaitsConsumer is always false, or always true.
func TestHealthOfClaims(t *testing.T) {
	for mode, want := range map[string]string{
		"WaitForFirstConsumer": "1/1 healthy, 0 failing, in progress false, ",
		"Immediate":            "0/1 healthy, 0 failing, in progress true, PersistentVolumeClaim:InProgress",
	} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			l.create(classes, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, `+
				`provisioner: example.com/disk, volumeBindingMode: `+mode+`}`)
			manifest := strings.Replace(claim, "spec: {", "spec: {storageClassName: NAME, ", 1)
			inventory := l.install(l.prepare(strings.TrimPrefix(manifest, "\n---\n")), nil)
			l.eventually("the claim is pending", func() bool {
				phase, _, _ := nestedString(l.get(claims, l.name, "data"), "status", "phase")
				return phase == "Pending"
			})
			if got := states(l.assess(inventory)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// Red when several custom resources are read one by one, when failed ones don't come first, or when a message keeps what the
// user cluster put into it.
func TestHealthOfCustomResources(t *testing.T) {
	l := newLab(t)
	parts := strings.Split(widgets, "\n---\n")
	manifests := []string{parts[1], parts[3]}
	for _, name := range []string{"calm", "busy", "broken"} {
		manifests = append(manifests, strings.Replace(parts[0], "first", name, 1))
	}
	inventory := l.install(l.prepare(strings.Join(manifests, "\n---\n")), nil)
	l.edit(l.widgets(), "busy", `{status: {conditions: [{type: Ready, status: "False", reason: Wait, message: soon}]}}`)
	l.edit(l.widgets(), "broken", `{status: {conditions: [{type: Stalled, status: "True", reason: Bad, message: "no\n`+
		strings.Repeat("x", 5000)+`"}]}}`)

	var health apply.Health
	reads := l.calls.during("GET /apis/"+l.name, func() { health = l.assess(inventory) })
	if len(reads) != 1 {
		t.Errorf("three objects of a kind were read by %q, want one list", reads)
	}
	if got, want := states(health), "3/5 healthy, 1 failing, in progress true, Widget:Failed Widget:InProgress"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if message := health.Unhealthy[0].Message; len(message) > 250 || strings.Contains(message, "\n") {
		t.Errorf("a message of a user cluster is not cut and cleaned: %d bytes", len(message))
	}
}

// Red when each installation asks for itself, when what is not well in the list is not read, or when a list is used for ever.
func TestInstallationsShareALookAtWorkloads(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(deployment), nil)
	l.eventually("the Deployment is healthy", func() bool { return l.assess(inventory).Healthy == 1 })
	now := time.Now()
	s := apply.NewSurvey(time.Minute, func() time.Time { return now })
	look := func(want string) []string {
		return l.calls.during("", func() {
			if got := states(must(s.Assess(t.Context(), l.target, l.owner, inventory))(t)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	well, list := "1/1 healthy, 0 failing, in progress false, ", []string{"GET /apis/apps/v1/deployments"}
	if diff := cmp.Diff(list, look(well)); diff != "" {
		t.Errorf("first look (-want +got):\n%s", diff)
	}
	if again := look(well); len(again) > 0 {
		t.Errorf("a second look a moment later asked %q", again)
	}
	other := &lab{T: t, target: l.target, calls: l.calls, owner: ownership.Owner{ClusterUID: "5f3d", Installation: l.name + "-2"}, name: l.name}
	second := other.install(l.prepare(strings.ReplaceAll(deployment, "name: web", "name: second")), nil)
	l.eventually("the other's Deployment is healthy", func() bool { return other.assess(second).Healthy == 1 })
	now = now.Add(time.Minute)
	for _, one := range []struct {
		owner ownership.Owner
		has   ownership.Inventory
	}{{l.owner, inventory}, {other.owner, second}} {
		asked := l.calls.during("", func() { must(s.Assess(t.Context(), l.target, one.owner, one.has))(t) })
		if diff := cmp.Diff(list, asked); diff != "" {
			t.Errorf("asked for %q (-want +got):\n%s", one.owner.Installation, diff)
		}
		list = nil
	}
	l.delete(deployments, l.name, "web")
	l.eventually("the Deployment is gone", func() bool { return l.assess(inventory).Healthy == 0 })
	list = []string{"GET /apis/apps/v1/deployments"}
	now = now.Add(time.Minute)
	want := append(list, "GET /apis/apps/v1/namespaces/"+l.name+"/deployments/web")
	if diff := cmp.Diff(want, look("0/1 healthy, 0 failing, in progress true, Deployment:NotFound")); diff != "" {
		t.Errorf("after it was deleted (-want +got):\n%s", diff)
	}
}
