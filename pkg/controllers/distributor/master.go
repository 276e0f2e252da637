package distributor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// NewMaster makes the view of the master that the controllers of catalogues share, and adds it to the manager. It has a
// cache of its own: on a master that is a seed too, the catalogues that were merged or made available are none of their
// business.
func NewMaster(mgr ctrl.Manager, namespace string) (cluster.Cluster, error) {
	copies, err := labels.NewRequirement(v1.LabelRole, selection.NotIn, []string{v1.RoleMerged, v1.RoleAvailable})
	if err != nil {
		return nil, fmt.Errorf("selecting catalogues: %w", err)
	}
	platform := cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
	master, err := cluster.New(mgr.GetConfig(), func(options *cluster.Options) {
		options.Scheme, options.Logger = mgr.GetScheme(), mgr.GetLogger()
		options.Cache.DefaultTransform = cache.TransformStripManagedFields()
		options.Cache.ByObject = map[client.Object]cache.ByObject{
			&v1.AddonCatalogue{}: {Label: labels.NewSelector().Add(*copies)},
			&kkpv1.Seed{}:        platform,
			&corev1.Secret{}:     platform,
		}
	})
	if err != nil {
		return nil, fmt.Errorf("making the master's cache: %w", err)
	}
	if err := mgr.Add(master); err != nil {
		return nil, fmt.Errorf("adding the master's cache: %w", err)
	}
	return master, nil
}
