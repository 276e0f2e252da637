package hostile_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/hostile"
)

const (
	// mostHeap is the maximum growth of the heap by a lie, in bytes, including the hostile server's own part.
	mostHeap = 192 << 20
	// budget is the time limit of the engine, and grace the time in which it has to notice its end.
	budget = time.Second
	grace  = 10 * time.Second
)

// FuzzModes lets the API server go through a sequence of modes, one for each step of the engine: connecting,
// applying, checking drift, health by kstatus, by rules and by a Lease, and drift again. For any sequence, each step
// ends in its time, the heap stays limited and no goroutine is left. The corpus has every mode while it connects, and
// while it applies.
func FuzzModes(f *testing.F) {
	modes := hostile.Modes()
	for i := range modes {
		f.Add([]byte{byte(i)}, uint8(0))
		f.Add([]byte{byte(len(modes)), byte(i)}, uint8(2)) // connected without lies
	}
	stage := newStage(f)
	f.Fuzz(func(t *testing.T, sequence []byte, size uint8) {
		if len(sequence) == 0 || len(sequence) > len(stage.acts()) {
			return
		}
		stage.play(t, sequence, size)
	})
}

// stage is a cluster that is its own seed, behind a hostile server.
type stage struct {
	server *hostile.Server
	seed   client.Client
	kkp    *kkpv1.Cluster
	owner  ownership.Owner
}

func newStage(t testing.TB) *stage {
	t.Helper()
	user := fleet.Shared().Cluster("user")
	seed, err := client.New(user.Config, client.Options{})
	expect.NoError(t, err)
	s := &stage{server: hostile.New(t, user), seed: seed, owner: ownership.Owner{ClusterUID: "u", Installation: "a"}}
	s.kkp = &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "user", UID: "u"}}
	s.kkp.Status.NamespaceName, s.kkp.Status.Versions.ControlPlane = "cluster-user", user.Release
	s.kkp.Status.ExtendedHealth.APIServer = kkpv1.HealthUp
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-user"}},
		given.Kubeconfig("cluster-user", s.server.Kubeconfig()),
	} {
		expect.Ensure(t, seed, object)
	}
	return s
}

// acts are the engine's actions with a cluster, in order; errors are the responses to lies.
func (s *stage) acts() []func(context.Context, calls.Target) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "acted", "namespace": "default"},
		"data": map[string]any{"a": "b"},
	}}
	inventory := ownership.Inventory{{Key: ownership.KeyOf(object), Version: "v1", UID: types.UID("00000000-0000-4000-8000-000000000000")}}
	round := survey.New(time.Nanosecond, time.Now)
	rules := []v1.HealthRule{{Healthy: `self.data.a == "b" && self.metadata.labels.exists(l, l == "a")`, Message: `string(self.metadata)`}}
	ruled := survey.Standard{Evaluator: health.NewPrograms(time.Now).Look("one", rules), Rules: []survey.Rule{{Kind: object.GroupVersionKind()}}}
	place := calls.Place{Namespace: "default", Name: "acted"}
	return []func(context.Context, calls.Target){
		func(ctx context.Context, target calls.Target) {
			known := apply.Planned([]*unstructured.Unstructured{object}, nil)
			rollout := apply.NewRollout(s.owner, []*unstructured.Unstructured{object.DeepCopy()}, known, apply.RolloutOptions{})
			_, _ = rollout.Advance(ctx, target)
		},
		func(ctx context.Context, target calls.Target) { _, _ = round.Drifted(ctx, target, s.owner, inventory) },
		func(ctx context.Context, target calls.Target) {
			_, _ = survey.Standard{Shared: round}.Assess(ctx, target, s.owner, inventory)
		},
		func(ctx context.Context, target calls.Target) { _, _ = ruled.Assess(ctx, target, s.owner, inventory) },
		func(ctx context.Context, target calls.Target) { _, _ = survey.Renewed(ctx, target, place) },
		func(ctx context.Context, target calls.Target) { _, _ = round.Drifted(ctx, target, s.owner, inventory) },
	}
}

// play connects in the first mode of the sequence and acts once in each further one; a mode beyond the list is the
// truth.
func (s *stage) play(t *testing.T, sequence []byte, size uint8) {
	t.Helper()
	goroutines, peak := runtime.NumGoroutine(), watchHeap()
	s.set(sequence[0], size)
	connections := cluster.NewConnections(s.seed)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = connections.Start(ctx) })
	if connection := s.connect(ctx, connections); connection != nil {
		target := calls.Target{
			Metadata: connection.Metadata, Dynamic: connection.Dynamic, Mapper: connection.Mapper, Served: connection,
		}
		for i, act := range s.acts() {
			if i+1 < len(sequence) {
				s.set(sequence[i+1], size)
			}
			s.inTime(t, i, func(ctx context.Context) { act(ctx, target) })
		}
	}
	stop()
	running.Wait()
	s.server.Set(hostile.Truth)
	grown := peak()
	t.Logf("%v: the heap grew by %d MiB", sequence, grown>>20)
	if grown > mostHeap {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	expect.Eventually(t, time.Minute, func() error {
		if now := runtime.NumGoroutine(); now > goroutines+20 { // handlers of the server end with their connections
			return fmt.Errorf("%d goroutines, %d before", now, goroutines)
		}
		return nil
	})
}

func (s *stage) set(number byte, size uint8) {
	modes := hostile.Modes()
	if int(number) >= len(modes) {
		s.server.Set(hostile.Truth)
		return
	}
	dose := modes[number].Dose
	dose.Size >>= size % 8
	s.server.SetDose(modes[number], dose)
}

// connect waits for a connection, for the time of a step.
func (s *stage) connect(ctx context.Context, connections *cluster.Connections) *cluster.Connection {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	for {
		woken := make(chan struct{})
		connection, err := connections.Get(cluster.Describe(s.kkp), "a", sync.OnceFunc(func() { close(woken) }))
		if err == nil {
			return connection
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *stage) inTime(t *testing.T, number int, act func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		act(ctx)
	}()
	late := time.NewTimer(budget + grace)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Fatalf("act %d goes on %s after its time was over", number, grace)
	}
}

// watchHeap samples the heap until the returned function is called, which returns its growth.
func watchHeap() func() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtime.GC()
	metrics.Read(sample)
	begin, most, ended := sample[0].Value.Uint64(), uint64(0), make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		now := slices.Clone(sample)
		for {
			metrics.Read(now)
			most = max(most, now[0].Value.Uint64())
			select {
			case <-ended:
				return
			case <-ticker.C:
			}
		}
	})
	return func() uint64 {
		close(ended)
		watching.Wait()
		return most - min(most, begin)
	}
}
