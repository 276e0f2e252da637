package clusterapi

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
)

// Annotations by which Cluster API is held, up to a slash and a name of whoever holds for the first.
const (
	BeforeUpgrade = "before-upgrade.hook.cluster.cluster.x-k8s.io"
	HoldSequence  = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
)

// Change edits the Cluster as anybody may.
func Change(ctx context.Context, c client.Client, key types.NamespacedName, edit func(cluster *unstructured.Unstructured) error) error {
	return expect.PastConflicts(ctx, func() error {
		cluster := object(ClusterKind, key.Namespace, key.Name)
		if err := c.Get(ctx, key, cluster); err != nil {
			return err
		}
		if err := edit(cluster); err != nil {
			return err
		}
		return c.Update(ctx, cluster)
	})
}

// SetVersion asks for another version of Kubernetes.
func SetVersion(ctx context.Context, c client.Client, key types.NamespacedName, version string) error {
	return Change(ctx, c, key, func(cluster *unstructured.Unstructured) error {
		return unstructured.SetNestedField(cluster.Object, version, "spec", "topology", "version")
	})
}

// Annotate puts an annotation on the Cluster; value "" takes it off.
func Annotate(ctx context.Context, c client.Client, key types.NamespacedName, annotation, value string) error {
	return Change(ctx, c, key, func(cluster *unstructured.Unstructured) error {
		annotations := cluster.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[annotation] = value; value == "" {
			delete(annotations, annotation)
		}
		cluster.SetAnnotations(annotations)
		return nil
	})
}

// Reconciled waits until Cluster API has reconciled the topology of the Cluster since the call: it ends with a condition of the generation
// that a label brings.
func Reconciled(t testing.TB, c client.Client, key types.NamespacedName) {
	t.Helper()
	err := Change(t.Context(), c, key, func(cluster *unstructured.Unstructured) error {
		label := []string{"spec", "topology", "controlPlane", "metadata", "labels", "example.com/reconciled-since"}
		return unstructured.SetNestedField(cluster.Object, cluster.GetResourceVersion(), label...)
	})
	expect.NoError(t, err)
	expect.Object(t, c, object(ClusterKind, key.Namespace, key.Name), func(cluster *unstructured.Unstructured) error {
		conditions, _, err := unstructured.NestedSlice(cluster.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, entry := range conditions {
			condition, _ := entry.(map[string]any)
			if condition["type"] == "TopologyReconciled" && condition["observedGeneration"] == cluster.GetGeneration() {
				return nil
			}
		}
		return fmt.Errorf("no condition TopologyReconciled of generation %d among %v", cluster.GetGeneration(), conditions)
	})
}

// HoldWorkers puts annotation HoldSequence on one of the topology's machineDeployments; value "" takes it off.
func HoldWorkers(ctx context.Context, c client.Client, key types.NamespacedName, deployment, value string) error {
	return Change(ctx, c, key, func(cluster *unstructured.Unstructured) error {
		path := []string{"spec", "topology", "workers", "machineDeployments"}
		items, _, err := unstructured.NestedSlice(cluster.Object, path...)
		if err != nil {
			return err
		}
		for _, item := range items {
			fields, _ := item.(map[string]any)
			if fields["name"] != deployment {
				continue
			}
			if value == "" {
				unstructured.RemoveNestedField(fields, "metadata", "annotations", HoldSequence)
				return unstructured.SetNestedSlice(cluster.Object, items, path...)
			}
			if err := unstructured.SetNestedField(fields, value, "metadata", "annotations", HoldSequence); err != nil {
				return err
			}
			return unstructured.SetNestedSlice(cluster.Object, items, path...)
		}
		return fmt.Errorf("the topology has no machineDeployment %q", deployment)
	})
}

// Spread is which versions Cluster API has put on what it made of a Cluster.
type Spread struct {
	// ControlPlane is the version that its control plane is to have.
	ControlPlane string
	// Deployments and Pools are the versions of their templates, by their names in the topology.
	Deployments, Pools map[string]string
}

// Versions reads how far Cluster API has brought the Cluster.
func Versions(ctx context.Context, reader client.Reader, key types.NamespacedName) (Spread, error) {
	found := Spread{Deployments: map[string]string{}, Pools: map[string]string{}}
	of := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingLabels{clusterNameLabel: key.Name}}
	planes := list(ControlPlaneKind)
	if err := reader.List(ctx, planes, of...); err != nil {
		return found, err
	}
	for _, plane := range planes.Items {
		found.ControlPlane, _, _ = unstructured.NestedString(plane.Object, "spec", "version")
	}
	deployments, pools := list(MachineDeploymentKind), list(MachinePoolKind)
	if err := reader.List(ctx, deployments, of...); err != nil {
		return found, err
	}
	if err := reader.List(ctx, pools, of...); err != nil {
		return found, err
	}
	note(deployments, "topology.cluster.x-k8s.io/deployment-name", found.Deployments)
	note(pools, "topology.cluster.x-k8s.io/pool-name", found.Pools)
	return found, nil
}

func note(workers *unstructured.UnstructuredList, label string, versions map[string]string) {
	for _, worker := range workers.Items {
		versions[worker.GetLabels()[label]], _, _ = unstructured.NestedString(worker.Object, "spec", "template", "spec", "version")
	}
}
