package fleet

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// ForTest starts a fleet that ends with the test. An interrupted test binary stops it too.
func ForTest(t testing.TB, clusters ...ClusterOptions) *Fleet {
	t.Helper()
	f, end, err := startGuarded(t.Context(), clusters)
	t.Cleanup(end)
	if err != nil {
		t.Fatalf("starting a fleet: %v", err)
	}
	return f
}

var shared atomic.Pointer[Fleet]

// Main is a package's TestMain: it starts one fleet for all tests, runs them, stops it and exits. In `make test` a
// third of the tests run on each commit (long.Share); if none is among them, it starts nothing.
func Main(m *testing.M, clusters ...ClusterOptions) {
	os.Exit(run(m, clusters))
}

// Shared is the fleet that Main started.
func Shared() *Fleet {
	f := shared.Load()
	if f == nil {
		panic("no fleet is shared: call fleet.Main from TestMain")
	}
	return f
}

// Address is host:port on this machine that is free now.
func Address(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	expect.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Small is a fleet of one cluster with its own etcd, which has enough space for an API server and is soon full.
func Small(t testing.TB, name string) (*Fleet, *Cluster) {
	t.Helper()
	small, err := Start(t.Context(), Options{Clusters: []ClusterOptions{{Name: name}}, EtcdQuota: 32 << 20})
	expect.NoError(t, err)
	t.Cleanup(small.Stop)
	return small, small.Cluster(name)
}

// InNamespace is a client of one of the shared clusters. It creates a namespace for the test.
func InNamespace(t testing.TB, cluster, namespace string) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(Shared().Cluster(cluster).Config, client.Options{})
	expect.NoError(t, err)
	expect.Create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return c
}

func run(m *testing.M, clusters []ClusterOptions) int {
	if isEmpty, err := long.Share(); err != nil {
		fmt.Fprintln(os.Stderr, "choosing tests:", err)
		return 1
	} else if isEmpty {
		return m.Run()
	}
	f, end, err := startGuarded(context.Background(), clusters)
	defer end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting a fleet:", err)
		return 1
	}
	shared.Store(f)
	return m.Run()
}

// startGuarded starts a fleet that also ends when the process gets a signal to end, even while it is starting.
func startGuarded(ctx context.Context, clusters []ClusterOptions) (*Fleet, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	var f *Fleet
	var err error
	started := make(chan struct{})
	end := endWithProcess(func() {
		cancel()
		<-started
		if f != nil {
			f.Stop()
		}
	})
	f, err = Start(ctx, Options{Clusters: clusters})
	close(started)
	return f, end, err
}

// ending has the functions to call when a signal ends the process.
var ending = struct {
	sync.Mutex
	listening bool
	next      int
	stops     map[int]func()
}{stops: map[int]func(){}}

// endWithProcess registers stop to be called when the process gets a signal to end, unless the returned function,
// which calls it too, was called before.
func endWithProcess(stop func()) func() {
	ending.Lock()
	defer ending.Unlock()
	if !ending.listening {
		ending.listening = true
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		go endOnSignal(signals)
	}
	key := ending.next
	ending.next++
	ending.stops[key] = stop
	return func() {
		stop()
		ending.Lock()
		defer ending.Unlock()
		delete(ending.stops, key)
	}
}

// endOnSignal stops everything and then resends the signal.
func endOnSignal(signals chan os.Signal) {
	received := <-signals
	ending.Lock() // never unlocked: nothing is started any longer
	for _, stop := range ending.stops {
		stop()
	}
	signal.Reset(received)
	_ = syscall.Kill(os.Getpid(), received.(syscall.Signal))
}
