package clusterapi

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	clusterNameLabel = "cluster.x-k8s.io/cluster-name"
	pausedAnnotation = "cluster.x-k8s.io/paused"
	secretType       = "cluster.x-k8s.io/secret"
)

// controlPlane is the object of one control plane, the Cluster that it is of, and the API server that it stands for.
type controlPlane struct {
	object  *unstructured.Unstructured
	cluster types.NamespacedName
	server  *fleet.Cluster
}

// advance makes the control plane be what its spec says. What was done is read from status, so that it goes on after a restart.
func (p *Player) advance(ctx context.Context, plane controlPlane) error {
	cluster := object(ClusterKind, plane.cluster.Namespace, plane.cluster.Name)
	if err := p.client.Get(ctx, plane.cluster, cluster); err != nil {
		return err
	}
	wanted, _, _ := unstructured.NestedString(plane.object.Object, "spec", "version")
	if wanted == "" {
		return nil
	}
	if isPaused(cluster) {
		return fmt.Errorf("the Cluster is paused: %w", errWaiting)
	}
	switch current := plane.version(); current {
	case wanted:
		return nil
	case "":
		return p.provision(ctx, plane, cluster, wanted)
	default:
		return p.upgrade(ctx, plane, Step{Cluster: plane.cluster, From: current, To: wanted})
	}
}

// provision makes a user cluster of the server: its endpoint and kubeconfig come before it is said to be there.
func (p *Player) provision(ctx context.Context, plane controlPlane, cluster *unstructured.Unstructured, version string) error {
	if err := p.turn(ctx, plane.server, version); err != nil {
		return err
	}
	if err := p.provisionInfrastructure(ctx, cluster, plane.server); err != nil {
		return err
	}
	if err := p.writeKubeconfig(ctx, plane); err != nil {
		return err
	}
	return p.report(ctx, plane.object, version)
}

func (p *Player) upgrade(ctx context.Context, plane controlPlane, step Step) error {
	if err := p.report(ctx, plane.object, step.From, step.To); err != nil {
		return err
	}
	if p.provider.Rolling != nil {
		p.provider.Rolling(ctx, step)
	}
	if err := p.turn(ctx, plane.server, step.To); err != nil {
		return err
	}
	return p.report(ctx, plane.object, step.To)
}

// turn starts the server as that version, where it is not.
func (p *Player) turn(ctx context.Context, server *fleet.Cluster, version string) error {
	if p.provider.StatusOnly {
		return nil
	}
	p.restarting.Lock()
	defer p.restarting.Unlock()
	release := strings.TrimPrefix(version, "v")
	if server.Release == release {
		return nil
	}
	if err := server.Become(ctx, release); err != nil {
		return fmt.Errorf("starting server %q as %s: %w", server.Name, version, err)
	}
	return nil
}

// provisionInfrastructure says of the Cluster's infrastructure that it is there, and where the API server is.
func (p *Player) provisionInfrastructure(ctx context.Context, cluster *unstructured.Unstructured, server *fleet.Cluster) error {
	name, _, _ := unstructured.NestedString(cluster.Object, "spec", "infrastructureRef", "name")
	if name == "" {
		return fmt.Errorf("the Cluster has no infrastructureRef: %w", errWaiting)
	}
	infra := object(InfraClusterKind, cluster.GetNamespace(), name)
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(infra), infra); err != nil {
		return err
	}
	address, err := url.Parse(server.Config.Host)
	if err != nil {
		return fmt.Errorf("reading the address of server %q: %w", server.Name, err)
	}
	port, err := strconv.ParseInt(address.Port(), 10, 32)
	if err != nil {
		return fmt.Errorf("reading the port of server %q: %w", server.Name, err)
	}
	before := infra.DeepCopy()
	endpoint := map[string]any{"host": address.Hostname(), "port": port}
	if err := unstructured.SetNestedMap(infra.Object, endpoint, "spec", "controlPlaneEndpoint"); err != nil {
		return err
	}
	if err := p.client.Patch(ctx, infra, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the endpoint: %w", err)
	}
	return p.patchStatus(ctx, infra, "Ready", map[string]any{"initialization": map[string]any{"provisioned": true}})
}

// writeKubeconfig makes the Secret that Cluster API's users read, or has it lead to this server.
func (p *Player) writeKubeconfig(ctx context.Context, plane controlPlane) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: plane.cluster.Namespace, Name: plane.cluster.Name + "-kubeconfig",
			Labels: map[string]string{clusterNameLabel: plane.cluster.Name}, OwnerReferences: controllerOf(plane.object),
		},
		Type: secretType, Data: map[string][]byte{"value": plane.server.Kubeconfig},
	}
	err := p.client.Create(ctx, secret)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return p.client.Update(ctx, secret)
}

// report says in status which versions the control plane has, the oldest first.
func (p *Player) report(ctx context.Context, plane *unstructured.Unstructured, versions ...string) error {
	var listed []any
	for _, version := range versions {
		listed = append(listed, map[string]any{"version": version, "replicas": int64(1)})
	}
	status := map[string]any{
		"initialization": map[string]any{"controlPlaneInitialized": true}, "versions": listed, "version": versions[0],
	}
	if wanted, found, _ := unstructured.NestedInt64(plane.Object, "spec", "replicas"); found {
		for _, field := range []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"} {
			status[field] = wanted
		}
	}
	return p.patchStatus(ctx, plane, "Available", status)
}

// patchStatus writes these fields of status and a condition that is true; nothing where all is as it was.
func (p *Player) patchStatus(ctx context.Context, of *unstructured.Unstructured, condition string, fields map[string]any) error {
	before := of.DeepCopy()
	conditions, err := conditionsOf(of, condition)
	if err != nil {
		return err
	}
	fields["conditions"] = conditions
	for name, value := range fields {
		if err := unstructured.SetNestedField(of.Object, value, "status", name); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(before.Object, of.Object) {
		return nil
	}
	if err := p.client.Status().Patch(ctx, of, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of %s %q: %w", of.GetKind(), of.GetName(), err)
	}
	return nil
}

// conditionsOf are the object's conditions, with the given one true.
func conditionsOf(of *unstructured.Unstructured, condition string) ([]any, error) {
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of.Object, &status); err != nil {
		return nil, err
	}
	meta.SetStatusCondition(&status.Status.Conditions, metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: condition, ObservedGeneration: of.GetGeneration(),
	})
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	conditions, _, err := unstructured.NestedSlice(written, "status", "conditions")
	return conditions, err
}

// version is the oldest one that the control plane has; "" before it has any.
func (c controlPlane) version() string {
	versions, _, _ := unstructured.NestedSlice(c.object.Object, "status", "versions")
	if len(versions) == 0 {
		return ""
	}
	oldest, _ := versions[0].(map[string]any)
	version, _ := oldest["version"].(string)
	return version
}

func isPaused(cluster *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused")
	_, annotated := cluster.GetAnnotations()[pausedAnnotation]
	return paused || annotated
}
