package survey_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/test/lab"
)

var statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

// A workload's template changes. The test compares Trellis' health, after the workload's controller has finished its
// automatic work, with the result and message of `kubectl rollout status`. kubectl does not support OnDelete; for Helm
// it is ready, as for Trellis. It fails if a DaemonSet with OnDelete waits for its Pods, and if kstatus uses condition
// Progressing of a paused Deployment.
func TestHealthBesideKubectlRolloutStatus(t *testing.T) {
	const healthy, waits = "1/1 healthy, 0 failing, in progress false, ", "0/1 healthy, 0 failing, in progress true, "
	const onDelete = "rollout status is only available for RollingUpdate strategy type"
	for _, test := range []struct {
		name, kind, spec string
		// edit is made between the two versions; if image is "", the template does not change.
		edit, image string
		// updated is the final number of Pods of the new template.
		updated int64
		want    string
		isOver  bool
		says    string
	}{
		{"RollingUpdate", "DaemonSet", "updateStrategy: {type: RollingUpdate}, ", "", "web:2", 1, healthy, true, "successfully rolled out"},
		{"OnDelete", "DaemonSet", "updateStrategy: {type: OnDelete}, ", "", "web:2", 0, healthy, false, onDelete},
		{"RollingUpdate", "StatefulSet", "serviceName: u, replicas: 2, ", "", "web:2", 2, healthy, true, "roll out complete: 2 new pods"},
		{"OnDelete", "StatefulSet", "serviceName: u, replicas: 2, updateStrategy: {type: OnDelete}, ", "", "web:2", 0, healthy, false, onDelete},
		{"a partition", "StatefulSet", "serviceName: u, replicas: 2, updateStrategy: {rollingUpdate: {partition: 1}}, ", "", "web:2", 1, healthy, true,
			"roll out complete: 1 new pods"},
		{"all behind the partition", "StatefulSet", "serviceName: u, replicas: 2, updateStrategy: {rollingUpdate: {partition: 2}}, ", "", "web:2", 0, healthy, true,
			"roll out complete: 0 new pods"},
		{"paused", "Deployment", "replicas: 1, ", "{spec: {paused: true}}", "web:2", 0, waits + "Deployment:InProgress", false, "0 out of 1 new replicas"},
		{"paused when it was through", "Deployment", "replicas: 1, ", "{spec: {paused: true}}", "", 1, healthy, true, "successfully rolled out"},
	} {
		t.Run(test.kind+" "+test.name, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			resource := map[string]schema.GroupVersionResource{"DaemonSet": daemonSets, "StatefulSet": statefulSets, "Deployment": lab.Deployments}[test.kind]
			manifest := `{apiVersion: apps/v1, kind: ` + test.kind + `, metadata: {name: u}, spec: {selector: {matchLabels: {app: u}}, ` + test.spec +
				`template: {metadata: {labels: {app: u}}, spec: {containers: [{name: main, image: "example.com/web:1"}]}}}}`
			inventory := l.Install(l.Prepare(manifest), nil)
			l.Eventually("it has its Pods", func() bool { return l.Assess(inventory).Healthy == 1 && podsOf(l, "web:1") > 0 })
			if test.edit != "" {
				l.Edit(resource, "u", test.edit)
			}
			if test.image != "" {
				inventory = l.Update(strings.ReplaceAll(manifest, "web:1", test.image), inventory)
			}
			l.Eventually("its controller has done what it does by itself", func() bool {
				live := l.Get(resource, l.Unique, "u")
				observed, _, _ := lab.NestedInt(live, "status", "observedGeneration")
				field := "updatedReplicas"
				if test.kind == "DaemonSet" {
					field = "updatedNumberScheduled"
				}
				updated, _, _ := lab.NestedInt(live, "status", field)
				conditions := fmt.Sprint(live.Object["status"])
				return observed == live.GetGeneration() && updated == test.updated && (test.edit == "" || strings.Contains(conditions, "DeploymentPaused"))
			})
			l.Eventually("it is judged as "+test.want, func() bool { return states(l.Assess(inventory)) == test.want })
			output, err := l.Program("kubectl").Run("rollout", "status", strings.ToLower(test.kind)+"/u", "--timeout=3s")
			if t.Logf("kubectl says %q, Trellis %s", output, states(l.Assess(inventory))); (err == nil) != test.isOver || !strings.Contains(output, test.says) {
				t.Errorf("kubectl ends with %v, want %q", err, test.says)
			}
		})
	}
}

// podsOf counts the test's Pods with that image.
func podsOf(l *lab.Lab, image string) (count int) {
	l.Helper()
	for _, pod := range lab.Must(l.Others.Resource(lab.PodsOf).Namespace(l.Unique).List(l.Context(), metav1.ListOptions{}))(l).Items {
		if strings.Contains(fmt.Sprint(pod.Object["spec"]), image) {
			count++
		}
	}
	return count
}
