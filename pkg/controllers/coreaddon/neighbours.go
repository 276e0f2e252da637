package coreaddon

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
)

// elsewhere returns a function that reports, by the cache, whether an installation of another cluster of the
// namespace has a name.
func (r *Reconciler) elsewhere(ctx context.Context, of target.Ref) func(name string) bool {
	return func(name string) bool {
		found := &v1.AddonInstallation{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: name}, found, client.UnsafeDisableDeepCopy)
		return err == nil && !of.Has(found)
	}
}

// complete fills in the fields that items leave out: the target namespace, which is then the catalogue's, and outside
// of KKP the Helm release, which has the item's name without the cluster's before it. Both are immutable, so an
// existing installation keeps its own.
func (s *set) complete(of target.Ref, installations []v1.AddonInstallation, addons func(name string) *v1.Addon) {
	lacks := func(one wanted) bool { return one.spec.TargetNamespace == "" }
	if of.IsKKP() && !slices.ContainsFunc(s.wanted, lacks) {
		return
	}
	there := make(map[string]*v1.AddonInstallation, len(installations))
	for i := range installations {
		there[installations[i].Name] = &installations[i]
	}
	for i := range s.wanted {
		one := &s.wanted[i]
		live := there[one.name]
		addon := addons(one.addon())
		one.land(live, addon)
		switch {
		case of.IsKKP(), one.spec.ReleaseName != "":
		case live != nil:
			one.spec.ReleaseName = live.Spec.ReleaseName
		case addon != nil:
			one.spec.ReleaseName = helmrelease.NameForItem(of, one.item, catalogue.TemplateOf(addon, one.spec.AddonRef.Version))
		}
	}
}

// land sets the namespace that an item is installed in. The existing installation and the add-on may be nil.
func (w *wanted) land(live *v1.AddonInstallation, addon *v1.Addon) {
	var there, offered installation.Landing
	if live != nil {
		there = installation.Landing{Namespace: live.Spec.TargetNamespace, Create: live.Spec.CreateNamespace}
	}
	if addon != nil {
		offered = installation.Landing{Namespace: addon.TargetNamespace, Create: addon.CreateNamespace}
	}
	landing := installation.LandingOf(installation.Landing{Namespace: w.spec.TargetNamespace, Create: w.spec.CreateNamespace}, there, offered)
	w.spec.TargetNamespace, w.spec.CreateNamespace = landing.Namespace, landing.Create
}

// itemOf is the item of an installation, by its name in the cluster, for messages; the name itself if the item is
// unknown.
func (s *place) itemOf(name string) string {
	if item, isItem := s.ref.ItemOf(name); isItem {
		return item
	}
	if one := s.set.find(name); one != nil {
		return one.item
	}
	return name
}
