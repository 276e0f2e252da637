package endtoend_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// setStory is what becomes of a set on four user clusters, as the API servers tell it.
const setStory = `paused, it tells: Blocked 1, Install 1.0.0 3; dune Blocked NameTaken; none of its installations is there
it goes: amber first; amber, birch, cedar have 1.0.0
a new version in range: amber first; amber, birch, cedar have 1.1.0
a version whose Pod can't run: Halted; amber Failed; amber, birch, cedar have 1.1.0, and birch and cedar are as they were
the fix: amber first; amber, birch, cedar have 1.2.1
birch is not selected any more: nothing of it is there; amber, cedar have 1.2.1
without a confirmation the set is not deleted
confirmed, it goes: nothing of it is there; dune has 1.0.0, made by hand
`

// board is the set, its item, its add-on, and the namespace in user clusters.
const board = "board"

// boardSoak is how long the first cluster is to be Ready before others move.
const boardSoak = time.Second

// sets gathers what is seen of a set.
type sets struct {
	t        *testing.T
	box      *sandbox.Sandbox
	reported strings.Builder
}

func (s *sets) report(format string, arguments ...any) {
	fmt.Fprintf(&s.reported, format+"\n", arguments...)
}

// testSetStory: a set tells before it does, moves the ring's first cluster first, halts there, leaves alone what others made, and
// leaves nothing behind. It turns red when a group opens before the one before it is done and soaked, when a halt lets the rest
// move, when a name that is taken is taken over, and when a removal leaves something.
func testSetStory(t *testing.T, box *sandbox.Sandbox) {
	s := &sets{t: t, box: box}
	clusters := sandbox.UserClusters()
	canary, leaver, stayer, byHand := clusters[0], clusters[1], clusters[2], clusters[3]
	all := []sandbox.UserCluster{canary, leaver, stayer}
	s.offer("1.0.0")
	expect.Ensure(t, box.Client(byHand.Seed), handMade(byHand))
	expect.Ensure(t, box.Client(sandbox.Master), boardSet())
	s.report("paused, it tells: %s; none of its installations is there", s.preview())

	s.edit(`{"spec":{"paused":false}}`)
	s.report("it goes: %s", s.rolled("1.0.0", all))
	s.offer("1.0.0", "1.1.0")
	s.report("a new version in range: %s", s.rolled("1.1.0", all))

	before := []string{s.request(leaver), s.request(stayer)}
	s.offer("1.0.0", "1.1.0", brokenBoard)
	s.report("a version whose Pod can't run: %s; %s, and birch and cedar are as they were", s.halted(), s.have("1.1.0", all))
	if after := []string{s.request(leaver), s.request(stayer)}; !slices.Equal(before, after) {
		t.Errorf("the halted set wrote the rest: %q, before %q", after, before)
	}
	s.offer("1.0.0", "1.1.0", "1.2.1")
	s.report("the fix: %s", s.rolled("1.2.1", all))

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+sandbox.LabelRing+`":null}}}`))
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: leaver.Name}}
	expect.Patch(t, box.Client(leaver.Seed), cluster, patch)
	s.gone(leaver)
	s.report("%s is not selected any more: nothing of it is there; %s", leaver.Name, s.have("1.2.1", []sandbox.UserCluster{canary, stayer}))
	s.remove()
	s.gone(canary)
	s.gone(stayer)
	s.report("confirmed, it goes: nothing of it is there; %s, made by hand", s.have("1.0.0", []sandbox.UserCluster{byHand}))
	dropInstallation(t, box.Client(byHand.Seed), handMade(byHand))
	if diff := cmp.Diff(setStory, s.reported.String()); diff != "" {
		t.Errorf("the story (-want +got):\n%s", diff)
	}
}

// preview waits until the paused set tells what it would do.
func (s *sets) preview() string {
	s.t.Helper()
	var text string
	expect.Object(s.t, s.box.Client(sandbox.Master), boardSet(), func(set *kubermaticv1.AddonSet) error {
		clusters := map[string]int32{}
		for _, one := range set.Status.Pending {
			clusters[strings.TrimSpace(string(one.Change)+" "+pendingTo(one))] += one.Clusters
		}
		var parts []string
		for change, count := range clusters {
			parts = append(parts, fmt.Sprintf("%s %d", change, count))
		}
		slices.Sort(parts)
		text = strings.Join(parts, ", ")
		for _, one := range set.Status.Clusters {
			text += fmt.Sprintf("; %s %s %s", one.Name, one.State, one.Reason)
		}
		if clusters["Install 1.0.0"] != 3 || clusters["Blocked"] != 1 || len(set.Status.Clusters) != 1 {
			return fmt.Errorf("it tells %s", text)
		}
		return expect.Condition(set, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonPaused)
	})
	for _, seed := range sandbox.Seeds() {
		made := &kubermaticv1.AddonInstallationList{}
		err := s.box.Client(seed).List(s.t.Context(), made, client.MatchingLabels{kubermaticv1.LabelSet: board})
		if err != nil || len(made.Items) > 0 {
			s.t.Errorf("the paused set made %d installations on %s: %v", len(made.Items), seed, err)
		}
	}
	return text
}

// pendingTo is the version of a change that is carried out.
func pendingTo(change kubermaticv1.PendingChange) string {
	if change.Change == kubermaticv1.ChangeBlocked {
		return ""
	}
	return change.To
}

// rolled waits until the set is complete, and compares when the first cluster was done with when the others were written.
func (s *sets) rolled(version string, clusters []sandbox.UserCluster) string {
	s.t.Helper()
	expect.Eventually(s.t, 2*expect.Patience, func() error {
		for _, cluster := range clusters {
			if err := s.has(version, cluster); err != nil {
				return err
			}
		}
		set := boardSet()
		if err := s.box.Client(sandbox.Master).Get(s.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		return expect.Condition(set, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonComplete)
	})
	first := s.installation(clusters[0])
	done := s.moved(first)
	for _, at := range []metav1.Time{
		*first.Status.LastApplied.Time, meta.FindStatusCondition(first.Status.Conditions, kubermaticv1.ConditionReady).LastTransitionTime,
	} {
		if at.After(done) {
			done = at.Time
		}
	}
	for _, cluster := range clusters[1:] {
		if moved := s.moved(s.installation(cluster)); moved.Before(done.Add(boardSoak)) {
			s.t.Errorf("%s was written at %s, %s was done at %s", cluster.Name, moved, clusters[0].Name, done)
		}
	}
	return clusters[0].Name + " first; " + s.have(version, clusters)
}

// halted waits until the set halts, and names the clusters that failed.
func (s *sets) halted() string {
	s.t.Helper()
	var failed string
	expect.Object(s.t, s.box.Client(sandbox.Master), boardSet(), func(set *kubermaticv1.AddonSet) error {
		failed = ""
		for _, one := range set.Status.Clusters {
			if one.State == kubermaticv1.ClusterFailed {
				failed += "; " + one.Name + " " + string(one.State)
			}
		}
		return expect.Condition(set, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonHalted)
	})
	return kubermaticv1.ReasonHalted + failed
}

// have fails the test where a cluster has not that version, applied, now.
func (s *sets) have(version string, clusters []sandbox.UserCluster) string {
	s.t.Helper()
	var names []string
	for _, cluster := range clusters {
		names = append(names, cluster.Name)
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.installation(cluster).Spec.TargetNamespace, Name: board}}
		err := s.box.Client(cluster.Name).Get(s.t.Context(), client.ObjectKeyFromObject(settings), settings)
		if err != nil || settings.Data["version"] != version {
			s.t.Errorf("%s has version %q, want %q: %v", cluster.Name, settings.Data["version"], version, err)
		}
	}
	verb := " have "
	if len(names) == 1 {
		verb = " has "
	}
	return strings.Join(names, ", ") + verb + version
}

// has is nil where an installation is Ready at a version.
func (s *sets) has(version string, cluster sandbox.UserCluster) error {
	found := handMade(cluster)
	if err := s.box.Client(cluster.Seed).Get(s.t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		return err
	}
	if found.Status.Version != version {
		return fmt.Errorf("%s has version %q", cluster.Name, found.Status.Version)
	}
	return expect.Condition(found, kubermaticv1.ConditionReady, "True", "")
}

// gone waits until nothing of the set is in a cluster.
func (s *sets) gone(cluster sandbox.UserCluster) {
	s.t.Helper()
	expect.Gone(s.t, s.box.Client(cluster.Seed), handMade(cluster))
	expect.Gone(s.t, s.box.Client(cluster.Name), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: board}})
}

// remove deletes the set, which takes a confirmation.
func (s *sets) remove() {
	s.t.Helper()
	master, set := s.box.Client(sandbox.Master), boardSet()
	err := master.Delete(s.t.Context(), set)
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		s.t.Fatalf("deleting without a confirmation: %v", err)
	}
	s.report("without a confirmation the set is not deleted")
	s.edit(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, kubermaticv1.AnnotationConfirmDeletion, board))
	expect.Delete(s.t, master, set)
	expect.Gone(s.t, master, set)
	for _, seed := range sandbox.Seeds() {
		copied := boardSet()
		copied.Namespace = sandbox.CatalogueNamespace
		expect.Gone(s.t, s.box.Client(seed), copied)
	}
}

func (s *sets) edit(patch string) {
	s.t.Helper()
	err := s.box.Client(sandbox.Master).Patch(s.t.Context(), boardSet(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	expect.NoError(s.t, err)
}

func (s *sets) installation(cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	s.t.Helper()
	found := handMade(cluster)
	expect.Read(s.t, s.box.Client(cluster.Seed), found)
	return found
}

// request is what was written to a cluster, and when.
func (s *sets) request(cluster sandbox.UserCluster) string {
	s.t.Helper()
	found := s.installation(cluster)
	ready := meta.IsStatusConditionTrue(found.Status.Conditions, kubermaticv1.ConditionReady)
	return fmt.Sprintf("%s %s, generation %d, Ready %v",
		cluster.Name, found.Annotations[kubermaticv1.AnnotationMoved], found.Generation, ready)
}

func (s *sets) moved(installation *kubermaticv1.AddonInstallation) time.Time {
	s.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, installation.Annotations[kubermaticv1.AnnotationMoved])
	expect.NoError(s.t, err)
	return at
}

// handMade is an installation of the item's name that a user makes; in other clusters it stands for the set's by its name.
func handMade(cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	installation := newInstallation(board, board)
	installation.Namespace, installation.Spec.AddonRef.Version, installation.Spec.TargetNamespace = cluster.Namespace(), "1.0.0", "mine"
	return installation
}

func boardSet() *kubermaticv1.AddonSet {
	ring := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: sandbox.LabelRing, Operator: operator, Values: values},
		}}
	}
	everything := intstr.FromString("100%")
	return &kubermaticv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: board},
		Spec: kubermaticv1.AddonSetSpec{
			Paused: true, ClusterSelector: ring(metav1.LabelSelectorOpExists),
			Addons: []kubermaticv1.AddonSetItem{{
				Name: board, AddonRef: kubermaticv1.AddonReference{Name: board, Version: "1.x"}, TargetNamespace: board, CreateNamespace: true,
			}},
			Rollout: &kubermaticv1.Rollout{
				Pace:   kubermaticv1.Pace{MaxConcurrency: &everything, Soak: &metav1.Duration{Duration: boardSoak}},
				Groups: []kubermaticv1.RolloutGroup{{Name: "canary", ClusterSelector: ring(metav1.LabelSelectorOpIn, "0")}},
			},
		},
	}
}

// brokenBoard is the version that never gets healthy: nobody places its Pod.
const brokenBoard = "1.2.0"

// offer makes the catalogue have these versions, the broken one with a rollback.
func (s *sets) offer(versions ...string) {
	s.t.Helper()
	var offered []kubermaticv1.AddonVersion
	for _, version := range versions {
		files := map[string]string{
			"Chart.yaml":           "apiVersion: v2\nname: board\nversion: " + version + "\n",
			"templates/board.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: board}\ndata: {version: " + version + "}\n",
		}
		one := chartVersion(s.box, board, version)
		one.Version = version
		if version == brokenBoard {
			files["templates/idle.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: idle}\n" +
				"spec: {schedulerName: nobody, containers: [{name: idle, image: registry.example/idle}]}\n"
			one.Template.Atomic, one.Template.Timeout = true, &metav1.Duration{Duration: 5 * time.Second}
		}
		expect.NoError(s.t, s.box.Sources.Chart(files))
		offered = append(offered, one)
	}
	master, catalogue := s.box.Client(sandbox.Master), catalogueOf(board, offered[0])
	expect.Ensure(s.t, master, catalogue)
	expect.Read(s.t, master, catalogue)
	catalogue.Spec.Addons[0].Versions = offered
	expect.Update(s.t, master, catalogue)
}
