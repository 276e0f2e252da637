package clusterapi

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClassName is the ClusterClass that Class makes where it is given no name, and Cluster is of.
const ClassName = "fleet"

// Class is a ClusterClass of the stand-in, with the templates that it names.
type Class struct {
	// Namespace it is made in, which has to be there.
	Namespace string
	// Name is ClassName by default.
	Name string
	// Versions of Kubernetes, such as v1.36.3, the oldest first. Only with a list may a cluster go over more than one minor, in steps.
	Versions []string
	// Variables as ClusterClasses declare them: name, required, schema.
	Variables []any
}

// Create makes the ClusterClass and its templates.
func (c Class) Create(ctx context.Context, writer client.Client) error {
	if c.Name == "" {
		c.Name = ClassName
	}
	for _, kind := range providerKinds {
		template := object(kind.WithVersion(providerVersion), c.Namespace, c.Name)
		template.SetKind(kind.Kind + "Template")
		template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{}}}
		if err := writer.Create(ctx, template); err != nil {
			return fmt.Errorf("creating %s %q: %w", template.GetKind(), c.Name, err)
		}
	}
	class := object(classKind, c.Namespace, c.Name)
	class.Object["spec"] = c.spec()
	if err := writer.Create(ctx, class); err != nil {
		return fmt.Errorf("creating ClusterClass %q: %w", c.Name, err)
	}
	return nil
}

func (c Class) spec() map[string]any {
	template := func(group, kind string) map[string]any {
		return map[string]any{"templateRef": map[string]any{
			"apiVersion": schema.GroupVersion{Group: group, Version: providerVersion}.String(), "kind": kind + "Template", "name": c.Name,
		}}
	}
	pool := func(infrastructure string) []any {
		return []any{map[string]any{
			"class": "default", "bootstrap": template(BootstrapGroup, "FleetConfig"),
			"infrastructure": template(InfrastructureGroup, infrastructure),
		}}
	}
	spec := map[string]any{
		"infrastructure": template(InfrastructureGroup, "FleetCluster"),
		"controlPlane":   template(ControlPlaneGroup, "FleetControlPlane"),
		"workers": map[string]any{
			"machineDeployments": pool("FleetMachine"), "machinePools": pool("FleetMachinePool"),
		},
	}
	if len(c.Versions) > 0 {
		spec["kubernetesVersions"] = anyOf(c.Versions)
	}
	if len(c.Variables) > 0 {
		spec["variables"] = c.Variables
	}
	return spec
}

// Cluster is a Cluster of a ClusterClass.
type Cluster struct {
	Namespace, Name string
	// Class is ClassName by default.
	Class string
	// Version of Kubernetes, such as v1.36.3.
	Version string
	// Deployments and Pools name its machineDeployments and machinePools, in this order, all of them without replicas.
	Deployments, Pools []string
	// PodRanges are its networks of pods.
	PodRanges []string
	// Labels and Annotations of the object.
	Labels, Annotations map[string]string
	// Variables of the topology: name and value.
	Variables []any
}

// Object is the Cluster as it is to be created.
func (c Cluster) Object() *unstructured.Unstructured {
	if c.Class == "" {
		c.Class = ClassName
	}
	workers := map[string]any{}
	if len(c.Deployments) > 0 {
		workers["machineDeployments"] = empty(c.Deployments)
	}
	if len(c.Pools) > 0 {
		workers["machinePools"] = empty(c.Pools)
	}
	topology := map[string]any{"classRef": map[string]any{"name": c.Class}, "version": c.Version, "workers": workers}
	if len(c.Variables) > 0 {
		topology["variables"] = c.Variables
	}
	spec := map[string]any{"topology": topology}
	if len(c.PodRanges) > 0 {
		spec["clusterNetwork"] = map[string]any{"pods": map[string]any{"cidrBlocks": anyOf(c.PodRanges)}}
	}
	made := object(ClusterKind, c.Namespace, c.Name)
	made.SetLabels(c.Labels)
	made.SetAnnotations(c.Annotations)
	made.Object["spec"] = spec
	return made
}

// empty are pools without machines.
func empty(names []string) []any {
	var pools []any
	for _, name := range names {
		pools = append(pools, map[string]any{"class": "default", "name": name, "replicas": int64(0)})
	}
	return pools
}

func anyOf(texts []string) []any {
	var all []any
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}
