package addoninstallation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
)

// calico is a template as in HelmChartProxies, inside the block that makes .CAPI its root.
const calico = `{{ with .CAPI }}
network:
  mtu: 1350
  backend: {{ .InfraCluster.spec.backend }}
  owner: {{ .Variables.owner }}
  port: {{ .ControlPlane.spec.port }}
  pools:
  {{- range $i, $cidr := .Cluster.spec.clusterNetwork.pods.cidrBlocks }}
  - {name: {{ $.CAPI.Cluster.metadata.name }}-{{ $i }}, cidr: {{ $cidr }}}
  {{- end }}
{{ end }}`

// renderings counts renderings.
type renderings struct{ objects, values atomic.Int64 }

type countedObjects struct {
	render.Renderer
	*renderings
}

func (c countedObjects) Render(ctx context.Context, input render.Input) (render.Result, error) {
	c.objects.Add(1)
	return c.Renderer.Render(ctx, input)
}

type countedValues struct {
	render.ValuesRenderer
	*renderings
}

func (c countedValues) RenderValues(ctx context.Context, input render.ValuesInput) (map[string]any, error) {
	c.values.Add(1)
	return c.ValuesRenderer.RenderValues(ctx, input)
}

func (r *renderings) String() string {
	return fmt.Sprintf("%d of objects, %d of values", r.objects.Load(), r.values.Load())
}

// networks is a team whose Clusters have a control plane and infrastructure, with a chart that shows its values.
type networks struct {
	*team
	renderings
	version func(version, folder string) kubermaticv1.AddonVersion
}

func newNetworks(t *testing.T) *networks {
	t.Helper()
	n := &networks{team: newTeam(t)}
	n.platform = nil
	n.kinds.ControlPlanes = []schema.GroupResource{
		{Group: clusterapi.ControlPlaneGroup, Resource: "fleetcontrolplanes"}, {Group: clusterapi.InfrastructureGroup, Resource: "fleetclusters"},
	}
	n.renderers = bothMethods()
	for method, one := range n.renderers {
		n.renderers[method] = countedObjects{one, &n.renderings}
	}
	n.valuesRenderer = countedValues{gotemplate.New(), &n.renderings}
	chart := webChart("1.0.0")
	chart["templates/network.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: network}\ndata: {network: '{{ toJson .Values.network }}'}\n"
	n.version = n.charts(map[string]map[string]string{"cni": chart})
	return n
}

// refer creates a Cluster's control plane and infrastructure, and the references to them.
func (n *networks) refer(of *unstructured.Unstructured, edit func(spec map[string]any)) {
	n.t.Helper()
	for kind, spec := range map[schema.GroupVersionKind]map[string]any{
		clusterapi.ControlPlaneKind: {"port": int64(1), "version": "v1.36.3"}, clusterapi.InfraClusterKind: {"backend": "bgp"},
	} {
		made := n.object(kind, of.GetName())
		made.Object["spec"] = spec
		n.create(made)
	}
	n.change(of, func(object map[string]any) {
		spec := object["spec"].(map[string]any)
		spec["controlPlaneRef"] = map[string]any{"apiGroup": clusterapi.ControlPlaneGroup, "kind": "FleetControlPlane", "name": of.GetName()}
		spec["infrastructureRef"] = map[string]any{"apiGroup": clusterapi.InfrastructureGroup, "kind": "FleetCluster", "name": of.GetName()}
		spec["clusterNetwork"] = map[string]any{"pods": map[string]any{"cidrBlocks": []any{"10.1.0.0/16"}}}
		spec["topology"] = map[string]any{
			"classRef": map[string]any{"name": "fleet"}, "version": "v1.36.3",
			"variables": []any{map[string]any{"name": "owner", "value": "net"}},
		}
		if edit != nil {
			edit(spec)
		}
	})
}

func (n *networks) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetGroupVersionKind(kind)
	made.SetNamespace(n.team.namespace)
	made.SetName(name)
	return made
}

// change edits an object; flap edits its status.
func (n *networks) change(object *unstructured.Unstructured, edit func(object map[string]any)) {
	n.t.Helper()
	n.update(object, edit, func() error { return n.seed.Update(n.t.Context(), object) })
}

func (n *networks) flap(object *unstructured.Unstructured, edit func(object map[string]any)) {
	n.t.Helper()
	n.update(object, edit, func() error { return n.seed.Status().Update(n.t.Context(), object) })
}

func (n *networks) update(object *unstructured.Unstructured, edit func(object map[string]any), write func() error) {
	n.t.Helper()
	err := expect.PastConflicts(n.t.Context(), func() error {
		if err := n.seed.Get(n.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		edit(object.Object)
		return write()
	})
	expect.NoError(n.t, err)
}

func (n *networks) requestFor(of string, edit func(*kubermaticv1.AddonInstallation)) *kubermaticv1.AddonInstallation {
	n.t.Helper()
	object := &kubermaticv1.AddonInstallation{Spec: kubermaticv1.AddonInstallationSpec{
		ClusterName: of, AddonRef: kubermaticv1.AddonReference{Name: "cni", Version: "1.0.0"},
		TargetNamespace: n.team.namespace + "-" + of, CreateNamespace: true, ValuesTemplate: calico,
	}}
	object.Namespace, object.Name = n.team.namespace, of+".cni"
	if edit != nil {
		edit(object)
	}
	n.create(object)
	return object
}

// expectNetwork waits for a network, after a number of revisions of the release.
func (n *networks) expectNetwork(object *kubermaticv1.AddonInstallation, want string, revisions int) {
	n.t.Helper()
	expect.Eventually(n.t, expect.Patience, func() error {
		var found corev1.ConfigMap
		if err := n.seed.Get(n.t.Context(), client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "network"}, &found); err != nil {
			return err
		}
		if diff := cmp.Diff(want, found.Data["network"]); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		if got := n.releaseOwners(object.Spec.TargetNamespace); len(got) != revisions {
			return fmt.Errorf("revisions %v, want %d", got, revisions)
		}
		return nil
	})
	n.expectReady(object, kubermaticv1.ReasonReady)
}

// churn changes status as providers and Cluster API do, without end.
func churn(round int) func(object map[string]any) {
	return func(object map[string]any) {
		status, _ := object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			object["status"] = status
		}
		status["observedGeneration"] = int64(round + 1)
		status["conditions"] = []any{map[string]any{
			"type": "Available", "status": []string{"True", "False"}[round%2], "reason": "Round", "message": fmt.Sprint(round),
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		}}
		status["workers"] = map[string]any{"readyReplicas": int64(round), "desiredReplicas": int64(3)}
		if object["kind"] != "Cluster" {
			status["replicas"] = int64(round)
		}
	}
}

// A template as in HelmChartProxies renders in {{ with .CAPI }}. It fails if an edited network is not one upgrade, if
// an edit of the control plane or the infrastructure is none, if a continuously changing status renders anything, or if
// a user's override of a set's template is lost with a release.
func TestValuesOfObjectsOfClusterAPI(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	one := n.add("one", "both")
	n.refer(one, nil)
	n.start()
	n.offer("cni", kubermaticv1.CatalogueCustom, n.version("1.0.0", "cni"), n.version("1.1.0", "cni"))
	object := n.requestFor("one", func(object *kubermaticv1.AddonInstallation) {
		object.Spec.ReleaseName = "team-cni"
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"network":{"mtu":9000}}`)}
	})
	const first = `{"backend":"bgp","mtu":9000,"owner":"net","pools":[{"cidr":"10.1.0.0/16","name":"one-0"}],"port":1}`
	n.expectNetwork(object, first, 1)
	rendered := n.String()
	if n.values.Load() != 1 {
		t.Errorf("rendered for the first revision: %s", rendered)
	}

	plane, infra := n.object(clusterapi.ControlPlaneKind, "one"), n.object(clusterapi.InfraClusterKind, "one")
	for round := range 40 {
		for _, flapping := range []*unstructured.Unstructured{one, plane, infra} {
			n.flap(flapping, churn(round))
		}
	}
	if got := n.String(); got != rendered {
		t.Errorf("renderings by flaps: %s, before %s", got, rendered)
	}
	n.change(one, func(object map[string]any) {
		_ = unstructured.SetNestedStringSlice(object, []string{"10.1.0.0/16", "fd00::/56"}, "spec", "clusterNetwork", "pods", "cidrBlocks")
	})
	second := strings.Replace(first, `"name":"one-0"}`, `"name":"one-0"},{"cidr":"fd00::/56","name":"one-1"}`, 1)
	n.expectNetwork(object, second, 2)
	upgraded := n.objects.Load()
	if n.values.Load() != 2 {
		t.Errorf("rendered by then are %s, want 2 of values", n.String())
	}
	n.change(plane, func(object map[string]any) { _ = unstructured.SetNestedField(object, int64(2), "spec", "port") })
	third := strings.Replace(second, `"port":1`, `"port":2`, 1)
	n.expectNetwork(object, third, 3)
	if again := n.objects.Load() - upgraded; upgraded-1 != again { // one upgrade is rendered like another, and flaps are not
		t.Errorf("rendered are %d for an upgrade behind flaps, %d for the next", upgraded-1, again)
	}
	n.change(infra, func(object map[string]any) { _ = unstructured.SetNestedField(object, "vxlan", "spec", "backend") })
	fourth := strings.Replace(third, "bgp", "vxlan", 1)
	n.expectNetwork(object, fourth, 4)
	n.want(object, "1.1.0")
	n.expectInstalled(object, "1.1.0", "")
	n.expectNetwork(object, fourth, 5)
}

// TestWhatCAPICanNotGive fails if a value that .CAPI lacks is not reported as ValuesMissing with its solution; if the
// message stays after the correction; or if an add-on that does not use the value waits for it.
func TestWhatCAPICanNotGive(t *testing.T) {
	t.Parallel()
	n := newNetworks(t)
	n.start()
	n.offer("cni", kubermaticv1.CatalogueCustom, n.version("1.0.0", "cni"))
	refer := func(field, group, kind string) func(map[string]any) {
		return func(spec map[string]any) { spec[field] = map[string]any{"apiGroup": group, "kind": kind, "name": "x"} }
	}
	cases := map[string]struct {
		edit func(spec map[string]any)
		says string
	}{
		"unlisted": {refer("infrastructureRef", "cloud.example.com", "Secret"), "spec.infrastructureRef of the Cluster refers to a Secret.cloud.example.com, " +
			"which is not one of the kinds that this seed may read: see its --cluster-api-providers"},
		"absent":  {refer("infrastructureRef", clusterapi.InfrastructureGroup, "FleetCluster"), `FleetCluster.infrastructure.cluster.x-k8s.io "x", which does not exist`},
		"unnamed": {func(spec map[string]any) { delete(spec, "controlPlaneRef") }, "the Cluster has no spec.controlPlaneRef yet"},
		"large": {func(spec map[string]any) {
			spec["topology"].(map[string]any)["variables"] = []any{map[string]any{"name": "owner", "value": strings.Repeat("x", 256<<10)}}
		}, `Cluster "large", together with the objects before it, has more than the 256 KiB`},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		test := cases[name]
		of := n.add(name, "both")
		n.refer(of, test.edit)
		object := n.requestFor(name, func(object *kubermaticv1.AddonInstallation) { object.Spec.ReleaseName = "team-cni" })
		expect.Object(t, n.seed, object, func(object *kubermaticv1.AddonInstallation) error {
			if err := expect.Condition(object, kubermaticv1.ConditionValuesResolved, "False", kubermaticv1.ReasonValuesMissing); err != nil {
				return err
			}
			for _, one := range object.Status.Conditions {
				if one.Type == kubermaticv1.ConditionValuesResolved && !strings.Contains(one.Message, test.says) {
					return errors.New(name + ": " + one.Message)
				}
			}
			return nil
		})
		plain := n.requestFor(name, func(object *kubermaticv1.AddonInstallation) {
			object.Name, object.Spec.ReleaseName, object.Spec.TargetNamespace = name+".plain", "plain", object.Spec.TargetNamespace+"-plain"
			object.Spec.ValuesTemplate = "network: {{ .Cluster.Name }}"
		})
		n.expectNetwork(plain, fmt.Sprintf("%q", name), 1)
	}
	late := n.object(clusterapi.InfraClusterKind, "x")
	late.Object["spec"] = map[string]any{"backend": "late"}
	n.create(late)
	object := &kubermaticv1.AddonInstallation{}
	object.Namespace, object.Name = n.team.namespace, "absent.cni"
	object.Spec.TargetNamespace = n.team.namespace + "-absent"
	n.expectNetwork(object, `{"backend":"late","mtu":1350,"owner":"net","pools":[{"cidr":"10.1.0.0/16","name":"absent-0"}],"port":1}`, 1)
}
