package clusterapi

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	management, user, older = "management", "user", "older"

	oldest, before, after = "v1.35.4", "v1.36.3", "v1.37.2"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	fleet.Main(m,
		fleet.ClusterOptions{Name: management, Controllers: true},
		fleet.ClusterOptions{Name: user, Release: binaries.Older}, // which are upgraded
		fleet.ClusterOptions{Name: older, Release: binaries.Older})
}

// story is one Cluster of a ClusterClass, in a namespace of its own.
type story struct {
	t      *testing.T
	client client.WithWatch
	key    types.NamespacedName
	player *Player
}

// begin starts Cluster API, the provider and a Cluster, and waits until it is initialised and its workers have its version.
func begin(t *testing.T, options Options, provider Provider, cluster Cluster) *story {
	t.Helper()
	f := fleet.Shared()
	manager := ForTest(t, f, f.Cluster(management), options)
	t.Logf("Cluster API was there after %s", manager.Took)
	s := &story{
		t: t, client: fleet.InNamespace(t, management, cluster.Namespace),
		key:    types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name},
		player: Play(t, f.Cluster(management), provider),
	}
	t.Cleanup(func() {
		if peak, err := fleet.PeakMemory(manager.Process.PID()); err == nil {
			t.Logf("Cluster API had %d MiB", peak>>20)
		}
	})
	class := Class{Namespace: cluster.Namespace, Versions: []string{oldest, before, after}}
	expect.NoError(t, class.Create(t.Context(), s.client))
	expect.Create(t, s.client, cluster.Object())
	s.cluster("is initialised and reconciled", func(cluster *unstructured.Unstructured) error {
		if ready, _, _ := unstructured.NestedBool(cluster.Object, "status", "initialization", "controlPlaneInitialized"); !ready {
			return fmt.Errorf("status is %v; the provider: %w", cluster.Object["status"], s.player.Troubles())
		}
		// With its last annotation Cluster API takes all off that came meanwhile.
		if pending := cluster.GetAnnotations()["runtime.cluster.x-k8s.io/pending-hooks"]; pending != "" {
			return fmt.Errorf("hooks are pending: %s", pending)
		}
		return expect.Condition(cluster, "TopologyReconciled", "True", "")
	})
	return s
}

// settled is for how long an annotation has to stay: a manager that takes its own last one off, by what it read before, takes all off.
const settled = 3 * time.Second

// hook holds the control plane, once that lasts.
func (s *story) hook() {
	s.t.Helper()
	expect.Lasts(s.t, expect.Patience, settled, func() error {
		found := object(ClusterKind, s.key.Namespace, s.key.Name)
		if err := s.client.Get(s.t.Context(), s.key, found); err != nil {
			return err
		}
		if _, isOn := found.GetAnnotations()[BeforeUpgrade+ours]; !isOn {
			return errors.Join(errors.New("the annotation is not on"), Annotate(s.t.Context(), s.client, s.key, BeforeUpgrade+ours, "held by a test"))
		}
		return nil
	})
}

// end deletes the Cluster, which Cluster API does with all that it made.
func (s *story) end() {
	s.t.Helper()
	expect.Delete(s.t, s.client, object(ClusterKind, s.key.Namespace, s.key.Name))
	expect.Gone(s.t, s.client, object(ClusterKind, s.key.Namespace, s.key.Name))
	expect.Eventually(s.t, expect.Patience, func() error {
		if server := s.player.Server(s.key); server != nil {
			return fmt.Errorf("the control plane still has server %q", server.Name)
		}
		return nil
	})
}

// cluster waits until the Cluster is so.
func (s *story) cluster(what string, holds func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	s.t.Helper()
	return expect.Object(s.t, s.client, object(ClusterKind, s.key.Namespace, s.key.Name), func(cluster *unstructured.Unstructured) error {
		if err := holds(cluster); err != nil {
			return fmt.Errorf("until the Cluster %s: %w", what, err)
		}
		return nil
	})
}

// spread waits until these are the versions of what Cluster API made.
func (s *story) spread(want Spread) {
	s.t.Helper()
	expect.Eventually(s.t, expect.Patience, func() error {
		got, err := Versions(s.t.Context(), s.client, s.key)
		if err == nil && !reflect.DeepEqual(got, want) {
			return fmt.Errorf("versions are %+v, want %+v; the provider: %w", got, want, s.player.Troubles())
		}
		return err
	})
}

func (s *story) do(err error) {
	s.t.Helper()
	expect.NoError(s.t, err)
}
