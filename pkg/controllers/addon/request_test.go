package addon_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	kit "github.com/trellis-addons/trellis/test/world"
)

// asking makes a Cluster whose annotation asks for installations.
func (w *world) asking(name, text string) *kkpv1.Cluster {
	w.t.Helper()
	object := w.cluster(name, "v1.36.3")
	w.ask(object, text)
	return object
}

func (w *world) ask(object *kkpv1.Cluster, text string) {
	w.t.Helper()
	before := object.DeepCopy()
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[v1.AnnotationInitialInstallations] = text
	expect.Patch(w.t, w.seed, object, client.MergeFrom(before))
}

// expectAnswered waits until exactly these installations are there, and of the annotation exactly
// that.
func (w *world) expectAnswered(object *kkpv1.Cluster, left string, names ...string) []v1.AddonInstallation {
	w.t.Helper()
	var found []v1.AddonInstallation
	expect.Object(w.t, w.seed, object, func(object *kkpv1.Cluster) error {
		if have := object.Annotations[v1.AnnotationInitialInstallations]; have != left {
			return fmt.Errorf("the annotation is %q, want %q", have, left)
		}
		found = w.installations()
		var have []string
		for _, item := range found {
			have = append(have, item.Namespace+"/"+item.Name)
		}
		var want []string
		for _, name := range names {
			want = append(want, "cluster-"+object.Name+"/"+name)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("installations (-want +got):\n%s", diff)
		}
		return nil
	})
	return found
}

// installations of this world, in all namespaces.
func (w *world) installations() []v1.AddonInstallation {
	w.t.Helper()
	var list v1.AddonInstallationList
	expect.List(w.t, w.seed, &list)
	return slices.DeleteFunc(list.Items, func(item v1.AddonInstallation) bool {
		return !strings.HasSuffix(item.Namespace, fmt.Sprintf("-%d", worlds))
	})
}

func TestMakesWhatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	of := w.asking("asking", `[{"name": "first", "addonRef": {"name": "prometheus", "version": "1.x"}, "targetNamespace": "monitoring",
		"createNamespace": true, "values": {"replicas": 2, "list": [1.5, null], "text": "\ud83d\ude00"}},
		{"name": "second", "addonRef": {"name": "loki"}, "targetNamespace": "logging"}]`)
	w.start()
	made := w.expectAnswered(of, "", "first", "second")
	first := made[0]
	want := v1.AddonInstallationSpec{
		AddonRef:        v1.AddonReference{Name: "prometheus", Version: "1.x"},
		TargetNamespace: "monitoring", CreateNamespace: true,
		ReconcileStrategy: v1.ReconcileContinuous, DeletionPolicy: v1.DeletionDelete, Values: first.Spec.Values,
	}
	if diff := cmp.Diff(want, first.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`{"list":[1.5,null],"replicas":2,"text":"😀"}`, string(first.Spec.Values.Raw)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	// What a user removes does not come back.
	expect.Delete(t, w.seed, &first)
	w.status(of, func(status *kkpv1.ClusterStatus) { status.Versions.ControlPlane = "v1.37.1" })
	w.expectAnswered(of, "", "second")
	w.steady(func() error {
		if have := len(w.installations()); have != 1 {
			return fmt.Errorf("%d installations", have)
		}
		return nil
	})
}

func TestWaitsForTheNamespaceOfWhatWasAskedFor(t *testing.T) {
	w := newWorld(t)
	const text = `[{"name":"only","addonRef":{"name":"loki"},"targetNamespace":"logging"}]`
	late := w.bareCluster(fmt.Sprintf("late-%d", worlds), "")
	w.ask(late, text)
	paused := w.asking("paused", text)
	paused.Spec.Pause = true
	expect.Update(t, w.seed, paused)
	w.start()
	w.steady(func() error {
		if have := len(w.installations()); have != 0 {
			return fmt.Errorf("%d installations", have)
		}
		return nil
	})
	expect.Create(w.t, w.seed, kit.Namespace("cluster-"+late.Name))
	w.expectAnswered(late, "", "only")
}

func TestKeepsAndReportsWhatCantBeFollowed(t *testing.T) {
	const good = `{"name":"good","addonRef":{"name":"loki"},"targetNamespace":"logging"}`
	w := newWorld(t)
	w.start()
	for i, test := range []struct{ why, entry, reported string }{
		{"core", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"x","coreAddon":true}`, `unknown field "coreAddon"`},
		{"core, by a field spelled otherwise", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"x","Name":"y"}`,
			`unknown field "Name"`},
		{"labels", `{"name":"bad","labels":{"a":"b"},"addonRef":{"name":"x"},"targetNamespace":"x"}`, `unknown field "labels"`},
		{"metadata", `{"name":"bad","metadata":{"namespace":"kube-system"},"addonRef":{"name":"x"},"targetNamespace":"x"}`,
			`unknown field "metadata"`},
		{"a foreign namespace", `{"name":"bad","namespace":"kube-system","addonRef":{"name":"x"},"targetNamespace":"x"}`,
			`unknown field "namespace"`},
		{"a namespace in the name", `{"name":"kube-system/bad","addonRef":{"name":"x"},"targetNamespace":"x"}`,
			`AddonInstallation "kube-system/bad": the API server refuses it (Invalid) because of metadata.name`},
		{"Secrets of the namespace", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"x","valuesFrom":[]}`,
			`unknown field "valuesFrom"`},
		{"more in the reference", `{"name":"bad","addonRef":{"name":"x","catalogue":"y"},"targetNamespace":"x"}`,
			`unknown field "addonRef.catalogue"`},
		{"a field twice", `{"name":"bad","name":"other","addonRef":{"name":"x"},"targetNamespace":"x"}`, `duplicate field "name"`},
		{"a value twice", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"x","values":{"a":1,"a":2}}`,
			`duplicate field "values.a"`},
		{"a wrong type", `{"name":"bad","addonRef":"x","targetNamespace":"x"}`, "a field has a value of the wrong type"},
		{"values that are no object", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"x","values":["secret"]}`,
			"a field has a value of the wrong type"},
		{"no object", `"bad"`, "a field has a value of the wrong type"},
		{"null", `null`, "name and addonRef.name and targetNamespace must be set"},
		{"nothing", `{}`, "name and addonRef.name and targetNamespace must be set"},
		{"what the schema refuses", `{"name":"bad","addonRef":{"name":"x"},"targetNamespace":"SECRET"}`,
			`AddonInstallation "bad": the API server refuses it (Invalid) because of spec.targetNamespace`},
		{"a range that can't be read", `{"name":"bad","addonRef":{"name":"x","version":">= one"},"targetNamespace":"x"}`,
			`AddonInstallation "bad": the API server refuses it (Invalid) because of spec.addonRef.version`},
		{"the same name twice", `{"name":"good","addonRef":{"name":"x"},"targetNamespace":"x"}`, `name "good" is used twice`},
	} {
		t.Run(test.why, func(t *testing.T) {
			w.t = t
			of := w.asking(fmt.Sprintf("hostile-%d", i), "["+good+","+test.entry+"]")
			w.expectKept(of, "["+test.entry+"]", "good")
			expect.Event(t, w.seed, of, v1.EventRequestRefused, v1.AnnotationInitialInstallations+": entry 1: "+test.reported+";", "annotation stays")
			if reported := w.refusals(of); strings.Contains(strings.ToLower(strings.Join(reported, " ")), "secret") {
				t.Errorf("what somebody wrote is told: %q", reported)
			}
		})
	}
	t.Run("no list", func(t *testing.T) {
		w.t = t
		for i, text := range []string{"{}", "[", good, `[] []`, "- name: good"} {
			of := w.asking(fmt.Sprintf("no-list-%d", i), text)
			expect.Event(t, w.seed, of, v1.EventRequestRefused, v1.AnnotationInitialInstallations, "not a JSON list", "annotation stays")
			w.expectKept(of, text)
			w.ask(of, "["+good+"]") // An edit is seen at once.
			w.expectKept(of, "", "good")
		}
	})
	t.Run("a name that is taken", func(t *testing.T) {
		w.t = t
		of := w.cluster("taken", "v1.36.3")
		theirs := &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{
			AddonRef: v1.AddonReference{Name: "theirs"}, TargetNamespace: "theirs",
		}}
		theirs.Namespace, theirs.Name = "cluster-"+of.Name, "good"
		expect.Create(w.t, w.seed, theirs)
		w.ask(of, "["+good+"]")
		expect.Event(t, w.seed, of, v1.EventRequestRefused, v1.AnnotationInitialInstallations, `entry 1: AddonInstallation "good"`, "already", "annotation stays")
		w.expectKept(of, "["+good+"]", "good")
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.Spec.AddonRef.Name != "theirs" {
			t.Errorf("it was changed: %+v, %v", theirs.Spec, err)
		}
	})
}

// expectKept waits until the annotation is that, and the Cluster's namespace has exactly these
// installations.
func (w *world) expectKept(of *kkpv1.Cluster, left string, names ...string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, of, func(object *kkpv1.Cluster) error {
		have := []string{}
		for _, item := range w.installations() {
			if item.Namespace == "cluster-"+of.Name {
				have = append(have, item.Name)
			}
			if item.Spec.CoreAddon || len(item.Labels) > 0 {
				return fmt.Errorf("something was smuggled in: %+v", item)
			}
		}
		if text := object.Annotations[v1.AnnotationInitialInstallations]; text != left || !slices.Equal(have, names) {
			return fmt.Errorf("the annotation is %q, want %q; installations %q, want %q", text, left, have, names)
		}
		return nil
	})
}

// Red when the pass that an own write brings tells the same refusal again, with another number of
// the entry or the same; red when what an edit leaves to refuse is not told.
func TestARefusedRequestIsReportedOnce(t *testing.T) {
	const bad = `{"name":"bad","labels":{},"addonRef":{"name":"x"},"targetNamespace":"x"}`
	w := newWorld(t)
	w.start()
	of := w.asking("once", `[{"name":"good","addonRef":{"name":"loki"},"targetNamespace":"logging"},`+bad+`]`)
	w.expectKept(of, "["+bad+"]", "good")
	w.status(of, func(status *kkpv1.ClusterStatus) { status.Versions.ControlPlane = "v1.37.1" }) // brings one more pass
	expect.Event(t, w.seed, of, v1.EventRequestRefused, v1.AnnotationInitialInstallations, `entry 1: unknown field "labels";`, "annotation stays")
	w.steady(func() error {
		if all := w.refusals(of); len(all) != 1 {
			return fmt.Errorf("one refusal is told as %q", all)
		}
		return nil
	})
	w.ask(of, "{}")
	expect.Event(t, w.seed, of, v1.EventRequestRefused, v1.AnnotationInitialInstallations, "not a JSON list", "annotation stays")
}

// refusals are the texts of a Cluster's refused requests, one for each time that they were told.
func (w *world) refusals(of *kkpv1.Cluster) (reported []string) {
	w.t.Helper()
	for _, item := range expect.Events(w.t, w.seed, of) {
		if item.Reason != v1.EventRequestRefused {
			continue
		}
		reported = append(reported, item.Note)
		for more := item.Series; more != nil && len(reported) < int(more.Count); {
			reported = append(reported, item.Note)
		}
	}
	return reported
}

// TestDiesWhileFollowing ends the controller after it made installations and before their entries
// are off the Cluster.
func TestDiesWhileFollowing(t *testing.T) {
	w := newWorld(t)
	of := w.asking("dying", `[{"name":"a","addonRef":{"name":"x"},"targetNamespace":"x"},{"name":"b","addonRef":{"name":"y"},"targetNamespace":"y"}]`)
	text := of.Annotations[v1.AnnotationInitialInstallations]
	direct, through, begun := w.reach, gate.New(t, fleet.Shared().Cluster("seed")), make(chan struct{})
	through.Watch("controller", gate.Guard{Before: func(call gate.Call) bool {
		if call.Method != http.MethodPatch || !strings.HasSuffix(call.Path, "/clusters/"+of.Name) {
			return true
		}
		<-begun
		w.cancel()
		return false
	}})
	w.reach = through.Config("controller")
	w.start()
	close(begun)
	w.ended()
	w.reach = direct
	w.expectAnswered(of, text, "a", "b")
	before := w.uids()

	w.start()
	w.expectAnswered(of, "", "a", "b")
	if diff := cmp.Diff(before, w.uids()); diff != "" {
		t.Errorf("installations were made anew:\n%s", diff)
	}
}

func (w *world) uids() map[string]string {
	w.t.Helper()
	uids := map[string]string{}
	for _, item := range w.installations() {
		uids[item.Name] = string(item.UID)
	}
	return uids
}
