package images_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/values/images"
)

// TestPullsAreWherePodsNameTheSecret fails when a namespace with pods that name the Secret is missing, when pods
// count that name another, or when a label counts on an object that is no Namespace.
func TestPullsAreWherePodsNameTheSecret(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, text := range []string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: b}, spec: {template: {spec: {imagePullSecrets: [{name: own}, {name: mirror}]}}}}",
		"{apiVersion: v1, kind: Pod, metadata: {namespace: a}, spec: {imagePullSecrets: [{name: mirror}]}}",
		"{apiVersion: v1, kind: Pod, metadata: {namespace: other}, spec: {imagePullSecrets: [{name: own}]}}",
		"{apiVersion: v1, kind: Pod, metadata: {namespace: none}, spec: {imagePullSecrets: text}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: short}, spec: {jobTemplate: []}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: labelled, labels: {addons.kubermatic.k8c.io/pull-secret: 'true'}}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: unlabelled, labels: {addons.kubermatic.k8c.io/pull-secret: 'false'}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: x, labels: {addons.kubermatic.k8c.io/pull-secret: 'true'}}}",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	if diff := cmp.Diff([]string{"a", "b", "labelled"}, images.Pulls(objects, "mirror")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
