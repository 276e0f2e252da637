package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
)

// expectReady waits until condition Ready has the status and the reason at the present generation, and gives its message.
func (s *subject) expectReady(t *testing.T, status, reason string) string {
	t.Helper()
	message := ""
	expect.Object(t, s.seed, s.installation(), func(found *kubermaticv1.AddonInstallation) error {
		if err := expect.Condition(found, kubermaticv1.ConditionReady, status, reason); err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == kubermaticv1.ConditionReady {
				message = condition.Message
			}
		}
		return nil
	})
	return message
}

// expectUnreachable waits until the installation says that its cluster can't be reached.
func (s *subject) expectUnreachable(t *testing.T) {
	t.Helper()
	s.expectReady(t, "Unknown", kubermaticv1.ReasonClusterUnreachable)
}

// settle waits until the subject's own controller has brought it to the version.
func (s *subject) settle(t *testing.T, process *fleet.Process, version string) {
	t.Helper()
	await(t, func() error { return errors.Join(process.Failure(), s.unsettled(t, version)) })
}

// installed has an installation brought to the version by a controller of its own.
func (p *platform) installed(t *testing.T, addon, version string) (*subject, *fleet.Process) {
	t.Helper()
	s := p.newSubject(t, "alone")
	s.install(t, addon, version)
	process := s.controller(t)
	s.settle(t, process, version)
	return s, process
}

// edit changes the installation.
func (s *subject) edit(t *testing.T, patch string) {
	t.Helper()
	expect.Merge(t, s.seed, s.installation(), []byte(patch))
}

// RS01: The API server of the user cluster is killed in the middle of the first stage, and of the
// third: the installation goes on once it is back, and nothing tells it from one that was left in
// peace. Red when the objects of a call that failed count as written: they are missing in the end.
func TestRolloutGoesOnAfterItsServerWasKilled(t *testing.T) {
	p := newStocked(t)
	clean, process := p.installed(t, "probe", "1.0.0")
	process.Kill()
	want := clean.state(t)
	server := fleet.Shared().Cluster(userName)
	for _, at := range []string{"/customresourcedefinitions/", "/deployments/"} {
		t.Run(strings.Trim(at, "/"), func(t *testing.T) {
			one := p.newSubject(t, "alone")
			var once sync.Once
			killed := make(chan struct{})
			p.userGate.Watch(one.name, gate.Guard{Before: func(call gate.Call) bool {
				if call.Writes() && strings.Contains(call.Path, at) {
					once.Do(func() { server.StopServer(); close(killed) })
				}
				return true
			}})
			one.install(t, "probe", "1.0.0")
			process := one.controller(t)
			select {
			case <-killed:
			case <-process.Done():
				t.Fatal(process.Failure())
			case <-time.After(patience):
				t.Fatalf("no write to %s came by", at)
			}
			one.expectUnreachable(t)
			expect.NoError(t, server.StartServer(t.Context()))
			one.settle(t, process, "1.0.0")
			if diff := cmp.Diff(want, one.state(t)); diff != "" {
				t.Errorf("the end differs from that of a clean run (-clean +killed):\n%s", diff)
			}
		})
	}
}

// flaps is how often the user cluster goes and comes back.
const flaps = 6

// RS14: A user cluster that goes and comes back all the time gets no write, although a look for
// drift is due each second, and there are not more events than changes of the condition. Red when
// what a look could not see is put back by the next one, and when each pass is told by an event.
func TestFlappingClusterIsLeftAlone(t *testing.T) {
	p := newStocked(t)
	s := p.newSubject(t, "alone")
	s.install(t, "probe", "1.0.0")
	config := p.seedGate.Config(s.name)
	process := startController(t, s.name, assignment{
		Server: config.Host, CA: config.CAData, Token: config.BearerToken, Catalogue: p.catalogue,
		Installations: map[string]string{labelCase: s.name}, DriftInterval: time.Second,
	})
	s.settle(t, process, "1.0.0")
	want, events := s.state(t), s.events(t)
	user, seed := p.userGate.Counts(s.name).Writes, p.seedGate.Counts(s.name).Writes
	for range flaps {
		p.userGate.Shut()
		s.expectUnreachable(t)
		expect.NoError(t, p.userGate.Open(t.Context()))
		s.settle(t, process, "1.0.0")
	}
	if diff := cmp.Diff(want, s.state(t)); diff != "" {
		t.Errorf("the state changed (-before +after):\n%s", diff)
	}
	wrote, reported := p.userGate.Counts(s.name).Writes-user, s.events(t)-events
	status := p.seedGate.Counts(s.name).Writes - seed
	if wrote != 0 || reported > 2*flaps || status > 6*flaps {
		t.Errorf("%d changes of the condition: %d writes to the user cluster, %d to the seed, %d events", 2*flaps, wrote, status, reported)
	}
	t.Logf("%d changes of the condition: %d writes to the user cluster, %d to the seed, %d events", 2*flaps, wrote, status, reported)
}

// events counts how often something was told about the installation.
func (s *subject) events(t *testing.T) (reported int) {
	t.Helper()
	list := &eventsv1.EventList{}
	expect.List(t, s.seed, list, client.InNamespace(s.namespace()))
	for _, event := range list.Items {
		reported++
		if event.Series != nil {
			reported += int(event.Series.Count) - 1
		}
	}
	return reported
}

// RS17: Without its kubeconfig an installation waits, and so does its removal: nothing is
// uninstalled and nothing forgotten. With the kubeconfig back it goes on with the objects it had.
// Red when a missing kubeconfig counts as a cluster that is gone: the removal ends with the objects
// left behind.
func TestLostKubeconfigUninstallsNothing(t *testing.T) {
	p := newStocked(t)
	s, process := p.installed(t, "probe", "1.0.0")
	settings := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: s.name, Name: "settings"}
	expect.Get(t, s.user, key, settings)
	uid := settings.UID
	secret := given.Kubeconfig(s.namespace(), nil)
	expect.Delete(t, s.seed, secret)
	records := s.recordSecrets(t)
	s.want(t, "2.0.0")
	s.expectReady(t, "False", kubermaticv1.ReasonKubeconfigInvalid)
	s.restoreKubeconfig(t)
	s.settle(t, process, "2.0.0")
	if err := s.user.Get(t.Context(), key, settings); err != nil || settings.UID != uid || records != 1 {
		t.Errorf("ConfigMap settings was made anew, or the record of it lost: %v, UID %q for %q, %d records", err, settings.UID, uid, records)
	}

	expect.Delete(t, s.seed, secret)
	s.remove(t)
	s.expectReady(t, "False", kubermaticv1.ReasonKubeconfigInvalid)
	if err := s.user.Get(t.Context(), key, settings); err != nil || s.recordSecrets(t) != 2 {
		t.Errorf("something was removed without a kubeconfig: %v, %d records", err, s.recordSecrets(t))
	}
	s.restoreKubeconfig(t)
	s.settle(t, process, "")
	if left := s.state(t); len(left) > 0 {
		t.Errorf("after the removal there are %v", left)
	}
}

func (s *subject) restoreKubeconfig(t *testing.T) {
	t.Helper()
	expect.Create(t, s.seed, given.Kubeconfig(s.namespace(), s.userGate.Kubeconfig(t, s.name)))
}

func (s *subject) recordSecrets(t *testing.T) int {
	t.Helper()
	list := &corev1.SecretList{}
	labels := client.MatchingLabels{kubermaticv1.LabelInstallation: s.owner().ID()}
	expect.List(t, s.seed, list, client.InNamespace(s.namespace()), labels)
	return len(list.Items)
}

// expectKept sees that an installation that is being deleted is neither let go nor forgotten, and its objects untouched.
func (s *subject) expectKept(t *testing.T) {
	t.Helper()
	found := s.installation()
	expect.Read(t, s.seed, found)
	if found.DeletionTimestamp.IsZero() || len(found.Finalizers) == 0 || s.recordSecrets(t) == 0 {
		t.Errorf("finalizers %q, deleted at %v, %d records", found.Finalizers, found.DeletionTimestamp, s.recordSecrets(t))
	}
	if err := s.user.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: "settings"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("the objects don't stand as they did: %v", err)
	}
}

// holdCluster puts KKP's finalizer on the Cluster, so that its deletion shows before it is gone.
func (s *subject) holdCluster(t *testing.T, held bool) {
	t.Helper()
	finalizers := "[]"
	if held {
		finalizers = `["kubermatic.k8c.io/cleanup-namespace"]`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers)
	cluster := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	err := s.seed.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", patch))
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func (s *subject) deleteCluster(t *testing.T) {
	t.Helper()
	expect.Delete(t, s.seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
}
