package addonset_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestAnItemWaitsForThePlatformsValuesAndIsGrantedThem fails when an item is installed although the platform's values
// are missing, or when an installation gets no valid grant.
func TestAnItemWaitsForThePlatformsValuesAndIsGrantedThem(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.useKey()
	w.offers("web", "1.0.0")
	w.start()
	set := w.write(w.set("monitoring", atOnce, sharing))
	w.open(set, 1)
	expect.Object(t, w.seed, copyOf(set), func(found *v1.AddonSet) error {
		for _, one := range found.Status.Clusters {
			if one.Reason == v1.ReasonValuesMissing {
				return nil
			}
		}
		return fmt.Errorf("nobody is told: %+v", found.Status.Clusters)
	})
	if made := len(w.installed("web")); made != 0 {
		t.Errorf("%d installations without values", made)
	}
	w.shares("values.yaml", "password: canary-string")
	w.open(set, 1)
	expect.Eventually(t, expect.Patience, func() error {
		w.open(set, 1)
		for _, live := range w.installed("web") {
			if _, isGranted := w.marks.Granted(live); isGranted {
				return nil
			}
		}
		return fmt.Errorf("nothing is granted")
	})
}

// sharing makes a set's item name the platform's Secret.
func sharing(of *v1.AddonSet) {
	of.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
}

// shares writes the platform's Secret as the distributor does.
func (w *world) shares(key, content string) {
	w.t.Helper()
	w.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared", Labels: map[string]string{v1.LabelUse: v1.UseValues}},
		Data:       map[string][]byte{key: []byte(content)},
	})
}

// granted are the digests of the values that installations of web may have, by cluster. It fails the test if anything
// reveals their content.
func (w *world) granted() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for name, live := range w.installed("web") {
		if grant, isGranted := w.marks.Granted(live); isGranted {
			found[name] = grant.Content
		}
		if text, err := json.Marshal(live); err != nil || strings.Contains(string(text), "canary-string") {
			w.t.Errorf("the installation in %s tells the platform's values, %v: %s", name, err, text)
		}
	}
	return found
}

// with are the clusters whose web may have values of that digest, in order.
func (w *world) with(content string) []string {
	w.t.Helper()
	var names []string
	found := w.granted()
	for _, name := range w.names {
		if found[name] == content {
			names = append(names, name)
		}
	}
	return names
}

// TestValuesOfThePlatformAreForTheSetsThatTheyName (F7) fails when a set has values of a Secret whose copy is for
// other sets: its copy may be older than the Secret.
func TestValuesOfThePlatformAreForTheSetsThatTheyName(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.useKey()
	copied := func(sets string) {
		w.put(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.catalogue, Name: "shared", Labels: map[string]string{v1.LabelUse: v1.UseValues},
				Annotations: map[string]string{v1.AnnotationUsedBy: sets},
			},
			Data: map[string][]byte{"values.yaml": []byte("password: canary-string")},
		})
	}
	copied("AddonSet/other,AddonSet/tools-2")
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", sharing))
	w.start()
	w.says(of, v1.ReasonBlocked)
	if found := w.installed("web"); len(found) != 0 {
		t.Errorf("installed: %v", found)
	}
	copied("AddonSet/tools")
	w.says(of, v1.ReasonComplete, current(1))
	if with := w.with(w.marks.ValuesDigest("shared", "values.yaml", []byte("password: canary-string"))); !slices.Equal(with, w.names) {
		t.Errorf("%q have the values", with)
	}
}

// TestChangedValuesOfThePlatformRollByGroups: only a Secret changes. The test fails when that is no revision, when it
// reaches a cluster before its group is open, when an installation with the previous values counts as done, when it
// takes more than one write, or when an item that no longer names a Secret keeps its grant.
func TestChangedValuesOfThePlatformRollByGroups(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.useKey()
	w.shares("values.yaml", "password: canary-string")
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", sharing))
	w.start()
	w.says(of, v1.ReasonRollingOut, current(1))
	w.open(of, 2)
	first := w.says(of, v1.ReasonComplete, current(3)).Status.Revision
	previous := w.marks.ValuesDigest("shared", "values.yaml", []byte("password: canary-string"))
	if with := w.with(previous); !slices.Equal(with, w.names) {
		t.Fatalf("%q have the values", with)
	}
	w.quiet()

	before := w.writes.Load()
	w.shares("values.yaml", "password: canary-string-2")
	newer := w.marks.ValuesDigest("shared", "values.yaml", []byte("password: canary-string-2"))
	halfway := expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		if found.Status.Revision == first || found.Status.Counts == nil || found.Status.Counts.Current != 1 {
			return fmt.Errorf("revision %q, counts %+v", found.Status.Revision, found.Status.Counts)
		}
		return nil
	})
	if with := w.with(newer); !slices.Equal(with, w.names[:1]) {
		t.Errorf("%q have the new values before their group is open", with)
	}
	if with := w.with(previous); !slices.Equal(with, w.names[1:]) {
		t.Errorf("%q have the former values", with)
	}
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(3))
	if with := w.with(newer); !slices.Equal(with, w.names) {
		t.Errorf("%q have the new values", with)
	}
	if written := w.writes.Load() - before; written != 3 {
		t.Errorf("%d writes for 3 clusters", written)
	}
	if text, err := json.Marshal(halfway); err != nil || strings.Contains(string(text), "canary-string") {
		t.Errorf("the set tells the platform's values, %v: %s", err, text)
	}

	of.Spec.Addons[0].PlatformSecretRef = nil
	w.write(of)
	w.open(of, 2)
	expect.Eventually(t, expect.Patience, func() error {
		w.open(of, 2)
		for name, live := range w.installed("web") {
			if text, has := live.Annotations[v1.AnnotationPlatformValues]; has {
				return fmt.Errorf("%s still has %q", name, text)
			}
		}
		return nil
	})
	w.says(of, v1.ReasonComplete, current(3))
}

// TestValuesOfThePlatformGoOverWithTheirInstallation: a set with a higher priority claims an installation of another
// set, with the same values of the platform. The test fails when the grant is still that of the other set, or comes
// with a separate write, when the installation is recreated, or when the values are lost once the other set is
// changed to have none.
func TestValuesOfThePlatformGoOverWithTheirInstallation(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.useKey()
	w.shares("values.yaml", "password: canary-string")
	w.offers("web", "1.0.0")
	before := w.write(w.set("before", atOnce, sharing))
	w.start()
	granted := func() error {
		if with := w.with(w.marks.ValuesDigest("shared", "values.yaml", []byte("password: canary-string"))); !slices.Equal(with, w.names) {
			return fmt.Errorf("%q have the values", with)
		}
		return nil
	}
	w.says(before, v1.ReasonComplete, current(2))
	expect.Eventually(t, expect.Patience, granted)
	was, written := w.installed("web"), w.writes.Load()
	after := w.write(w.set("after", atOnce, sharing, func(of *v1.AddonSet) { of.Spec.Priority = 1 }))
	for _, name := range w.names {
		w.goesOver("web", name, "after")
	}
	expect.Eventually(t, expect.Patience, granted)
	w.says(after, v1.ReasonComplete, current(2))
	w.edit(before, func(of *v1.AddonSet) { of.Spec.Addons[0].PlatformSecretRef = nil })
	w.says(before, v1.ReasonComplete)
	w.quiet()
	if err := granted(); err != nil || w.writes.Load()-written != 2 {
		t.Errorf("after %d writes for 2 clusters: %v", w.writes.Load()-written, err)
	}
	for name, one := range w.installed("web") {
		if one.UID != was[name].UID || one.Labels[v1.LabelSet] != "after" || !one.DeletionTimestamp.IsZero() {
			t.Errorf("in %s it is %s of set %q, was %s", name, one.UID, one.Labels[v1.LabelSet], was[name].UID)
		}
	}
}

// TestValuesOfThePlatformThatAreAwayChangeNothing: a process starts while the Secret does not exist, or has another
// key. The test fails when that is a revision, when anything is written, or when it is not reported with the names.
func TestValuesOfThePlatformThatAreAwayChangeNothing(t *testing.T) {
	w := newWorld(t, 2, 1)
	w.useKey()
	w.shares("values.yaml", "password: canary-string")
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools", atOnce, sharing))
	stop := w.start()
	expect.Eventually(t, expect.Patience, func() error {
		w.open(of, 1)
		if granted := w.granted(); len(granted) != 2 {
			return fmt.Errorf("%v have values", granted)
		}
		return nil
	})
	revision := w.says(of, v1.ReasonComplete, current(2)).Status.Revision
	stop()
	before := w.writes.Load()
	expect.Delete(t, w.seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared"}})
	w.start()
	missing := w.reports(of, `Secret "shared" with label`)
	w.shares("other", "password: canary-string")
	other := w.reports(of, `no key "values.yaml"`)
	if missing.Status.Revision != revision || other.Status.Revision != revision {
		t.Errorf("revisions %q and %q after %q", missing.Status.Revision, other.Status.Revision, revision)
	}
	w.shares("values.yaml", "password: canary-string")
	found := w.says(of, v1.ReasonComplete, current(2), func(counts v1.ClusterCounts) bool { return counts.Blocked == 0 })
	if written := w.writes.Load() - before; written != 0 || found.Status.Revision != revision {
		t.Errorf("%d writes, revision %q after %q", written, found.Status.Revision, revision)
	}
}

// reports waits until the status of a set reports missing values, with this message.
func (w *world) reports(of *v1.AddonSet, words string) *v1.AddonSet {
	w.t.Helper()
	return expect.Object(w.t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		for _, one := range found.Status.Clusters {
			if one.Reason == v1.ReasonValuesMissing && strings.Contains(one.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("its clusters are %+v", found.Status.Clusters)
	})
}
