package addoninstallation

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-addons/trellis/pkg/target"
)

// awaiting knows who waits for whom among the installations of a cluster, so that a change wakes
// those that wait for it and nobody else. The zero value has nobody.
type awaiting struct {
	mutex sync.Mutex
	// byCluster has by the name of who waits those that it waits for; none are all.
	byCluster map[target.Ref]map[string][]string
}

// note says for whom an installation waits; none are all of its cluster.
func (a *awaiting) note(who types.NamespacedName, whom []string) {
	ref := target.Ref{Namespace: who.Namespace}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.byCluster == nil {
		a.byCluster = map[target.Ref]map[string][]string{}
	}
	if a.byCluster[ref] == nil {
		a.byCluster[ref] = map[string][]string{}
	}
	a.byCluster[ref][who.Name] = slices.Clone(whom)
}

// forget drops an installation that waits no more, or is gone.
func (a *awaiting) forget(who types.NamespacedName) {
	ref := target.Ref{Namespace: who.Namespace}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.byCluster[ref], who.Name)
	if len(a.byCluster[ref]) == 0 {
		delete(a.byCluster, ref)
	}
}

// of are those that wait for an installation.
func (a *awaiting) of(changed types.NamespacedName) (requests []reconcile.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	waiting := a.byCluster[target.Ref{Namespace: changed.Namespace}]
	for _, who := range slices.Sorted(maps.Keys(waiting)) {
		if whom := waiting[who]; who != changed.Name && (len(whom) == 0 || slices.Contains(whom, changed.Name)) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: changed.Namespace, Name: who}})
		}
	}
	return requests
}
