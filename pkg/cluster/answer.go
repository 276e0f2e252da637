package cluster

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/remote"
	"github.com/trellis-addons/trellis/pkg/target"
)

// answer is what Get says: the live connection, or what is wrong. While something is, wake is kept.
func (k *keeper) answer(subscriber string, wake func(), cluster target.Description) (*Connection, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if version := cluster.KubernetesVersion; k.version != version { // upgraded: the kinds that it serves are others
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

// settle takes the outcome of a visit over: it opens or blocks links, and wakes the subscribers if the answer is another.
func (k *keeper) settle(l *link, connection *Connection, problem *NotConnectedError) {
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

// replace closes the link that is not used any more, and opens or blocks the one that is. A new link that could not greet
// is not kept: the next visit makes it anew.
func (k *keeper) replace(l *link, connection *Connection, problem *NotConnectedError) {
	if k.connection != nil && k.connection.link != l {
		k.connection.link.close(k.cluster.Name, v1.ReasonClusterNotReady, "the kubeconfig has changed, connecting anew")
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

// linkFailed hears of failures from the links themselves; those of a link that was replaced mean nothing.
func (k *keeper) linkFailed(l *link, err error) {
	if have := k.known(); have != nil && have.link == l {
		k.fail(err)
	}
}

// fail takes the connection out after a failure of its transport, and asks for a probe. Calls under way fail by
// themselves, later ones at once.
func (k *keeper) fail(err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.problem != nil || k.connection == nil {
		return
	}
	k.problem = k.trouble(v1.ReasonClusterUnreachable, DescribeFailure(err))
	if remote.IsMisbehaviour(err) {
		k.offend(err)
	}
	k.connection.link.blocked.Store(k.problem)
	k.nudge()
}

// instead is what to say of a Cluster that is not ready by its own status: a kubeconfig that can't be used is why the API server does
// not seem to be up, where whoever writes the status asks it by the same kubeconfig.
func (k *keeper) instead(problem *NotConnectedError) *NotConnectedError {
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

// stop closes what is open. Subscribers are woken: whatever comes next is another answer.
func (k *keeper) stop() {
	k.settle(nil, nil, k.trouble(v1.ReasonClusterNotReady, "connections are being closed"))
}
