package coreaddon

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/target"
)

// elsewhere says of names in a cluster's namespace, by the cache, whether an installation of another
// cluster has them.
func (r *Reconciler) elsewhere(ctx context.Context, of target.Ref) func(name string) bool {
	return func(name string) bool {
		found := &v1.AddonInstallation{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: name}, found, client.UnsafeDisableDeepCopy)
		return err == nil && !of.Has(found)
	}
}

// nameReleases of Helm, outside of KKP, where an item names none: the item's name, without the cluster
// before it. It can't be changed, so what is there keeps its own.
func (s *set) nameReleases(of target.Ref, installations []v1.AddonInstallation, addons func(name string) *v1.Addon) {
	if of.IsKKP() {
		return
	}
	there := make(map[string]*v1.AddonInstallation, len(installations))
	for i := range installations {
		there[installations[i].Name] = &installations[i]
	}
	for i := range s.wanted {
		one := &s.wanted[i]
		live := there[one.name]
		switch addon := addons(one.addon()); {
		case one.spec.ReleaseName != "":
		case live != nil:
			one.spec.ReleaseName = live.Spec.ReleaseName
		case addon != nil:
			one.spec.ReleaseName = helmrelease.NameForItem(of, one.item, catalogue.TemplateOf(addon, one.spec.AddonRef.Version))
		}
	}
}

// itemOf is the item that has an installation's name in the cluster, for texts; the name where that
// can't be told.
func (s *place) itemOf(name string) string {
	if item, isTold := s.ref.ItemOf(name); isTold {
		return item
	}
	if one := s.set.find(name); one != nil {
		return one.item
	}
	return name
}
