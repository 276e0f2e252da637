package addoninstallation

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// awaiting knows who waits for whom among the installations of a cluster, so that a change wakes
// those that wait for it and nobody else. The zero value has nobody.
type awaiting struct {
	mutex sync.Mutex
	// byNamespace has them by the name of who waits.
	byNamespace map[string]map[string]wait
}

// wait is for others of a cluster; none are all of it.
type wait struct {
	cluster target.Ref
	whom    []string
}

// note says for whom an installation of a cluster waits; none are all of it.
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

// forget drops an installation that waits no more, or is gone.
func (a *awaiting) forget(who types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.byNamespace[who.Namespace], who.Name)
	if len(a.byNamespace[who.Namespace]) == 0 {
		delete(a.byNamespace, who.Namespace)
	}
}

// of are those that wait for an installation.
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
