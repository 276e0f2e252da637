package crash_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
)

// several makes subjects of one story, installed by one controller that goes on serving them.
func (p *platform) several(t *testing.T, story string, count int) ([]*subject, *fleet.Process) {
	t.Helper()
	var all []*subject
	for range count {
		all = append(all, p.newSubject(t, story))
	}
	for _, one := range all {
		one.install(t, "probe", "1.0.0")
	}
	process := p.start(t, story, map[string]string{labelStory: story})
	for _, one := range all {
		one.settle(t, process, "1.0.0")
	}
	return all, process
}

// value is that of ConfigMap settings in the user cluster; "" where it is gone.
func (s *subject) value(t *testing.T) string {
	t.Helper()
	settings := &corev1.ConfigMap{}
	err := s.user.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: "settings"}, settings)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return settings.Data["value"]
}

// expectWithoutTrace waits until an installation is let go, and sees that nothing is left of it anywhere.
func (s *subject) expectWithoutTrace(t *testing.T) {
	t.Helper()
	expect.Gone(t, s.seed, s.installation())
	if left := s.state(t); len(left) > 0 {
		t.Errorf("after the removal there are %v", left)
	}
}

// expectLeft waits until an installation is let go, and sees that its objects stand as they did.
func (s *subject) expectLeft(t *testing.T) {
	t.Helper()
	expect.Gone(t, s.seed, s.installation())
	if value := s.value(t); value != "1.0.0" {
		t.Errorf("%s was let go, and its settings are %q", s.name, value)
	}
}

// soon is less than the five minutes after which a failed call is tried again: nothing here waits for that.
const soon = 4 * time.Minute

// RS19: While its cluster can't be reached, an installation that is deleted keeps its finalizer and
// its record, and says why; it ends when the cluster is back. Red when a failed connection lets it
// go. With deletionPolicy Orphan it is let go at once, and so it is when its Cluster is deleted, or
// is gone: without a call to the user cluster. Red when the removal connects before it looks at
// policy and Cluster: nothing goes.
func TestRemovalWaitsForAnUnreachableCluster(t *testing.T) {
	p := newStocked(t)
	all, process := p.several(t, "unreachable", 4)
	patient, orphan, deleted, vanished := all[0], all[1], all[2], all[3]
	orphan.edit(t, `{"spec":{"deletionPolicy":"Orphan"}}`)
	deleted.holdCluster(t, true)
	p.userGate.Shut()
	for _, one := range []*subject{patient, deleted, vanished} {
		one.remove(t)
		one.expectUnreachable(t)
		one.expectKept(t)
	}
	begin := time.Now()
	orphan.remove(t)
	orphan.expectLeft(t)
	if left := orphan.recordSecrets(t); left > 0 {
		t.Errorf("%d records are left of what was orphaned", left)
	}
	deleted.deleteCluster(t)
	vanished.deleteCluster(t)
	deleted.expectLeft(t)
	vanished.expectLeft(t)
	if took := time.Since(begin); took > soon {
		t.Errorf("they were let go after %s", took)
	}
	deleted.holdCluster(t, false)
	patient.expectKept(t)
	expect.NoError(t, p.userGate.Open(t.Context()))
	patient.settle(t, process, "")
	patient.expectWithoutTrace(t)
	for _, one := range []*subject{orphan, deleted, vanished} {
		if value := one.value(t); value != "1.0.0" {
			t.Errorf("%s lost its objects once the cluster was back", one.name)
		}
	}
}

// RS20: Cluster, installation and namespace are deleted together in every order; as KKP does, the
// Cluster stays until its namespace is gone. The namespace ends, whatever came first. Red when a
// Cluster that is being deleted is still connected to for a removal: it waits for a kubeconfig that
// went with the namespace.
func TestClusterAndInstallationsGoInEveryOrder(t *testing.T) {
	p := newStocked(t)
	orders := permutations([]string{"cluster", "installation", "namespace"})
	all, _ := p.several(t, "together", len(orders))
	begin := time.Now()
	for i, order := range orders {
		all[i].holdCluster(t, true)
		for _, what := range order {
			all[i].deleteIts(t, what)
		}
	}
	for i, order := range orders {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			expect.Gone(t, p.seed, all[i].installation())
			expect.Gone(t, p.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: all[i].namespace()}})
			all[i].holdCluster(t, false)
			expect.Gone(t, p.seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: all[i].name}})
		})
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("everything was gone after %s", took)
	}
}

// deleteIts deletes one of the three; it may have gone with another one.
func (s *subject) deleteIts(t *testing.T, what string) {
	t.Helper()
	object := map[string]client.Object{
		"cluster":      &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		"installation": s.installation(),
		"namespace":    &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace()}},
	}[what]
	expect.NoError(t, client.IgnoreNotFound(s.seed.Delete(t.Context(), object)))
}

func permutations(of []string) (all [][]string) {
	if len(of) == 0 {
		return [][]string{nil}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}

// RS10: What is not decided lets nothing go: the cache knows no Cluster of the namespace any more,
// first while the seed does not answer for the Cluster, then while it says that it exists. Red when
// an error of that look counts as gone, and when a Cluster that exists does.
func TestUndecidedReadRemovesNothing(t *testing.T) {
	p := newStocked(t)
	s, process := p.installed(t, "probe", "1.0.0")
	asked := make(chan struct{}, 1)
	p.seedGate.Watch(s.name, gate.Guard{Before: func(call gate.Call) bool {
		if call.Method != http.MethodGet || !strings.HasSuffix(call.Path, "/clusters/"+s.name) {
			return true
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		return false
	}})
	s.belongTo(t, "")
	s.remove(t)
	s.expectReady(t, "False", kubermaticv1.ReasonFailed)
	<-asked
	s.expectKept(t)
	p.seedGate.Watch(s.name, gate.Guard{})
	s.expectReady(t, "False", kubermaticv1.ReasonClusterUnknown)
	s.expectKept(t)
	s.belongTo(t, s.namespace())
	s.settle(t, process, "")
	s.expectWithoutTrace(t)
}

// belongTo says which namespace the Cluster has.
func (s *subject) belongTo(t *testing.T, namespace string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"namespaceName":%q}}`, namespace)
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	expect.PatchStatus(t, s.seed, cluster, client.RawPatch("application/merge-patch+json", patch))
}

// pauseCluster sets spec.pause.
func (s *subject) pauseCluster(t *testing.T, paused bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"pause":%t}}`, paused)
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	expect.Merge(t, s.seed, cluster, patch)
}

// What an installation was told before it is deleted. Each turns red when its word is not heeded: the objects of the
// orphaned one go, the upgrade of the paused one and of the one with strategy Once is applied, the one of a paused Cluster
// is removed, the namespace that was there before goes.
func TestDeletionHeedsWhatWasSaid(t *testing.T) {
	p := newStocked(t)
	before := p.newSubject(t, "heeded")
	expect.Create(t, p.user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: before.name}})
	before.install(t, "probe", "1.0.0")
	all, process := p.several(t, "heeded", 5)
	before.settle(t, process, "1.0.0")
	orphan, once, paused, held, let := all[0], all[1], all[2], all[3], all[4]

	t.Run("orphaned, its objects stay", func(t *testing.T) {
		orphan.edit(t, `{"spec":{"deletionPolicy":"Orphan"}}`)
		orphan.remove(t)
		orphan.expectLeft(t)
	})
	t.Run("once, it changes no more and is removed", func(t *testing.T) {
		once.edit(t, `{"spec":{"reconcileStrategy":"Once"}}`)
		once.settle(t, process, "1.0.0")
		once.edit(t, `{"spec":{"addonRef":{"version":"2.0.0"}}}`)
		once.settle(t, process, "1.0.0") // at rest, and not on its way to the other version
		if value := once.value(t); value != "1.0.0" {
			t.Errorf("the settings are %q", value)
		}
		once.remove(t)
		once.expectWithoutTrace(t)
	})
	t.Run("paused, it changes no more and is removed", func(t *testing.T) {
		paused.edit(t, `{"spec":{"paused":true,"addonRef":{"version":"2.0.0"}}}`)
		paused.expectReady(t, "False", kubermaticv1.ReasonPaused)
		if value := paused.value(t); value != "1.0.0" {
			t.Errorf("the settings are %q", value)
		}
		paused.remove(t)
		paused.expectWithoutTrace(t)
	})
	t.Run("of a paused cluster, it waits", func(t *testing.T) {
		held.pauseCluster(t, true)
		held.expectReady(t, "False", kubermaticv1.ReasonPaused)
		held.remove(t)
		held.expectSeen(t)
		held.expectKept(t)
		held.pauseCluster(t, false)
		held.expectWithoutTrace(t)
	})
	t.Run("of a paused cluster that is deleted, it is let go", func(t *testing.T) {
		let.holdCluster(t, true)
		let.pauseCluster(t, true)
		let.expectReady(t, "False", kubermaticv1.ReasonPaused)
		let.deleteCluster(t)
		let.remove(t)
		let.expectLeft(t)
		let.holdCluster(t, false)
	})
	t.Run("a namespace that was there before stays", func(t *testing.T) {
		before.remove(t)
		expect.Gone(t, p.seed, before.installation())
		left := before.state(t)
		if len(left) != 1 || left["Namespace /NAME"] == "" || strings.Contains(left["Namespace /NAME"], "OWNER") {
			t.Errorf("after the removal there are %v", left)
		}
	})
}

// expectSeen waits until the controller has seen the present generation.
func (s *subject) expectSeen(t *testing.T) {
	t.Helper()
	expect.Object(t, s.seed, s.installation(), func(found *kubermaticv1.AddonInstallation) error {
		if found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("generation %d of %d was seen", found.Status.ObservedGeneration, found.Generation)
		}
		return nil
	})
}
