package survey_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/lab"
)

var (
	jobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	daemonSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	classes     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

func states(health survey.Health) string {
	var words []string
	for _, note := range health.Unhealthy {
		words = append(words, note.Key.Kind+":"+note.Reason)
	}
	return fmt.Sprintf("%d/%d healthy, %d failing, in progress %t, %s",
		health.Healthy, health.Total, health.Failing, health.InProgress, strings.Join(words, " "))
}

// nowhere keeps pods from being scheduled.
const nowhere = "{nodeSelector: {no: where}, "

// TestHealthOfWorkloads fails if ConfigMaps are read, or workloads are not; if sum ignores objects in progress.
func TestHealthOfWorkloads(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stuck := strings.Replace(strings.Replace(lab.Deployment, "name: web}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	inventory := l.Install(l.Prepare(lab.Deployment+"\n---\n"+stuck+"\n---\n"+lab.Settings), nil)

	want := "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"
	l.Eventually("one Deployment is healthy", func() bool { return states(l.Assess(inventory)) == want })
	reads := l.Calls.During("GET", func() { l.Assess(inventory) })
	if slices.Contains(reads, "GET /api/v1/namespaces/"+l.Unique+"/configmaps/settings") || len(reads) != 2 {
		t.Errorf("read %q, want the two Deployments alone", reads)
	}

	l.Delete(lab.Deployments, l.Unique, "web")
	want = "1/3 healthy, 0 failing, in progress true, Deployment:InProgress Deployment:NotFound"
	l.Eventually("a missing Deployment is not healthy", func() bool { return states(l.Assess(inventory)) == want })
}

// TestHealthOfWorkloadsThatAreHeldBack fails if a DaemonSet whose Pods are replaced by hand stays in progress after an
// update; and if the message of a paused Deployment does not say so.
func TestHealthOfWorkloadsThatAreHeldBack(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	first := lab.Manifests(lab.Deployment, `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: by-hand}
spec:
  selector: {matchLabels: {app: by-hand}}
  updateStrategy: {type: OnDelete}
  template:
    metadata: {labels: {app: by-hand}}
    spec: {containers: [{name: main, image: "example.com/web:1"}]}`)
	inventory := l.Install(l.Prepare(first), nil)
	l.Eventually("both have their Pods", func() bool { return l.Assess(inventory).Healthy == 2 })

	l.Edit(lab.Deployments, "web", `{spec: {paused: true}}`)
	inventory = l.Update(strings.ReplaceAll(first, "web:1", "web:2"), inventory)
	l.Eventually("the controller has seen the new template and replaced no Pod", func() bool {
		live := l.Get(daemonSets, l.Unique, "by-hand")
		updated, _, _ := lab.NestedInt(live, "status", "updatedNumberScheduled")
		observed, _, _ := lab.NestedInt(live, "status", "observedGeneration")
		return observed == 2 && updated == 0
	})
	l.Eventually("the DaemonSet alone is healthy", func() bool {
		return states(l.Assess(inventory)) == "1/2 healthy, 0 failing, in progress true, Deployment:InProgress"
	})
	if said := l.Assess(inventory).Unhealthy[0].Message; !strings.HasPrefix(said, "it is paused (spec.paused); ") {
		t.Errorf("of the Deployment it says %q", said)
	}
}

// TestHealthOfJobs fails if a running Job counts as healthy (kstatus calls it current), or Finished is not filled in.
func TestHealthOfJobs(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	stuck := strings.Replace(strings.Replace(lab.Job, "name: once}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	objects := l.Prepare(lab.Job + "\n---\n" + stuck)
	inventory := l.Install(objects, nil)
	var health survey.Health
	l.Eventually("one Job is complete", func() bool {
		health = l.Assess(inventory)
		return states(health) == "1/2 healthy, 0 failing, in progress true, Job:InProgress"
	})
	if diff := cmp.Diff([]ownership.Key{inventory[0].Key}, health.Finished); diff != "" {
		t.Fatalf("finished (-want +got):\n%s", diff)
	}

	finished := inventory.Finish(health.Finished)
	l.Delete(jobs, l.Unique, "once")
	l.Eventually("the Job is gone", func() bool { return l.Get(jobs, l.Unique, "once") == nil })
	if health := l.Assess(finished); health.Healthy != 1 {
		t.Errorf("a finished Job that vanished is healthy, got %s", states(health))
	}
	l.Install(objects, finished)
	if l.Get(jobs, l.Unique, "once") != nil {
		t.Error("a finished Job was run again by a rollout of the same content")
	}
}

// TestHealthOfClaims fails if awaitsConsumer is always false, or always true.
func TestHealthOfClaims(t *testing.T) {
	for mode, want := range map[string]string{
		"WaitForFirstConsumer": "1/1 healthy, 0 failing, in progress false, ",
		"Immediate":            "0/1 healthy, 0 failing, in progress true, PersistentVolumeClaim:InProgress",
	} {
		t.Run(mode, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			l.Create(classes, "", `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, `+
				`provisioner: example.com/disk, volumeBindingMode: `+mode+`}`)
			manifest := strings.Replace(lab.Claim, "spec: {", "spec: {storageClassName: NAME, ", 1)
			inventory := l.Install(l.Prepare(strings.TrimPrefix(manifest, "\n---\n")), nil)
			l.Eventually("the claim is pending", func() bool {
				phase, _, _ := lab.NestedString(l.Get(claims, l.Unique, "data"), "status", "phase")
				return phase == "Pending"
			})
			if got := states(l.Assess(inventory)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestHealthOfAPIServices fails if an APIService counts as healthy regardless of its backend.
func TestHealthOfAPIServices(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	manifest := `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.GROUP}, spec: {group: GROUP, version: v1, ` +
		`groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: nobody, namespace: NAME}}}`
	inventory := l.Install(l.Prepare(strings.ReplaceAll(manifest, "GROUP", l.Unique+".example.com")), nil)
	defer l.Delete(apiServices, "", "v1."+l.Unique+".example.com") // otherwise no namespace of the server can be finalized
	want := "0/1 healthy, 0 failing, in progress true, APIService:InProgress"
	l.Eventually("the aggregator's reason is told", func() bool {
		health := l.Assess(inventory)
		if got := states(health); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		return strings.Contains(health.Unhealthy[0].Message, "ServiceNotFound")
	})
}

// TestHealthOfCustomResources fails if several custom resources are read one by one, if failed ones don't come first,
// or if a message contains text of the user cluster.
func TestHealthOfCustomResources(t *testing.T) {
	l := lab.New(t)
	parts := strings.Split(lab.Widgets, "\n---\n")
	manifests := []string{parts[1], parts[3]}
	for _, name := range []string{"calm", "busy", "broken"} {
		manifests = append(manifests, strings.Replace(parts[0], "first", name, 1))
	}
	inventory := l.Install(l.Prepare(strings.Join(manifests, "\n---\n")), nil)
	l.Edit(l.Widgets(), "busy", `{status: {conditions: [{type: Ready, status: "False", reason: Wait, message: soon}]}}`)
	l.Edit(l.Widgets(), "broken", `{status: {conditions: [{type: Stalled, status: "True", reason: Bad, message: "no\n`+
		strings.Repeat("x", 5000)+`"}]}}`)

	var health survey.Health
	reads := l.Calls.During("GET /apis/"+l.Unique, func() { health = l.Assess(inventory) })
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

// TestInstallationsShareALookAtWorkloads fails if each installation reads its own list, if unhealthy objects of the
// list are not read, or if a list is used forever.
func TestInstallationsShareALookAtWorkloads(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	inventory := l.Install(l.Prepare(lab.Deployment), nil)
	l.Eventually("the Deployment is healthy", func() bool { return l.Assess(inventory).Healthy == 1 })
	now := time.Now()
	s := survey.New(time.Minute, func() time.Time { return now })
	assess := func(want string) []string {
		return l.Calls.During("", func() {
			if got := states(lab.Must(survey.Standard{Shared: s}.Assess(t.Context(), l.Target, l.Owner, inventory))(t)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	well, list := "1/1 healthy, 0 failing, in progress false, ", []string{"GET /apis/apps/v1/deployments"}
	if diff := cmp.Diff(list, assess(well)); diff != "" {
		t.Errorf("first look (-want +got):\n%s", diff)
	}
	if again := assess(well); len(again) > 0 {
		t.Errorf("a second look a moment later asked %q", again)
	}
	other := &lab.Lab{T: t, Target: l.Target, Calls: l.Calls, Owner: ownership.Owner{ClusterUID: "5f3d", Installation: l.Unique + "-2"}, Unique: l.Unique}
	second := other.Install(l.Prepare(strings.ReplaceAll(lab.Deployment, "name: web", "name: second")), nil)
	l.Eventually("the other's Deployment is healthy", func() bool { return other.Assess(second).Healthy == 1 })
	now = now.Add(time.Minute)
	for _, one := range []struct {
		owner ownership.Owner
		has   ownership.Inventory
	}{{l.Owner, inventory}, {other.Owner, second}} {
		asked := l.Calls.During("", func() { lab.Must(survey.Standard{Shared: s}.Assess(t.Context(), l.Target, one.owner, one.has))(t) })
		if diff := cmp.Diff(list, asked); diff != "" {
			t.Errorf("asked for %q (-want +got):\n%s", one.owner.Installation, diff)
		}
		list = nil
	}
	l.Delete(lab.Deployments, l.Unique, "web")
	l.Eventually("the Deployment is gone", func() bool { return l.Assess(inventory).Healthy == 0 })
	list = []string{"GET /apis/apps/v1/deployments"}
	now = now.Add(time.Minute)
	want := append(list, "GET /apis/apps/v1/namespaces/"+l.Unique+"/deployments/web")
	if diff := cmp.Diff(want, assess("0/1 healthy, 0 failing, in progress true, Deployment:NotFound")); diff != "" {
		t.Errorf("after it was deleted (-want +got):\n%s", diff)
	}
}
