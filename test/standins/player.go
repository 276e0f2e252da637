package standins

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/world"
)

// Player plays the installation controller of a seed.
type Player struct {
	client client.Client
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]

	mutex     sync.Mutex
	script    script
	courses   map[types.UID]*course
	wrote     Wrote
	observers []Observer
}

// Observer is told what a player wrote.
type Observer interface {
	// Saved: this status is sent at that time. It is told before, so that nobody knows of it earlier; one that the API server doesn't take
	// is followed by another.
	Saved(installation *v1.AddonInstallation, sent time.Time)
	// Gone: the finalizer of a deleted installation is taken off.
	Gone(installation *v1.AddonInstallation, sent time.Time)
}

// Notify has observers told from now on.
func (p *Player) Notify(observers ...Observer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.observers = append(p.observers, observers...)
}

func (p *Player) observersNow() []Observer {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.observers
}

// Wrote counts what a player wrote.
type Wrote struct {
	// Finalizers put on, Statuses, and Removals, which are finalizers taken off.
	Finalizers, Statuses, Removals int
}

// Play has a player serve all installations until the end of the test, or Stop of the manager that it gives.
func Play(t testing.TB, config *rest.Config, rules ...Rule) *Player {
	t.Helper()
	made := world.Seed(t, config, "addon-catalogue")
	p := &Player{client: made.GetClient(), script: rules, courses: map[types.UID]*course{}}
	made.SetUp(p)
	made.Run()
	return p
}

// SetupWithManager puts the player into a manager.
func (p *Player) SetupWithManager(made ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(made).Named("standins").For(&v1.AddonInstallation{}).
		WatchesRawSource(source.Func(p.keepQueue)).WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).Complete(p)
}

func (p *Player) keepQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.queue = queue
	return nil
}

// Direct has other rules count from now on, for all installations. Who was rolled back stays so until it changes.
func (p *Player) Direct(t testing.TB, rules ...Rule) {
	t.Helper()
	p.mutex.Lock()
	p.script = slices.Clone(rules)
	queue := p.queue
	p.mutex.Unlock()
	var list v1.AddonInstallationList
	expect.List(t, p.client, &list, client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
}

// Wrote is what was written so far.
func (p *Player) Wrote() Wrote {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.wrote
}

// Reconcile implements reconcile.Reconciler. A conflict is no failure: what was read was old, and its successor is on its way.
func (p *Player) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	found := &v1.AddonInstallation{}
	if err := p.client.Get(ctx, request.NamespacedName, found); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	wait, err := p.reconcile(ctx, found)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

func (p *Player) reconcile(ctx context.Context, found *v1.AddonInstallation) (time.Duration, error) {
	if p.isOld(found) { // its successor is on its way
		return 0, nil
	}
	if !found.DeletionTimestamp.IsZero() {
		return p.remove(ctx, found)
	}
	if !slices.Contains(found.Finalizers, v1.FinalizerCleanupInstallation) {
		before := found.DeepCopy()
		found.Finalizers = append(found.Finalizers, v1.FinalizerCleanupInstallation)
		if err := p.client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return 0, err
		}
		p.mutex.Lock()
		p.wrote.Finalizers++
		p.mutex.Unlock()
	}
	before := found.DeepCopy()
	wait := p.follow(found)
	return wait, p.save(ctx, before, found)
}

// follow has the installation's course write its status.
func (p *Player) follow(found *v1.AddonInstallation) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.course(found).follow(found, p.script.act(found), time.Now())
}

// course is the installation's own. The mutex must be held.
func (p *Player) course(found *v1.AddonInstallation) *course {
	if p.courses[found.UID] == nil {
		p.courses[found.UID] = courseOf(found)
	}
	return p.courses[found.UID]
}

func (p *Player) remove(ctx context.Context, found *v1.AddonInstallation) (time.Duration, error) {
	if !slices.Contains(found.Finalizers, v1.FinalizerCleanupInstallation) {
		return 0, nil
	}
	before := found.DeepCopy()
	p.mutex.Lock()
	gone, wait := p.course(found).isGone(found, p.script.act(found), time.Now())
	p.mutex.Unlock()
	if !gone {
		return wait, p.save(ctx, before, found)
	}
	found.Status = before.Status
	found.Finalizers = slices.DeleteFunc(found.Finalizers, func(one string) bool { return one == v1.FinalizerCleanupInstallation })
	sent := time.Now()
	for _, observer := range p.observersNow() {
		observer.Gone(found, sent)
	}
	if err := p.client.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.courses, found.UID)
	p.wrote.Removals++
	return 0, nil
}

// isOld says whether the cache hasn't what was written last: played again, it would be told anew and refused.
func (p *Player) isOld(found *v1.AddonInstallation) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	wrote := p.course(found).wrote
	order, err := resourceversion.CompareResourceVersion(found.ResourceVersion, cmp.Or(wrote, found.ResourceVersion))
	return err == nil && order < 0
}

// save writes a status that changed.
func (p *Player) save(ctx context.Context, before, after *v1.AddonInstallation) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	sent := time.Now()
	for _, observer := range p.observersNow() {
		observer.Saved(after, sent)
	}
	if err := p.client.Status().Update(ctx, after); err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.course(after).wrote = after.ResourceVersion
	p.wrote.Statuses++
	return nil
}
