package charts

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

// playJobs has the managers of this checkout do the tasks of their charts.
func playJobs(t *testing.T, where *fleet.Cluster, c client.Client) *Jobs {
	t.Helper()
	folder, err := programs() // built before Helm waits
	if err != nil {
		t.Fatal(err)
	}
	return PlayJobs(t, nodeOf(t, where, c, folder), Programs(folder))
}

// nodeOf runs the pods of a cluster by what is in the folder of programs.
func nodeOf(t *testing.T, where *fleet.Cluster, c client.Client, folder string) *pod.Node {
	t.Helper()
	return &pod.Node{Fleet: fleet.Shared(), Cluster: where, Client: c, Folder: disk.TempDir(t), Enter: filepath.Join(folder, pod.Enter)}
}

// helm runs Helm in the platform namespace.
func helm(t *testing.T, where *fleet.Cluster, arguments ...string) (string, error) {
	t.Helper()
	return Helm(t, where, append(arguments, "--namespace", namespace)...)
}

func mustHelm(t *testing.T, where *fleet.Cluster, arguments ...string) {
	t.Helper()
	if output, err := helm(t, where, arguments...); err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// expectCheck runs the command of a chart's test with the account of its pod.
func expectCheck(t *testing.T, r rendering, says string) {
	t.Helper()
	_, objects := render(t, r)
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetName() == r.chart+"-check" && object.GetKind() == "Job"
	})
	if at < 0 {
		t.Fatalf("%s has no test", r)
	}
	job := typed[batchv1.Job](t, objects[at:], "Job")
	folder := filepath.Dir(program(t, r.chart))
	run, err := RunTask(t, nodeOf(t, fleet.Shared().Cluster(cluster), platformClient(t), folder), &job, Programs(folder))
	isWell := strings.HasPrefix(says, "kinds: ok")
	if err != nil || run.Failed == isWell || !strings.Contains(run.Output, says) {
		t.Errorf("the check of %s: %v, failed %t, and told:\n%s", r, err, run.Failed, run.Output)
	}
}
