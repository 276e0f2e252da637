package addoninstallation

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// awaiting records which installations of a cluster wait for which, so that a change wakes only those that wait for it.
// The zero value is empty.
type awaiting struct {
	mutex sync.Mutex
	// byNamespace has them by the name of the waiting installation.
	byNamespace map[string]map[string]wait
}

// wait names the awaited installations of a cluster; without names it waits for all of them.
type wait struct {
	cluster target.Ref
	whom    []string
}

// note records which installations of a cluster an installation waits for; without names, all of them.
func (a *awaiting) note(of target.Ref, who types.NamespacedName, whom []string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.byNamespace == nil {
		a.byNamespace = map[string]map[string]wait{}
	}
	if a.byNamespace[who.Namespace] == nil {
		a.byNamespace[who.Namespace] = map[string]wait{}
	}
	a.byNamespace[who.Namespace][who.Name] = wait{of, slices.Clone(whom)}
}

// forget drops an installation that no longer waits, or no longer exists.
func (a *awaiting) forget(who types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.byNamespace[who.Namespace], who.Name)
	if len(a.byNamespace[who.Namespace]) == 0 {
		delete(a.byNamespace, who.Namespace)
	}
}

// of are the installations that wait for a changed one.
func (a *awaiting) of(changed *kubermaticv1.AddonInstallation) (requests []reconcile.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	waiting := a.byNamespace[changed.Namespace]
	for _, who := range slices.Sorted(maps.Keys(waiting)) {
		one := waiting[who]
		isAwaited := len(one.whom) == 0 || slices.Contains(one.whom, changed.Name)
		if who != changed.Name && isAwaited && one.cluster.Has(changed) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: changed.Namespace, Name: who}})
		}
	}
	return requests
}
