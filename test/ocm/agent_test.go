package ocm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/pod"
)

// carriedIn is the time within which a ConfigMap is in the user cluster, also after all that came before was revoked: clients read
// a token's file once a minute.
const carriedIn = 2 * time.Minute

// needed is all that the agent calls on the hub.
var needed = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}},
	{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons"}, Verbs: []string{"get"}},
}

// TestOCMsAgentWorks tells the whole life of an agent that was written for another platform: it logs in, stays logged in over a renewal
// without one refused call and over two rotations without a restart, is judged by its Lease, and cleans up before anything goes.
func TestOCMsAgentWorks(t *testing.T) {
	long.Skip(t, "ocm", "the agent is built from source")
	p := newPlatform(t, needed...)
	var asked []kubermaticv1.AccessRule
	for _, rule := range needed {
		asked = append(asked, kubermaticv1.AccessRule{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs})
	}
	p.offer(asked...)
	p.start()
	object := given.Installation(cluster, addon, addon, place, given.NewNamespace)
	expect.Create(p.t, p.seed, object)
	agent := p.runAgent()
	p.expectReady(object, "True", "", time.Minute)
	p.expectCarried("first", agent)

	p.expectRenewal(object, agent)
	p.expectRotations(object, agent)

	p.expectStale(object, agent)
	agent = p.runAgent()
	p.expectReady(object, "True", "", staleAfter)
	p.expectCleanUp(object)
	if failure := agent.Failure(); failure != nil {
		t.Error(failure)
	}
}

// expectRenewal holds that the agent takes up the next token, and has no call refused.
func (p *platform) expectRenewal(object *kubermaticv1.AddonInstallation, agent *fleet.Process) {
	p.t.Helper()
	before := p.token()
	p.ahead.Store(int64((55 * time.Minute).Seconds()))
	expect.Annotate(p.t, p.seed, object, kubermaticv1.AnnotationReconcileAt, "renewed")
	next := p.expectToken(before)
	p.ahead.Store(0)
	began := time.Now()
	p.expectUsed(next, agent)
	calls := p.hub.seen()
	p.t.Logf("the renewed token was used after %s; %d calls so far", time.Since(began).Round(time.Second), len(calls))
	for _, one := range refused(calls) {
		p.t.Errorf("a call was refused: %s", one)
	}
	p.hub.cutAll()
	p.expectCarried("renewed", agent)
	for _, one := range refused(p.hub.seen()) {
		p.t.Errorf("a call was refused after the renewal: %s", one)
	}
}

// expectRotations revokes all that was issued, twice: the process goes on with what came instead. It has nothing else to go on with: what
// came before is refused already, and what it watched is cut.
func (p *platform) expectRotations(object *kubermaticv1.AddonInstallation, agent *fleet.Process) {
	p.t.Helper()
	for _, value := range []string{"one", "two"} {
		before := p.token()
		expect.Annotate(p.t, p.seed, object, kubermaticv1.AnnotationRotateAt, value)
		p.expectToken(before)
		p.expectRevoked(before)
	}
	before := len(p.hub.seen())
	p.hub.cutAll()
	took := p.expectCarried("rotated", agent)
	calls := p.hub.seen()[before:]
	p.t.Logf("after the second rotation %d of %d calls were refused until the ConfigMap was carried, %s after it was made",
		len(refused(calls)), len(calls), took)
	if err := p.hub.uses(p.token()); err != nil {
		p.t.Error(err)
	}
}

// expectRevoked waits until the hub refuses a token: API servers remember one for ten seconds.
func (p *platform) expectRevoked(token string) {
	p.t.Helper()
	config := rest.AnonymousClientConfig(fleet.Shared().Cluster(hubName).Config)
	config.BearerToken = token
	bearer, err := client.New(config, client.Options{})
	expect.NoError(p.t, err)
	expect.Eventually(p.t, expect.Patience, func() error {
		err := bearer.List(p.t.Context(), &corev1.ConfigMapList{}, client.InNamespace(cluster))
		if !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the former token is not refused: %v", err)
		}
		return nil
	})
}

// expectStale kills the agent, after it renewed its Lease once more at least, and waits until the add-on is not ready for it.
func (p *platform) expectStale(object *kubermaticv1.AddonInstallation, agent *fleet.Process) {
	p.t.Helper()
	first := p.renewed()
	expect.Eventually(p.t, staleAfter, func() error {
		if now := p.renewed(); !now.After(first) {
			return fmt.Errorf("its Lease is of %s", now)
		}
		return nil
	})
	p.expectReady(object, "True", "", time.Second)
	agent.Kill()
	silent := p.renewed()
	const look, pass = staleAfter / 2, 10 * time.Second
	took := p.expectReady(object, "False", kubermaticv1.ReasonLeaseStale, staleAfter+look+pass)
	p.t.Logf("stale %s after the process was killed, %s after it renewed its Lease last", took, time.Since(silent).Round(time.Second))
}

// renewed is when the agent renewed its Lease last, by its own clock.
func (p *platform) renewed() time.Time {
	p.t.Helper()
	found := &coordinationv1.Lease{}
	expect.Get(p.t, p.user, client.ObjectKey{Namespace: place, Name: addon}, found)
	return found.Spec.RenewTime.Time
}

// expectCleanUp removes the add-on. Upstream's cleanup runs as the pod of its Job, and ends before anything is deleted, here or there.
func (p *platform) expectCleanUp(object *kubermaticv1.AddonInstallation) {
	p.t.Helper()
	deletes := p.watchDeletes()
	expect.Delete(p.t, p.seed, object)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "cleanup"}}
	expect.Object(p.t, p.user, job, func(*batchv1.Job) error { return nil })
	process := p.run("cleanup", &job.Spec.Template.Spec)
	select {
	case <-process.Done():
	case <-p.t.Context().Done():
	}
	if !errors.Is(process.Ended(), fleet.ErrEnded) {
		p.t.Fatal(process.Failure())
	}
	copies := &corev1.ConfigMapList{}
	err := p.user.List(p.t.Context(), copies, client.InNamespace(place), client.HasLabels{"synced-from-hub"})
	if err != nil || len(copies.Items) > 0 {
		p.t.Errorf("after its cleanup %d copies are left: %v", len(copies.Items), err)
	}
	p.expectUntouched(deletes)
	p.complete(job)
	expect.Gone(p.t, p.seed, object)
	expect.Gone(p.t, p.user, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "agent"}})
	if len(deletes()) == 0 {
		p.t.Error("no delete was seen, so none could have been too early")
	}
	p.expectNothingLeft()
}

// expectUntouched holds that a further pass deletes nothing, neither in the user cluster nor of what the agent has on the hub.
func (p *platform) expectUntouched(deletes func() []string) {
	p.t.Helper()
	p.manager.Stays(func() error {
		if early := deletes(); len(early) > 0 {
			return fmt.Errorf("before the hook is complete there were %q", early)
		}
		for _, object := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.ServiceAccount{}} {
			if err := p.seed.Get(p.t.Context(), client.ObjectKey{Namespace: cluster, Name: "addon-agent-helloworld-hub"}, object); err != nil {
				return err
			}
		}
		return nil
	}, "addoninstallation")
}

// watchDeletes gives what the controller deletes in the user cluster from now on.
func (p *platform) watchDeletes() func() []string {
	var mutex sync.Mutex
	var seen []string
	p.calls.Watch(manager, gate.Guard{Before: func(call gate.Call) bool {
		mutex.Lock()
		defer mutex.Unlock()
		if call.Method == http.MethodDelete {
			seen = append(seen, call.Path)
		}
		return true
	}})
	return func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(seen)
	}
}

// expectNothingLeft waits until the hub has nothing that was made for the agent.
func (p *platform) expectNothingLeft() {
	p.t.Helper()
	expect.Eventually(p.t, expect.Patience, func() error {
		for _, list := range []client.ObjectList{
			&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{},
		} {
			if err := p.seed.List(p.t.Context(), list, client.InNamespace(cluster), client.HasLabels{kubermaticv1.LabelAccess}); err != nil {
				return err
			}
			if count := meta.LenList(list); count > 0 {
				return fmt.Errorf("there are %d in %T", count, list)
			}
		}
		return nil
	})
}

// runAgent runs the pod of the Deployment, once that is there.
func (p *platform) runAgent() *fleet.Process {
	p.t.Helper()
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "agent"}}
	expect.Object(p.t, p.user, made, func(*appsv1.Deployment) error { return nil })
	return p.run("agent", &made.Spec.Template.Spec)
}

// run runs a pod with upstream's program, until the end of the test at the latest.
func (p *platform) run(name string, spec *corev1.PodSpec) *fleet.Process {
	p.t.Helper()
	reported := filepath.Join(p.t.TempDir(), "log")
	process, err := p.node.Run(p.t.Context(), pod.Container{Name: name, Namespace: place, Spec: *spec, Program: p.agentPath, Log: reported})
	expect.NoError(p.t, err)
	p.t.Cleanup(func() {
		process.Kill()
		if p.t.Failed() {
			p.t.Logf("the end of the log of %s:\n%s", name, fleet.Tail(reported, 30))
		}
	})
	return process
}

// complete ends a Job well.
func (p *platform) complete(job *batchv1.Job) {
	p.t.Helper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	expect.UpdateStatus(p.t, p.user, job)
}

// expectReady waits for condition Ready, and says how long that took.
func (p *platform) expectReady(object *kubermaticv1.AddonInstallation, status, reason string, timeout time.Duration) time.Duration {
	p.t.Helper()
	began := time.Now()
	expect.Eventually(p.t, timeout, func() error {
		if err := p.seed.Get(p.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, status, reason)
	})
	return time.Since(began).Round(time.Second)
}

// token is what the agent's Secret has in the user cluster.
func (p *platform) token() string {
	p.t.Helper()
	found := &corev1.Secret{}
	expect.Get(p.t, p.user, client.ObjectKey{Namespace: place, Name: addon + "-hub"}, found)
	return string(found.Data["token"])
}

// expectToken waits for another token than before.
func (p *platform) expectToken(before string) (token string) {
	p.t.Helper()
	expect.Eventually(p.t, expect.Patience, func() error {
		if token = p.token(); token == before {
			return errors.New("the token is that of before")
		}
		return nil
	})
	return token
}

// expectCarried makes a ConfigMap in the cluster namespace on the hub, and waits for its copy in the user cluster.
func (p *platform) expectCarried(name string, agent *fleet.Process) time.Duration {
	p.t.Helper()
	began := time.Now()
	expect.Create(p.t, p.seed, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}, Data: map[string]string{"word": name}})
	expect.Eventually(p.t, carriedIn, func() error {
		if failure := agent.Failure(); failure != nil {
			p.t.Fatal(failure)
		}
		found := &corev1.ConfigMap{}
		if err := p.user.Get(p.t.Context(), client.ObjectKey{Namespace: place, Name: name}, found); err != nil {
			return err
		}
		if found.Data["word"] != name {
			return fmt.Errorf("the copy has %v", found.Data)
		}
		return nil
	})
	took := time.Since(began).Round(time.Second / 10)
	p.t.Logf("ConfigMap %q was carried in %s", name, took)
	return took
}

// expectUsed has the agent call until it does so with a token.
func (p *platform) expectUsed(token string, agent *fleet.Process) {
	p.t.Helper()
	busy := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "busy"}}
	expect.Create(p.t, p.seed, busy)
	calls := 0
	err := wait.PollUntilContextTimeout(p.t.Context(), time.Second, carriedIn, true, func(ctx context.Context) (bool, error) {
		calls++
		busy.Data = map[string]string{"turn": fmt.Sprint(calls)}
		if err := errors.Join(p.seed.Update(ctx, busy), agent.Failure()); err != nil {
			return false, err
		}
		return p.hub.uses(token) == nil, nil
	})
	if err != nil {
		p.t.Fatalf("the agent does not use what its Secret has: %v", err)
	}
}
