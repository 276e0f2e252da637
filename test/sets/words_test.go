package sets_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// manifests have a ConfigMap that says which content is there, a ReplicaSet that is Ready where it has no pods, and, where they are asked
// for, one ConfigMap more and a claim.
const manifests = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {text: '{{ .Variables.text }}'}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: {{ .Variables.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
{{- if .Variables.more }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more}
{{- end }}
{{- if .Variables.claim }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
{{- end }}
`

// soak is how long a cluster is to be Ready before the next moves.
const soak = time.Second

// version has a text for content.
func (w *world) version(name, text string, change ...func(*v1.AddonVersion)) v1.AddonVersion {
	made := given.Version(name, given.Git(w.sources.GitURL+"/addons.git", ""))
	made.Source.Git.Ref, made.Values = &v1.GitRef{Commit: w.commit}, valuesOf(map[string]any{"text": text, "replicas": 0})
	for _, change := range change {
		change(&made)
	}
	return made
}

// broken content never gets Ready, and is rolled back.
func (w *world) broken(name, text string) v1.AddonVersion {
	return w.version(name, text, func(version *v1.AddonVersion) {
		version.Values = valuesOf(map[string]any{"text": text, "replicas": 1})
		version.Template.Atomic, version.Template.Timeout = true, &metav1.Duration{Duration: 3 * time.Second}
	})
}

func valuesOf(values map[string]any) *runtime.RawExtension {
	encoded, err := json.Marshal(values)
	if err != nil {
		panic(err) // of a test's own words
	}
	return &runtime.RawExtension{Raw: encoded}
}

// offer has the master's catalogue offer these versions of an add-on.
func (w *world) offer(kind v1.CatalogueType, addon string, versions ...v1.AddonVersion) {
	w.t.Helper()
	made := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: addon}}
	put(w, made, func(made *v1.AddonCatalogue) {
		made.Spec = v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{{Name: v1.AddonName(addon), Versions: versions}}}
	})
}

// set puts add-on web on every cluster of the test, amber first.
func (w *world) set(name string, change ...func(*v1.AddonSetSpec)) *v1.AddonSet {
	w.t.Helper()
	made := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
	all := intstr.FromString("100%")
	spec := v1.AddonSetSpec{
		Type: v1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{},
		Addons: []v1.AddonSetItem{{
			Name: "web", AddonRef: v1.AddonReference{Name: "web", Version: "1.x"}, TargetNamespace: w.target,
		}},
		Rollout: &v1.Rollout{
			Pace: v1.Pace{
				MaxConcurrency: &all, Soak: &metav1.Duration{Duration: soak}, ProgressDeadline: &metav1.Duration{Duration: time.Minute},
			},
			Groups: []v1.RolloutGroup{{
				Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "0"}},
			}},
		},
	}
	for _, change := range change {
		change(&spec)
	}
	put(w, made, func(made *v1.AddonSet) { made.Spec = spec })
	return made
}

// edit changes the spec of a set.
func (w *world) edit(of *v1.AddonSet, change func(*v1.AddonSetSpec)) {
	w.t.Helper()
	put(w, of, func(of *v1.AddonSet) { change(&of.Spec) })
}

// annotate sets an annotation of a set.
func (w *world) annotate(of *v1.AddonSet, name, value string) {
	w.t.Helper()
	put(w, of, func(of *v1.AddonSet) {
		if of.Annotations == nil {
			of.Annotations = map[string]string{}
		}
		of.Annotations[name] = value
	})
}

// says waits until the master's set says that, and what else is asked for.
func (w *world) says(of *v1.AddonSet, reason string, holds ...func(*v1.AddonSet) error) *v1.AddonSet {
	w.t.Helper()
	return expect.Object(w.t, w.master, of.DeepCopy(), func(found *v1.AddonSet) error {
		status := "False"
		if reason == v1.ReasonComplete {
			status = "True"
		}
		if err := expect.Condition(found, v1.ConditionReady, status, reason); err != nil {
			return err
		}
		if found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("generation %d is not observed", found.Generation)
		}
		for _, hold := range holds {
			if err := hold(found); err != nil {
				return err
			}
		}
		return nil
	})
}

// counts says what the set is to count.
func counts(want v1.ClusterCounts) func(*v1.AddonSet) error {
	return func(found *v1.AddonSet) error {
		if found.Status.Counts == nil || *found.Status.Counts != want {
			return fmt.Errorf("its counts are %+v, want %+v", found.Status.Counts, want)
		}
		return nil
	}
}

// installation of a name in a user cluster.
func (w *world) installation(cluster, name string) *v1.AddonInstallation {
	return &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: w.clusters[cluster].Status.NamespaceName, Name: name}}
}

// now is an installation as it is.
func (w *world) now(cluster, name string) *v1.AddonInstallation {
	w.t.Helper()
	found := w.installation(cluster, name)
	expect.Read(w.t, w.home(cluster), found)
	return found
}

// text is what a user cluster has of an installation; "" for nothing.
func (w *world) text(cluster string, of *v1.AddonInstallation) string {
	return w.settings(cluster, of).Data["text"]
}

func (w *world) settings(cluster string, of *v1.AddonInstallation) *corev1.ConfigMap {
	w.t.Helper()
	found := &corev1.ConfigMap{}
	at := client.ObjectKey{Namespace: of.Spec.TargetNamespace, Name: "settings"}
	if err := w.users[cluster].Get(w.t.Context(), at, found); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return found
}

// has waits until installations are Ready with that text in their user clusters.
func (w *world) has(name, text string, clusters ...string) {
	w.t.Helper()
	for _, cluster := range clusters {
		expect.Object(w.t, w.home(cluster), w.installation(cluster, name), func(found *v1.AddonInstallation) error {
			if have := w.text(cluster, found); have != text {
				return fmt.Errorf("%s has %q, want %q; it says %+v", cluster, have, text, found.Status.Conditions)
			}
			if found.Status.ObservedGeneration != found.Generation {
				return fmt.Errorf("generation %d is not observed", found.Generation)
			}
			return expect.Condition(found, v1.ConditionReady, "True", "")
		})
	}
}

// stateOf are what a set wrote to clusters, as a text.
func (w *world) stateOf(name string, clusters ...string) string {
	w.t.Helper()
	var text string
	for _, cluster := range clusters {
		found := w.now(cluster, name)
		text += fmt.Sprintf("%s %d %s %+v %q\n", cluster, found.Generation, found.Annotations[v1.AnnotationMoved], found.Spec.AddonRef,
			w.text(cluster, found))
	}
	return text
}

// stay fails the test where clusters are written, or their content changes.
func (w *world) stay(name string, clusters ...string) {
	w.t.Helper()
	w.unchanged(soak, func() string { return w.stateOf(name, clusters...) })
}

// unchanged fails the test where a state changes although a time goes by and the controllers of sets reconcile all sets after it. They do
// so twice: what the first reconciliation asks of the queue of clusters is on its way before the second one ends.
func (w *world) unchanged(after time.Duration, state func() string) {
	w.t.Helper()
	begin, before := time.Now(), state()
	expect.Eventually(w.t, after+expect.Patience, func() error {
		if past := time.Since(begin); past < after {
			return fmt.Errorf("only %s are past", past)
		}
		return nil
	})
	for range 2 {
		for _, one := range w.seeds {
			one.lookAgain()
		}
	}
	if now := state(); now != before {
		w.t.Fatalf("there is now\n%safter\n%s", now, before)
	}
}

// inOrder fails the test where others were written before the first was Ready for the soak time.
func (w *world) inOrder(name, first string, others ...string) {
	w.t.Helper()
	canary := w.now(first, name)
	done := movedAt(w.t, canary)
	for _, at := range []metav1.Time{
		*canary.Status.LastApplied.Time, meta.FindStatusCondition(canary.Status.Conditions, v1.ConditionReady).LastTransitionTime,
	} {
		if at.After(done) {
			done = at.Time
		}
	}
	for _, cluster := range others {
		if moved := movedAt(w.t, w.now(cluster, name)); moved.Before(done.Add(soak)) {
			w.t.Errorf("%s was written at %s, %s was done at %s", cluster, moved, first, done)
		}
	}
}

func movedAt(t testing.TB, of *v1.AddonInstallation) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, of.Annotations[v1.AnnotationMoved])
	expect.NoError(t, err)
	return at
}

// saysOf waits until an installation has these conditions, as type and reason.
func (w *world) saysOf(cluster, name string, reasons ...[2]string) *v1.AddonInstallation {
	w.t.Helper()
	return expect.Object(w.t, w.home(cluster), w.installation(cluster, name), func(found *v1.AddonInstallation) error {
		for _, one := range reasons {
			if reported := meta.FindStatusCondition(found.Status.Conditions, one[0]); reported == nil || reported.Reason != one[1] {
				return fmt.Errorf("%s of %s is %+v, want %s", one[0], cluster, reported, one[1])
			}
		}
		return nil
	})
}

// patch an object of the platform.
func (w *world) patch(object client.Object, content string) {
	w.t.Helper()
	expect.Merge(w.t, w.master, object, []byte(content))
}
