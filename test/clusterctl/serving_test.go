package clusterctl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// seed is the Deployment of the seed's manager, and its ServiceAccount.
const seed = "trellis-seed"

// right is a verb on a resource of a group, in a namespace that is a team's.
type right struct{ verb, group, resource string }

// granted is what Clusters of Cluster API take: they are found and annotated, and their kubeconfigs and kubeadm's control planes read.
var granted = []right{
	{"get", "cluster.x-k8s.io", "clusters"}, {"list", "cluster.x-k8s.io", "clusters"},
	{"watch", "cluster.x-k8s.io", "clusters"}, {"patch", "cluster.x-k8s.io", "clusters"},
	{"get", "", "secrets"}, {"list", "", "secrets"}, {"watch", "", "secrets"},
	{"get", "controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes"}, {"list", "controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes"},
	{"watch", "controlplane.cluster.x-k8s.io", "kubeadmcontrolplanes"},
}

// denied is what nobody named, and what would be KKP's to do.
var denied = []right{
	{"get", "controlplane.cluster.x-k8s.io", "rke2controlplanes"}, {"get", "infrastructure.cluster.x-k8s.io", "dockerclusters"},
	{"delete", "cluster.x-k8s.io", "clusters"}, {"patch", "kubermatic.k8c.io", "clusters/status"}, {"create", "", "namespaces"},
}

// expectServing holds when what clusterctl installed serves Clusters of Cluster API: the seed's manager is told to, and may.
func expectServing(t *testing.T) {
	t.Helper()
	c := kubernetes.NewForConfigOrDie(fleet.Shared().Cluster(management).Config)
	deployment, err := c.AppsV1().Deployments("kubermatic").Get(t.Context(), seed, metav1.GetOptions{})
	expect.NoError(t, err)
	got := slices.DeleteFunc(slices.Clone(deployment.Spec.Template.Spec.Containers[0].Args), func(argument string) bool {
		return !strings.HasPrefix(argument, "--cluster-") && !strings.HasPrefix(argument, "--hold-") && argument != "--standalone"
	})
	want := []string{
		"--cluster-kinds=cluster-api", "--cluster-api-providers=kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "--hold-upgrades=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments of the seed's manager (-want +got):\n%s", diff)
	}
	// The authorizer follows roles by watches of its own: once it grants all that it should, what it denies counts.
	for _, one := range granted {
		expect.Eventually(t, expect.Patience, func() error { return review(t, c, one, true) })
	}
	for _, one := range denied {
		if err := review(t, c, one, false); err != nil {
			t.Error(err)
		}
	}
}

// review asks the API server whether the seed's manager has a right.
func review(t *testing.T, c kubernetes.Interface, one right, isGranted bool) error {
	t.Helper()
	resource, subresource, _ := strings.Cut(one.resource, "/")
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:kubermatic:" + seed,
		Groups: []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "team", Verb: one.verb, Group: one.group, Resource: resource, Subresource: subresource,
		},
	}}
	answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), asked, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking whether it may %s %s.%s: %w", one.verb, one.resource, one.group, err)
	}
	if answer.Status.Allowed != isGranted {
		return fmt.Errorf("it may %s %s.%s: %t, want %t", one.verb, one.resource, one.group, answer.Status.Allowed, isGranted)
	}
	return nil
}
