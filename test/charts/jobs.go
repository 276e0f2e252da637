package charts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/pod"
)

// TaskRun is one run of a task's command.
type TaskRun struct {
	// Output is what it told.
	Output string
	// Failed: it ended with an error.
	Failed bool
}

// Launch gives the container of a Job what it is started from: a program, or an image. The name is that of the program in the Job's image.
type Launch func(container *pod.Container, name string) error

// Programs launches what is in a folder.
func Programs(folder string) Launch {
	return func(container *pod.Container, name string) error {
		container.Program = filepath.Join(folder, name)
		return nil
	}
}

// RunTask runs the pod of a Job to its end. Rights that were made a moment ago may not be known to the API server yet.
func RunTask(t *testing.T, node *pod.Node, job *batchv1.Job, launch Launch) (TaskRun, error) {
	t.Helper()
	container := pod.Container{
		Name: job.Name, Namespace: job.Namespace, Spec: job.Spec.Template.Spec, Log: filepath.Join(t.TempDir(), "log"),
	}
	admitted := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}, Spec: container.Spec}
	if err := node.Client.Create(t.Context(), admitted, client.DryRunAll); err != nil {
		return TaskRun{}, err
	}
	if err := launch(&container, programOf(job)); err != nil {
		return TaskRun{}, err
	}
	var run TaskRun
	tries := retry.DefaultRetry
	tries.Steps, tries.Duration, tries.Factor = 6, 100*time.Millisecond, 2
	err := retry.OnError(tries, func(error) bool { return strings.Contains(run.Output, "forbidden") }, func() (err error) {
		run, err = runOnce(t.Context(), node, container)
		if err == nil && run.Failed {
			err = errFailed
		}
		return err
	})
	if errors.Is(err, errFailed) {
		err = nil
	}
	return run, err
}

// errFailed is that of a task, and not of whoever runs it.
var errFailed = errors.New("the task failed")

func runOnce(ctx context.Context, node *pod.Node, container pod.Container) (TaskRun, error) {
	if err := os.Remove(container.Log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return TaskRun{}, err
	}
	process, err := node.Run(ctx, container)
	if err != nil {
		return TaskRun{}, err
	}
	select {
	case <-process.Done():
	case <-ctx.Done():
		process.Kill()
		return TaskRun{}, context.Cause(ctx)
	}
	output, err := os.ReadFile(container.Log)
	return TaskRun{Output: string(output), Failed: !errors.Is(process.Ended(), fleet.ErrEnded)}, err
}

// Jobs runs the Jobs of a cluster without controllers and nodes, for as long as a test, and keeps what came of them by their names.
type Jobs struct {
	node   *pod.Node
	launch Launch
	mutex  sync.Mutex
	runs   map[string]TaskRun
}

// PlayJobs begins to run Jobs on a node. What launches them is there already: Helm waits for its hooks.
func PlayJobs(t *testing.T, node *pod.Node, launch Launch) *Jobs {
	t.Helper()
	played := &Jobs{node: node, launch: launch, runs: map[string]TaskRun{}}
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
				played.look(ctx, t)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return played
}

func (j *Jobs) look(ctx context.Context, t *testing.T) {
	var found batchv1.JobList
	if err := j.node.Client.List(ctx, &found); err != nil {
		return // the next look finds them
	}
	for i := range found.Items {
		job := &found.Items[i]
		if len(job.Status.Conditions) > 0 {
			continue
		}
		run, err := RunTask(t, j.node, job, j.launch)
		if err == nil {
			err = finish(ctx, j.node.Client, job, run.Failed)
		}
		if err != nil && ctx.Err() == nil {
			t.Errorf("running Job %q: %v", job.Name, err)
		}
		j.mutex.Lock()
		j.runs[job.Name] = run
		j.mutex.Unlock()
	}
}

// Output of the last run of a Job.
func (j *Jobs) Output(name string) string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.runs[name].Output
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

// programOf is the last part of the name of a Job's image.
func programOf(job *batchv1.Job) string {
	name, _, _ := strings.Cut(path.Base(job.Spec.Template.Spec.Containers[0].Image), ":")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// Helm runs the program with the rights of an admin, and gives what it told.
func Helm(t *testing.T, where *fleet.Cluster, arguments ...string) (string, error) {
	t.Helper()
	cache, err := binaries.Cache()
	if err != nil {
		return "", err
	}
	program, err := binaries.Find(cache, "helm", "")
	if err != nil {
		return "", err
	}
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.WriteFile(kubeconfig, where.Kubeconfig, 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + kubeconfig}
	output, err := command.CombinedOutput()
	return string(output), err
}
