package addoninstallation

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// dependents knows the installations that go by what others of their add-on do: those that use objects of others, those that are not
// applied, maybe for what others have, and those that are being removed. All the rest need not be woken: with hundreds of instances
// each would be, for each of the others. What this process has not seen yet has its first pass before it.
type dependents struct {
	mutex sync.Mutex
	// byNamespace has their add-ons by name.
	byNamespace map[string]map[string]kubermaticv1.AddonName
}

// note says after a pass whether its installation is one of them.
func (d *dependents) note(f *facts) {
	installation := f.installation
	depends := f.record() != nil && len(f.record().Shared) > 0 || isRemoved(installation) ||
		!meta.IsStatusConditionTrue(installation.Status.Conditions, kubermaticv1.ConditionApplied)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !depends {
		d.drop(installation.Namespace, installation.Name)
		return
	}
	if d.byNamespace == nil {
		d.byNamespace = map[string]map[string]kubermaticv1.AddonName{}
	}
	if d.byNamespace[installation.Namespace] == nil {
		d.byNamespace[installation.Namespace] = map[string]kubermaticv1.AddonName{}
	}
	d.byNamespace[installation.Namespace][installation.Name] = installation.Spec.AddonRef.Name
}

// of are the dependents of the same add-on as one that changed, without itself.
func (d *dependents) of(changed *kubermaticv1.AddonInstallation) (requests []reconcile.Request) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for name, addon := range d.byNamespace[changed.Namespace] {
		if addon == changed.Spec.AddonRef.Name && name != changed.Name {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: changed.Namespace, Name: name}})
		}
	}
	return requests
}

// forget drops an installation that is gone.
func (d *dependents) forget(name types.NamespacedName) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.drop(name.Namespace, name.Name)
}

// drop drops an installation; the caller holds the mutex.
func (d *dependents) drop(namespace, name string) {
	delete(d.byNamespace[namespace], name)
	if len(d.byNamespace[namespace]) == 0 {
		delete(d.byNamespace, namespace)
	}
}
