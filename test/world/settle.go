package world

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-addons/trellis/test/expect"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// queues are those of a manager's controllers, by name. Controllers add theirs when they start.
type queues struct {
	mutex  sync.Mutex
	byName map[string]queue
}

func (q *queues) put(name string, made queue) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.byName[name] = made
}

func (q *queues) get(name string) queue {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.byName[name]
}

// queueing is a manager that keeps the queues of the controllers that are added to it.
type queueing struct {
	manager.Manager
	queues *queues
}

// Add implements manager.Manager.
func (q queueing) Add(runnable manager.Runnable) error {
	if added, isController := runnable.(controller.Controller); isController {
		if err := q.queues.keep(added); err != nil {
			return err
		}
	}
	return q.Manager.Add(runnable)
}

func (q *queues) keep(added controller.Controller) error {
	counting, isCounting := added.GetLogger().GetSink().(countingSink)
	if !isCounting {
		return errors.New("the controller does not log through its manager: its reconciliations are not counted")
	}
	return added.Watch(source.Func(func(_ context.Context, made queue) error {
		q.put(counting.values["controller"], made)
		return nil
	}))
}

// Settle makes each controller, in this order, reconcile every object again that it has reconciled, and waits for
// that. A check afterwards replaces waiting to see that nothing happens: see Stays. Settle does not wait for events:
// await first the events that the controllers must have seen, by a condition or by After.
func (m *Manager) Settle(controllers ...string) {
	m.t.Helper()
	for _, name := range controllers {
		expect.Eventually(m.t, expect.Patience, func() error {
			if m.All(name) == 0 {
				return fmt.Errorf("controller %s has reconciled nothing", name)
			}
			return nil
		})
		for settled := 0; ; {
			known := m.of(name)
			if len(known) == settled {
				break
			}
			settled = len(known)
			for of := range known {
				m.request(of)
			}
			for of, before := range known {
				m.reach(of, before+1)
			}
		}
	}
}

// Stays fails the test unless holds returns nil, before and after the controllers have settled.
func (m *Manager) Stays(holds func() error, controllers ...string) {
	m.t.Helper()
	if err := holds(); err != nil {
		m.t.Fatalf("it is not so: %v", err)
	}
	m.Settle(controllers...)
	if err := holds(); err != nil {
		m.t.Fatalf("it did not stay so: %v", err)
	}
}

// After calls cause and waits until the controller has ended a reconciliation of the object that began after the call.
// The cause must lead to one.
func (m *Manager) After(cause func(), controller, namespace, name string) {
	m.t.Helper()
	of := reconciled{controller, namespace, name}
	before := m.Began(controller, namespace, name)
	cause()
	m.reach(of, before+1)
}

// AtRest waits for the end of the reconciliations of an object that began before the call.
func (m *Manager) AtRest(controller string, object client.Object) {
	m.t.Helper()
	of := reconciled{controller, object.GetNamespace(), object.GetName()}
	m.reach(of, m.Began(of.controller, of.namespace, of.name))
}

// request queues an object behind all others: objects that a controller lists at its start have a low priority.
func (m *Manager) request(of reconciled) {
	m.t.Helper()
	one := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: of.namespace, Name: of.name}}
	switch to := m.queues.get(of.controller).(type) {
	case nil:
		m.t.Fatalf("there is no queue of controller %s", of.controller)
	case priorityqueue.PriorityQueue[reconcile.Request]:
		to.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority - 1)}, one)
	default:
		to.Add(one)
	}
}

func (m *Manager) reach(of reconciled, times int) {
	m.t.Helper()
	expect.Eventually(m.t, expect.Patience, func() error {
		if ended := m.Ended(of.controller, of.namespace, of.name); ended < times {
			return fmt.Errorf("%d reconciliations of %+v have ended, want %d", ended, of, times)
		}
		return nil
	})
}
