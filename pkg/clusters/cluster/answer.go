package cluster

import (
	"context"
	"errors"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// answer is the result of Get. While there is a problem, wake is called at the next change.
func (k *connector) answer(subscriber string, wake func(), cluster target.Description) (*Connection, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if version := cluster.KubernetesVersion; k.version != version { // after an upgrade the API server serves other kinds
		if k.version != "" {
			k.nudge()
		}
		k.version = version
	}
	if confirmed := cluster.Annotations[v1.AnnotationConfirmCluster]; k.confirmed != confirmed {
		k.confirmed = confirmed
		k.nudge()
	}
	if k.problem != nil {
		if wake != nil {
			k.subscribers[subscriber] = wake
		}
		return nil, k.problem
	}
	return k.connection, nil
}

// publish applies the outcome of a visit, and wakes the subscribers if the answer changed.
func (k *connector) publish(l *link, connection *Connection, problem *NotConnectedError) {
	k.mutex.Lock()
	changed := (problem == nil) != (k.problem == nil) || problem != nil && *problem != *k.problem
	k.replace(l, connection, problem)
	k.problem = problem
	var woken map[string]func()
	if changed {
		woken, k.subscribers = k.subscribers, map[string]func(){}
	}
	k.mutex.Unlock()
	for _, wake := range woken {
		wake()
	}
	if changed && k.swapped != nil && problem.isSwap() {
		k.swapped(k.cluster)
	}
}

// replace closes a link that is no longer used, and opens or blocks the current one. It drops a new link whose
// greeting failed: the next visit creates another.
func (k *connector) replace(l *link, connection *Connection, problem *NotConnectedError) {
	if k.connection != nil && k.connection.link != l {
		k.connection.link.close(k.cluster.Name, v1.ReasonClusterNotReady, "the kubeconfig has changed, connecting again")
		k.connection = nil
	}
	switch {
	case problem == nil:
		k.connection, k.everUp = connection, true
		l.blocked.Store(nil)
	case k.connection != nil:
		l.blocked.Store(problem)
	case l != nil:
		l.close(k.cluster.Name, problem.Reason, problem.Message)
	}
}

// linkFailed ignores failures of a link that was replaced.
func (k *connector) linkFailed(l *link, err error) {
	if have := k.known(); have != nil && have.link == l {
		k.fail(err)
	}
}

// fail blocks the connection after a failure of its transport, and asks for a probe.
func (k *connector) fail(err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.problem != nil || k.connection == nil {
		return
	}
	k.problem = k.trouble(v1.ReasonClusterUnreachable, DescribeFailure(err))
	if remote.IsMisbehaviour(err) {
		k.recordOffence(err)
	}
	k.connection.link.blocked.Store(k.problem)
	k.nudge()
}

// instead is the problem of a Cluster whose own status is not ready. An unusable kubeconfig is the likelier cause:
// KKP checks the API server with the same kubeconfig.
func (k *connector) instead(problem *NotConnectedError) *NotConnectedError {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	switch {
	case k.problem != nil && k.problem.Reason == v1.ReasonKubeconfigInvalid:
		return k.problem
	case k.everUp:
		problem.Reason = v1.ReasonClusterUnreachable
	}
	return problem
}

func (k *connector) stop() {
	k.publish(nil, nil, k.trouble(v1.ReasonClusterNotReady, "connections are being closed"))
}

// forgivenAfter is the number of longest rests without an offence that reset the count.
const forgivenAfter = 4

// offences are answers that no correct API server gives. Probes would succeed in spite of them, so each offence
// starts a rest without calls. Nothing shortens the rest: a tenant can change the kubeconfig at any time.
type offences struct {
	count int
	last  time.Time
	over  time.Time
}

// recordOffence requires that the caller holds the mutex, and that a problem is set.
func (k *connector) recordOffence(err error) {
	now := time.Now()
	if now.Sub(k.offences.last) > forgivenAfter*k.pace.most {
		k.offences.count = 0
	}
	k.offences.count++
	k.offences.last, k.offences.over = now, now.Add(k.pace.doubled(k.pace.rest, k.offences.count))
	if misbehaves, ok := errors.AsType[*remote.MisbehavesError](err); ok {
		k.problem = k.trouble(v1.ReasonClusterMisbehaves, misbehaves.Error())
	}
}

// restingProblem is the problem of a cluster during its rest; otherwise nil.
func (k *connector) restingProblem() *NotConnectedError {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if time.Now().Before(k.offences.over) {
		return k.problem
	}
	return nil
}

// await waits for the next visit: for the interval or a nudge, and for the end of a rest. It returns false when the
// context ends.
func (k *connector) await(ctx context.Context, failures int) bool {
	timer := time.NewTimer(k.pace.after(failures))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-k.nudges:
	}
	for {
		k.mutex.Lock()
		left := time.Until(k.offences.over)
		k.mutex.Unlock()
		if left <= 0 {
			return true
		}
		timer.Reset(left)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
		}
	}
}
