package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const ours = "/trellis"

// TestAnUpgradeWaitsForItsAnnotations holds what an upgrade is held by: the control plane by an annotation of the Cluster, workers by one
// of the first machineDeployment, which holds those behind it too, and no machinePool. Between them the API server is another release.
func TestAnUpgradeWaitsForItsAnnotations(t *testing.T) {
	rolling, goOn := make(chan Step), make(chan struct{})
	s := begin(t, Options{}, Provider{
		Servers: []*fleet.Cluster{fleet.Shared().Cluster(user)},
		Rolling: func(ctx context.Context, step Step) {
			select {
			case rolling <- step:
			case <-ctx.Done():
			}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		},
	}, Cluster{Namespace: "held", Name: "one", Version: before, Deployments: []string{"a", "b"}, Pools: []string{"p"}})
	s.spread(Spread{ControlPlane: before, Deployments: map[string]string{"a": before, "b": before}, Pools: map[string]string{"p": before}})
	if served := serverVersion(s); served != before {
		t.Errorf("the API server says %s", served)
	}

	s.hook()
	s.do(HoldWorkers(t.Context(), s.client, s.key, "a", "held by a test"))
	s.do(SetVersion(t.Context(), s.client, s.key, after))
	s.cluster("says what holds it", func(cluster *unstructured.Unstructured) error {
		if plan := ControlPlane(cluster, "upgradePlan"); !slices.Equal(plan, []string{after}) {
			return fmt.Errorf("the plan is %v", plan)
		}
		return saysOf(cluster, BeforeUpgrade+ours)
	})
	s.spread(Spread{ControlPlane: before, Deployments: map[string]string{"a": before, "b": before}, Pools: map[string]string{"p": before}})

	s.do(Annotate(t.Context(), s.client, s.key, BeforeUpgrade+ours, ""))
	select {
	case step := <-rolling:
		if step != (Step{Cluster: s.key, From: before, To: after}) {
			t.Errorf("the control plane goes %v", step)
		}
	case <-time.After(expect.Patience):
		t.Fatal("the control plane does not go")
	}
	s.cluster("has both versions, the older first", func(cluster *unstructured.Unstructured) error {
		if versions := ControlPlane(cluster, "versions"); !slices.Equal(versions, []string{before, after}) {
			return fmt.Errorf("versions are %v", versions)
		}
		return nil
	})
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": before, "b": before}, Pools: map[string]string{"p": before}})
	close(goOn)
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": before, "b": before}, Pools: map[string]string{"p": after}})
	s.cluster("says that workers are held", func(cluster *unstructured.Unstructured) error {
		if versions := ControlPlane(cluster, "versions"); !slices.Equal(versions, []string{after}) {
			return fmt.Errorf("versions are %v", versions)
		}
		return expect.Condition(cluster, "TopologyReconciled", "False", "MachineDeploymentsUpgradeDeferred")
	})
	if served := serverVersion(s); served != after {
		t.Errorf("the API server says %s", served)
	}
	if err := SetVersion(t.Context(), s.client, s.key, "v1.37.9"); err == nil || !strings.Contains(err.Error(), "denied the request") {
		t.Errorf("another version while workers are held: %v", err)
	}
	expect.NoError(t, HoldWorkers(t.Context(), s.client, s.key, "a", ""))
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": after, "b": after}, Pools: map[string]string{"p": after}})
	s.cluster("is done", func(cluster *unstructured.Unstructured) error {
		if pending, found := cluster.GetAnnotations()["runtime.cluster.x-k8s.io/pending-hooks"]; found && pending != "" {
			return fmt.Errorf("hooks are pending: %s", pending)
		}
		return expect.Condition(cluster, "TopologyReconciled", "True", "")
	})
	inOlderVersion(s)
	s.end()
}

// inOlderVersion holds where the same things stand in v1beta1, which the manager converts to.
func inOlderVersion(s *story) {
	s.t.Helper()
	cluster := object(OlderClusterKind, s.key.Namespace, s.key.Name)
	s.do(s.client.Get(s.t.Context(), s.key, cluster))
	ready, _, _ := unstructured.NestedBool(cluster.Object, "status", "controlPlaneReady")
	class, _, _ := unstructured.NestedString(cluster.Object, "spec", "topology", "class")
	infrastructure, _, _ := unstructured.NestedString(cluster.Object, "spec", "infrastructureRef", "apiVersion")
	versions, _, _ := unstructured.NestedSlice(cluster.Object, "status", "v1beta2", "controlPlane", "versions")
	if !ready || class != ClassName || infrastructure != InfraClusterKind.GroupVersion().String() || len(versions) != 1 {
		s.t.Errorf("v1beta1: ready %v, class %q, infrastructure %q, versions %v", ready, class, infrastructure, versions)
	}
	s.do(expect.Condition(cluster, "ControlPlaneInitialized", "True", ""))
}

// TestWithoutRuntimeSDKNothingHoldsTheControlPlane holds that the annotation of the Cluster is not looked at then; that of workers is.
func TestWithoutRuntimeSDKNothingHoldsTheControlPlane(t *testing.T) {
	s := begin(t, Options{WithoutRuntimeSDK: true}, Provider{Servers: []*fleet.Cluster{fleet.Shared().Cluster(user)}, StatusOnly: true},
		Cluster{
			Namespace: "unheld", Name: "one", Version: before, Deployments: []string{"a"},
			Annotations: map[string]string{BeforeUpgrade + ours: "held by a test"},
		})
	s.do(HoldWorkers(t.Context(), s.client, s.key, "a", "held by a test"))
	s.do(SetVersion(t.Context(), s.client, s.key, after))
	s.cluster("has only workers to wait for", func(cluster *unstructured.Unstructured) error {
		return expect.Condition(cluster, "TopologyReconciled", "False", "MachineDeploymentsUpgradeDeferred")
	})
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": before}, Pools: map[string]string{}})
	s.do(HoldWorkers(t.Context(), s.client, s.key, "a", ""))
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": after}, Pools: map[string]string{}})
	s.end()
}

// TestAChainIsHeldBeforeItsFirstStepOnly holds that an upgrade over two minors goes through both without asking again, even where the
// annotation is put back meanwhile, and that workers go in one step, at the end.
func TestAChainIsHeldBeforeItsFirstStepOnly(t *testing.T) {
	steps := make(chan Step, 10)
	var s *story
	s = begin(t, Options{}, Provider{
		Servers: []*fleet.Cluster{fleet.Shared().Cluster(user)}, StatusOnly: true,
		Rolling: func(ctx context.Context, step Step) {
			if err := Annotate(ctx, s.client, s.key, BeforeUpgrade+ours, "put back"); err != nil {
				t.Error(err)
			}
			steps <- step
		},
	}, Cluster{Namespace: "chain", Name: "one", Version: oldest, Deployments: []string{"a"}})
	s.hook()
	s.do(HoldWorkers(t.Context(), s.client, s.key, "a", "held by a test"))
	s.do(SetVersion(t.Context(), s.client, s.key, after))
	s.cluster("plans both steps", func(cluster *unstructured.Unstructured) error {
		if plan := ControlPlane(cluster, "upgradePlan"); !slices.Equal(plan, []string{before, after}) {
			return fmt.Errorf("the plan is %v", plan)
		}
		return saysOf(cluster, BeforeUpgrade+ours)
	})
	s.do(Annotate(t.Context(), s.client, s.key, BeforeUpgrade+ours, ""))
	s.cluster("has only workers to wait for", func(cluster *unstructured.Unstructured) error {
		return expect.Condition(cluster, "TopologyReconciled", "False", "MachineDeploymentsUpgradeDeferred")
	})
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": oldest}, Pools: map[string]string{}})
	var got []Step
	for range len(steps) {
		got = append(got, <-steps)
	}
	if want := []Step{{s.key, oldest, before}, {s.key, before, after}}; !slices.Equal(got, want) {
		t.Errorf("the control plane goes %v, want %v", got, want)
	}
	s.do(HoldWorkers(t.Context(), s.client, s.key, "a", ""))
	s.spread(Spread{ControlPlane: after, Deployments: map[string]string{"a": after}, Pools: map[string]string{}})
	s.end()
}

// saysOf holds when condition TopologyReconciled names that.
func saysOf(cluster *unstructured.Unstructured, what string) error {
	conditions, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "TopologyReconciled" && strings.Contains(fmt.Sprint(fields["message"]), what) {
			return nil
		}
	}
	return fmt.Errorf("no condition TopologyReconciled names %q: %v", what, conditions)
}

// serverVersion asks the user cluster, by the kubeconfig in its Secret.
func serverVersion(s *story) string {
	s.t.Helper()
	secret := &corev1.Secret{}
	s.do(s.client.Get(s.t.Context(), types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name + "-kubeconfig"}, secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	s.do(err)
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	s.do(err)
	version, err := asked.ServerVersion()
	s.do(err)
	return version.GitVersion
}
