package cluster

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// answer is what Get says: the live connection, or what is wrong. While something is, wake is kept.
func (k *keeper) answer(subscriber string, wake func(), version string) (*Connection, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.version != version { // upgraded: the kinds that it serves are others
		if k.version != "" {
			k.nudge()
		}
		k.version = version
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
}

// replace closes the link that is not used any more, and opens or blocks the one that is. A new link that could not greet
// is not kept: the next visit makes it anew.
func (k *keeper) replace(l *link, connection *Connection, problem *NotConnectedError) {
	if k.connection != nil && k.connection.link != l {
		k.connection.link.close(k.identity.Name, v1.ReasonClusterNotReady, "the kubeconfig has changed, connecting anew")
		k.connection = nil
	}
	switch {
	case problem == nil:
		k.connection, k.everUp = connection, true
		l.blocked.Store(nil)
	case k.connection != nil:
		l.blocked.Store(problem)
	case l != nil:
		l.close(k.identity.Name, problem.Reason, problem.Message)
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
	k.problem = k.trouble(v1.ReasonClusterUnreachable, describe(err))
	k.connection.link.blocked.Store(k.problem)
	k.nudge()
}

// wasUp says whether the cluster was ever connected to.
func (k *keeper) wasUp() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.everUp
}

// stop closes what is open. Subscribers are woken: whatever comes next is another answer.
func (k *keeper) stop() {
	k.settle(nil, nil, k.trouble(v1.ReasonClusterNotReady, "connections are being closed"))
}
