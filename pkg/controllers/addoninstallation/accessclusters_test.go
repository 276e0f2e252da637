package addoninstallation_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Agents of Clusters that share a name or a namespace.

// newAgentTeam is a team whose platform allows agents to read ConfigMaps.
func newAgentTeam(t *testing.T) *team {
	t.Helper()
	m := newTeam(t)
	m.driftInterval = time.Second
	m.agents = &access.Options{Hub: hubOf(fleet.Shared().Cluster("both").Config)}
	m.list(kubermaticv1.AgentsCustom, reading("configmaps"))
	m.publishInto("agent", m.unique("agent"), m.agent("1.0.0", tokenFor("hub", reading("configmaps"))))
	return m
}

// bearerOver is bearer for any user cluster of the fleet.
func (w *world) bearerOver(config *rest.Config, object *kubermaticv1.AddonInstallation) client.Client {
	w.t.Helper()
	over := *w
	made, err := client.New(config, client.Options{Scheme: w.seed.Scheme()})
	expect.NoError(w.t, err)
	over.seed = made
	return over.bearer(object, "hub")
}

// AG05: Two Clusters of one name in two namespaces each have an add-on of one name. Each agent reads its own namespace
// and is refused in the other's, and its credential stays valid when the other's is removed.
func TestAgentsOfClustersOfOneNameAreApart(t *testing.T) {
	t.Parallel()
	m := newAgentTeam(t)
	twin := &team{world: m.world, namespace: m.namespace + "-twin", owner: m.owner}
	m.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin.namespace}})
	m.neighbours = append(m.neighbours, twin.namespace)
	m.add("one", "both")
	twin.add("one", "elsewhere")
	m.start()
	object, other := m.requestIn("one", "one.agent", "agent"), twin.requestIn("one", "one.agent", "agent")
	m.ready(object)
	m.ready(other)
	bearer := m.bearerOver(fleet.Shared().Cluster("both").Config, object)
	stays := m.bearerOver(fleet.Shared().Cluster("elsewhere").Config, other)
	for namespace, of := range map[string]struct {
		own, foreign client.Client
		object       *kubermaticv1.AddonInstallation
	}{m.namespace: {bearer, stays, object}, twin.namespace: {stays, bearer, other}} {
		if want := "system:serviceaccount:" + namespace + ":addon-agent-one.agent-hub"; of.object.Status.Access[0].Subject != want {
			t.Errorf("the agent is %q, want %q", of.object.Status.Access[0].Subject, want)
		}
		if err := of.own.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)); err != nil {
			t.Errorf("what is listed is refused in %q: %v", namespace, err)
		}
		if err := of.foreign.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
			t.Errorf("the other's agent is answered in %q with %v", namespace, err)
		}
	}
	m.delete(object)
	expect.Gone(t, m.seed, object)
	m.expectNothingMade(object)
	expect.Eventually(t, expect.Patience, func() error {
		if err := bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(m.namespace)); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the former token is answered with %v", err)
		}
		return nil
	})
	if err := stays.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(twin.namespace)); err != nil {
		t.Errorf("the other's agent is refused: %v", err)
	}
	m.ready(other)
}

// AG05: A Cluster of Cluster API in the namespace of a KKP Cluster shares it: neither agent has rights until its
// Cluster is alone again.
func TestClustersOfTwoKindsShareTheirNamespace(t *testing.T) {
	t.Parallel()
	m := newAgentTeam(t)
	ofKKP := &team{world: m.world, namespace: m.world.namespace, owner: m.owner}
	m.start()
	object := m.install("agent", "")
	m.ready(object)
	bearer := m.bearer(object, "hub")
	list := func() error {
		return bearer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(object.Namespace))
	}
	if err := list(); err != nil {
		t.Errorf("what is listed is refused: %v", err)
	}
	second := ofKKP.add("second", "elsewhere")
	m.expectAccess(object, "False", kubermaticv1.ReasonSharedNamespace, "--agents-in-shared-namespaces")
	expect.Eventually(t, expect.Patience, func() error {
		if err := list(); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the agent is answered with %v", err)
		}
		return nil
	})
	request := ofKKP.requestIn("second", "second.agent", "agent")
	m.expectAccess(request, "False", kubermaticv1.ReasonSharedNamespace, "--agents-in-shared-namespaces")
	m.delete(request)
	expect.Gone(t, m.seed, request)
	gone := &unstructured.Unstructured{}
	gone.SetGroupVersionKind(clusterapi.ClusterKind)
	gone.SetNamespace(second.GetNamespace())
	gone.SetName(second.GetName())
	m.delete(gone)
	expect.Gone(t, m.seed, gone)
	m.ready(object)
	expect.Eventually(t, expect.Patience, list)
}
