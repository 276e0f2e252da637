package endtoend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// mirror is the platform's pull Secret, which the managers of these tests are told of.
const mirror = "mirror"

// testPullSecret: a namespace has a copy of the platform's pull Secret as long as an add-on is installed whose pods there name it, and what
// is on record of it goes with it. It turns red when the role of the seed has no right to keep that record.
func testPullSecret(t *testing.T, box *sandbox.Sandbox, cluster sandbox.UserCluster) {
	seed, user := box.Client(cluster.Seed), box.Client(cluster.Name)
	original := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: sandbox.Namespace, Name: mirror, Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UsePull},
		},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}
	expect.Ensure(t, seed, original)
	commit(t, box, "pulling", map[string]string{
		"job.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: pulling}\n" +
			"spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " +
			"imagePullSecrets: [{name: " + mirror + "}], containers: [{name: one, image: registry.example/one}]}}}}}\n",
	})
	catalogue := catalogueOf("pulling", gitVersion(box, "pulling", ""))
	expect.Ensure(t, box.Client(sandbox.Master), catalogue)
	installation := newInstallation("pulling", "pulling")
	installation.Namespace = cluster.Namespace()
	installation.Spec.TargetNamespace, installation.Spec.CreateNamespace = metav1.NamespaceDefault, false
	if cluster.Namespace() == sandbox.Team {
		installation.Spec.ClusterName = cluster.Name
	}
	expect.Ensure(t, seed, installation)
	ready(t, seed, installation)
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: mirror}}
	expect.Object(t, user, copied, func(*corev1.Secret) error { return nil })
	records := func() (all corev1.ConfigMapList) {
		expect.List(t, seed, &all, client.MatchingLabels{kubermaticv1.LabelManagedBy: "pull-secret"})
		return all
	}
	if count := len(records().Items); count != 1 {
		t.Errorf("%d records are there", count)
	}
	dropInstallation(t, seed, installation)
	expect.Gone(t, user, copied)
	if left := records().Items; len(left) > 0 {
		t.Errorf("it is on record still: %v", left)
	}
	expect.Delete(t, box.Client(sandbox.Master), catalogue)
	expect.Gone(t, seed, merged("pulling"))
}
