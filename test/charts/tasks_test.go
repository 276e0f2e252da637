package charts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

// taskRun is one run of a task's command.
type taskRun struct {
	output string
	failed bool
}

// runTask runs the command of a Job's pod as a process of the pod's account. Rights that were made a moment ago may not be known to
// the API server yet.
func runTask(t *testing.T, where *fleet.Cluster, c client.Client, job *batchv1.Job) (taskRun, error) {
	t.Helper()
	spec := job.Spec.Template.Spec
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}, Spec: spec}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		return taskRun{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: spec.ServiceAccountName, Namespace: job.Namespace}}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		return taskRun{}, err
	}
	config, err := clientcmd.Load(where.Kubeconfig)
	if err != nil {
		return taskRun{}, err
	}
	for _, user := range config.AuthInfos {
		user.Token = token.Status.Token
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return taskRun{}, err
	}
	chart := "trellis-master"
	if strings.Contains(spec.Containers[0].Image, "seed-controller-manager") {
		chart = "trellis-seed"
	}
	var run taskRun
	tries := retry.DefaultRetry
	tries.Steps, tries.Duration, tries.Factor = 6, 100*time.Millisecond, 2
	err = retry.OnError(tries, func(error) bool { return strings.Contains(run.output, "forbidden") }, func() error {
		command := exec.CommandContext(t.Context(), program(t, chart), append([]string{"--kubeconfig", path}, spec.Containers[0].Args...)...)
		output, err := command.CombinedOutput()
		run = taskRun{string(output), err != nil}
		return err
	})
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		return taskRun{}, err
	}
	return run, nil
}

// jobs runs the Jobs of a cluster without controllers and nodes, for as long as a test, and keeps what came of them by their names.
type jobs struct {
	mutex sync.Mutex
	runs  map[string]taskRun
}

func playJobs(t *testing.T, where *fleet.Cluster, c client.Client) *jobs {
	t.Helper()
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		program(t, chart) // built before Helm waits
	}
	played := &jobs{runs: map[string]taskRun{}}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				played.look(ctx, t, where, c)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return played
}

func (j *jobs) look(ctx context.Context, t *testing.T, where *fleet.Cluster, c client.Client) {
	var found batchv1.JobList
	if err := c.List(ctx, &found); err != nil {
		return // the next look finds them
	}
	for i := range found.Items {
		job := &found.Items[i]
		if len(job.Status.Conditions) > 0 {
			continue
		}
		run, err := runTask(t, where, c, job)
		if err == nil {
			err = finish(ctx, c, job, run.failed)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("running Job %q: %v", job.Name, err)
		}
		j.mutex.Lock()
		j.runs[job.Name] = run
		j.mutex.Unlock()
	}
}

// output of the last run of a Job.
func (j *jobs) output(name string) string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.runs[name].output
}

// finish writes what the Job controller would.
func finish(ctx context.Context, c client.Client, job *batchv1.Job, failed bool) error {
	now := metav1.Now()
	job.Status.StartTime = &now
	before, after := batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	if failed {
		before, after = batchv1.JobFailureTarget, batchv1.JobFailed
		job.Status.Failed = 1
	} else {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, kind := range []batchv1.JobConditionType{before, after} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Played", LastTransitionTime: now, LastProbeTime: now,
		})
	}
	return c.Status().Update(ctx, job)
}

// helm runs Helm with the rights of an admin.
func helm(t *testing.T, where *fleet.Cluster, arguments ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, where.Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), programOfOthers(t, "helm"), append(arguments, "--namespace", namespace)...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + kubeconfig}
	output, err := command.CombinedOutput()
	return string(output), err
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
	run, err := runTask(t, fleet.Shared().Cluster(cluster), platformClient(t), &job)
	isWell := strings.HasPrefix(says, "kinds: as")
	if err != nil || run.failed == isWell || !strings.Contains(run.output, says) {
		t.Errorf("the check of %s: %v, failed %t, and told:\n%s", r, err, run.failed, run.output)
	}
}
