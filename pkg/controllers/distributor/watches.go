package distributor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	usercluster "github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
)

// everything is the distributor's one request: a merge needs all catalogues.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}

// SetupWithManager registers all controllers.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.options.Namespace == r.options.CatalogueNamespace {
		return fmt.Errorf("flags --namespace and --catalogue-namespace are both %q: give them different namespaces, since merged and "+
			"authored catalogues would collide",
			r.options.Namespace)
	}
	for _, runnable := range []interface{ Start(context.Context) error }{r.workers, r.usage} {
		if err := mgr.Add(runnable); err != nil {
			return fmt.Errorf("adding to the manager: %w", err)
		}
	}
	if err := r.watchInputs(mgr, r.master.GetCache()); err != nil {
		return err
	}
	if err := r.reporter.SetupWithManager(mgr, r.master.GetCache()); err != nil {
		return err
	}
	return r.fleet.SetupWithManager(mgr, r.master.GetCache())
}

func (r *Reconciler) watchInputs(mgr ctrl.Manager, from cache.Cache) error {
	// None of these changes with our own status writes. A stub differs from the whole object by an annotation.
	edits := predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
	)
	catalogues, changes := predicate.Or[client.Object](edits, gitRead), r.gathering.Changes(everything)
	return loop.Register(mgr, "distributor",
		controller.Options{Reconciler: r.gathering.Wrap(r.Reconcile), MaxConcurrentReconciles: 1},
		source.Kind[client.Object](from, &v1.AddonCatalogue{}, changes, catalogues),
		source.Kind[client.Object](from, &v1.AddonSet{}, changes, predicate.Or[client.Object](edits, protected)),
		source.Kind[client.Object](from, usercluster.SeedObject(), changes),
		source.Kind[client.Object](from, loop.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")), changes))
}

// gitRead passes events of a catalogue in git that was read, or can't be read any more: it loses add-ons that its content lacks.
var gitRead = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*v1.AddonCatalogue), e.ObjectNew.(*v1.AddonCatalogue)
	return after.Spec.Git != nil && (before.Status.Addons != after.Status.Addons || isFetched(before) != isFetched(after))
}}

// protected passes events of a set that got its finalizer, or lost it.
var protected = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
}}

// Master is the client of the master that the controllers of catalogues share.
type Master struct {
	cluster.Cluster
	// Held and HeldSets bound the memory of catalogues and sets in its cache.
	Held     *budget.Budget[v1.AddonCatalogue, *v1.AddonCatalogue]
	HeldSets *budget.Budget[v1.AddonSet, *v1.AddonSet]
}

// NewMaster returns a Master. It has its own cache, without merged and available catalogues and copies of sets, for a
// master that is also a seed.
func NewMaster(mgr ctrl.Manager, namespace string) (*Master, error) {
	copies, err := labels.NewRequirement(v1.LabelRole, selection.NotIn, []string{v1.RoleMerged, v1.RoleAvailable})
	if err != nil {
		return nil, fmt.Errorf("selecting catalogues: %w", err)
	}
	written, err := labels.NewRequirement(v1.LabelRole, selection.NotIn, []string{v1.RoleCopy})
	if err != nil {
		return nil, fmt.Errorf("selecting sets: %w", err)
	}
	held, heldSets := budget.New[v1.AddonCatalogue](catalogue.Budget(namespace)), budget.New[v1.AddonSet](addonset.Budget(namespace))
	platform := cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
	master, err := cluster.New(mgr.GetConfig(), func(options *cluster.Options) {
		options.Scheme, options.Logger = mgr.GetScheme(), mgr.GetLogger()
		options.NewClient, options.Cache.DefaultTransform = loop.NewClient, cache.TransformStripManagedFields()
		options.Cache.ByObject = map[client.Object]cache.ByObject{
			&v1.AddonCatalogue{}:     {Label: labels.NewSelector().Add(*copies), Transform: held.Transform},
			&v1.AddonSet{}:           {Label: labels.NewSelector().Add(*written), Transform: heldSets.Transform},
			usercluster.SeedObject(): platform,
			&corev1.Secret{}:         platform,
		}
	})
	if err != nil {
		return nil, fmt.Errorf("creating the master's cache: %w", err)
	}
	if err := mgr.Add(master); err != nil {
		return nil, fmt.Errorf("adding the master's cache: %w", err)
	}
	return &Master{Cluster: master, Held: held, HeldSets: heldSets}, nil
}
