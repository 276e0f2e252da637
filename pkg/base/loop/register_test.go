package loop_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/test/expect"
)

// adding stores the runnables that are added to a manager that does not run.
type adding struct {
	manager.Manager
	added manager.Runnable
}

// Add implements manager.Manager.
func (a *adding) Add(runnable manager.Runnable) error {
	a.added = runnable
	return nil
}

// TestRegisteredControllersTryErrorsEveryFiveMinutes fails when a controller is registered with other waits after
// errors, such as controller-runtime's own, whose longest is a quarter of an hour.
func TestRegisteredControllersTryErrorsEveryFiveMinutes(t *testing.T) {
	made, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	expect.NoError(t, err)
	to, longest := &adding{Manager: made}, time.Duration(0)
	ctx, cancel := context.WithCancel(t.Context())
	expect.NoError(t, loop.Register(to, "waiting", controller.Options{
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil }),
		NewQueue: func(_ string, waits workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			for range 40 {
				longest = max(longest, waits.When(reconcile.Request{}))
			}
			cancel()
			return workqueue.NewTypedRateLimitingQueue(waits)
		},
	}))
	expect.NoError(t, to.added.Start(ctx))
	if longest != 5*time.Minute {
		t.Errorf("the longest wait is %s", longest)
	}
}
