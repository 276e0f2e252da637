package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

// TestKeptControlPlanes checks that each process that is killed from outside is restarted with its state at its port,
// and that one that its owner stops is not. The test fails when no process is restarted (watch taken out of keep).
func TestKeptControlPlanes(t *testing.T) {
	place := t.TempDir()
	f, err := Start(t.Context(), Options{
		Folder: filepath.Join(place, "fleet"), Keep: true,
		Clusters: []ClusterOptions{{Name: "one", Controllers: true}, {Name: "two"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	one, two := clientOf(t, f, "one"), clientOf(t, f, "two")
	createNamespace(t, one, "kept")
	for _, victim := range []string{"one-kube-apiserver", "etcd", "one-kube-controller-manager", "one-kube-apiserver"} {
		before := processOf(t, f, victim)
		if err := before.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a process in place of "+victim, func(context.Context) (bool, error) {
			for _, process := range f.Processes() {
				if process.Name() == victim && process != before {
					return true, nil
				}
			}
			return false, fmt.Errorf("%s does not run", victim)
		})
		for name, client := range map[string]string{"one": "kept", "two": "default"} {
			eventually(t, name+" with what it had, after the end of "+victim, func(ctx context.Context) (bool, error) {
				_, err := clientOf(t, f, name).CoreV1().Namespaces().Get(ctx, client, metav1.GetOptions{})
				return err == nil, err
			})
		}
	}
	eventually(t, "controllers that work again", func(ctx context.Context) (bool, error) {
		_, err := one.CoreV1().ServiceAccounts("kept").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	f.Cluster("one").StopServer()
	stopped := f.Cluster("one").Server()
	createNamespace(t, two, "meanwhile")
	if stopped.Ended() == nil || f.Cluster("one").Server() != stopped {
		t.Error("a server that was stopped runs")
	}
	if err := f.Cluster("one").StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := one.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func processOf(t *testing.T, f *Fleet, name string) *Process {
	t.Helper()
	for _, process := range f.Processes() {
		if process.Name() == name {
			return process
		}
	}
	t.Fatalf("no process %s runs", name)
	return nil
}

// TestPodsAreReadyAgain checks that workloads recover after a time without an API server: the controllers mark pods
// of a node without reports as not ready, and the fake node reports again. The test fails without stage
// pod-ready-again.
func TestPodsAreReadyAgain(t *testing.T) {
	f := ForTest(t, ClusterOptions{Name: "working", Workloads: true})
	client := clientOf(t, f, "working")
	pods := client.CoreV1().Pods("default")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	isReady := func(ctx context.Context) (bool, error) {
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(found.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		}), nil
	}
	eventually(t, "the pod to be ready", isReady)
	const lost = `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`
	if _, err := pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(lost), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to be ready again", isReady)
}

// TestSourcesStay checks that sources over the same folder have the same address, and the content that was pushed to
// the registry. The test fails when manifests are only in memory, or ports are not stored.
func TestSourcesStay(t *testing.T) {
	place := t.TempDir()
	start := func() *Sources {
		ports, err := RememberPorts(filepath.Join(place, "ports"))
		if err != nil {
			t.Fatal(err)
		}
		s, err := StartSources(filepath.Join(place, "sources"), ports)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		return s
	}
	first := start()
	var digests []string
	for _, version := range []string{"1.0.0", "1.1.0"} {
		digest, err := first.Image("mine", version, map[string]string{"a.yaml": "version: " + version})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	first.Stop()
	second := start()
	if first.Registry != second.Registry {
		t.Errorf("the sources moved from %s to %s", first.Registry, second.Registry)
	}
	network := outbound.New(outbound.Options{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(network.Close)
	for i, version := range []string{"1.0.0", "1.1.0"} {
		found, err := image.New(network).Resolve(t.Context(), fetch.Reference{
			Location: image.Location{Image: image.Name(second.Registry + "/mine:" + version)}, Credentials: fetch.Credentials{CA: second.CA},
		})
		if err != nil || found.Name != digests[i] {
			t.Errorf("version %s is %q, %v; want %s", version, found.Name, err, digests[i])
		}
	}
}

// TestRememberedPortIsGivenUp checks that a stored port that another process uses meanwhile delays nothing.
func TestRememberedPortIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ports")
	ports, err := RememberPorts(path)
	if err != nil {
		t.Fatal(err)
	}
	held, err := ports.Listen("held")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	again, err := RememberPorts(path)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(held.Addr().String(), ":")
	if fmt.Sprint(again.before("held")) != port {
		t.Errorf("remembered %d, want %s", again.before("held"), port)
	}
	free, err := again.Free("held")
	if err != nil || fmt.Sprint(free) == port {
		t.Errorf("got port %d, %v", free, err)
	}
	if third, err := RememberPorts(path); err != nil || third.before("held") != free {
		t.Errorf("remembered %d, want %d", third.before("held"), free)
	}
}
