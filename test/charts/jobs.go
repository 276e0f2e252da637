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

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// TaskRun is one run of a task's command.
type TaskRun struct {
	// Output is what it told.
	Output string
	// Failed: it ended with an error.
	Failed bool
}

// RunTask runs the command of a Job's pod as a process of the pod's account. Rights that were made a moment ago may not be known to
// the API server yet.
func RunTask(t *testing.T, where *fleet.Cluster, c client.Client, job *batchv1.Job, program string) (TaskRun, error) {
	t.Helper()
	spec := job.Spec.Template.Spec
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}, Spec: spec}
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		return TaskRun{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: spec.ServiceAccountName, Namespace: job.Namespace}}
	token := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, token); err != nil {
		return TaskRun{}, err
	}
	config, err := clientcmd.Load(where.Kubeconfig)
	if err != nil {
		return TaskRun{}, err
	}
	for _, user := range config.AuthInfos {
		user.Token = token.Status.Token
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		return TaskRun{}, err
	}
	var run TaskRun
	tries := retry.DefaultRetry
	tries.Steps, tries.Duration, tries.Factor = 6, 100*time.Millisecond, 2
	err = retry.OnError(tries, func(error) bool { return strings.Contains(run.Output, "forbidden") }, func() error {
		command := exec.CommandContext(t.Context(), program, append([]string{"--kubeconfig", kubeconfig}, spec.Containers[0].Args...)...)
		output, err := command.CombinedOutput()
		run = TaskRun{string(output), err != nil}
		return err
	})
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		return TaskRun{}, err
	}
	return run, nil
}

// Jobs runs the Jobs of a cluster without controllers and nodes, for as long as a test, and keeps what came of them by their names.
type Jobs struct {
	run   func(job *batchv1.Job) (TaskRun, error)
	mutex sync.Mutex
	runs  map[string]TaskRun
}

// PlayJobs begins to run Jobs by RunTask. A program is the one that an image has, by the last part of the image's name; all are there
// already: Helm waits for its hooks.
func PlayJobs(t *testing.T, where *fleet.Cluster, c client.Client, program func(name string) string) *Jobs {
	t.Helper()
	return PlayJobsBy(t, c, func(job *batchv1.Job) (TaskRun, error) { return RunTask(t, where, c, job, program(programOf(job))) })
}

// PlayJobsBy begins to run Jobs.
func PlayJobsBy(t *testing.T, c client.Client, run func(job *batchv1.Job) (TaskRun, error)) *Jobs {
	t.Helper()
	played := &Jobs{run: run, runs: map[string]TaskRun{}}
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
				played.look(ctx, t, c)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return played
}

func (j *Jobs) look(ctx context.Context, t *testing.T, c client.Client) {
	var found batchv1.JobList
	if err := c.List(ctx, &found); err != nil {
		return // the next look finds them
	}
	for i := range found.Items {
		job := &found.Items[i]
		if len(job.Status.Conditions) > 0 {
			continue
		}
		run, err := j.run(job)
		if err == nil {
			err = finish(ctx, c, job, run.Failed)
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
