package upgrades_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
)

// holds are what holds upgrades of a Cluster, and whether one is pending.
type holds struct {
	clusterapi.Holds
	isPending bool
}

func holdsOf(found *unstructured.Unstructured) holds {
	wanted, _, _ := unstructured.NestedString(found.Object, "spec", "topology", "version")
	return holds{Holds: clusterapi.HoldsOf(found), isPending: !slices.Equal(versionsOf(found), []string{wanted})}
}

// changes count what was put on and taken off since the upgrade was asked for.
type changes struct{ hookOn, hookOff, heldOn, heldOff int }

// once is what one upgrade needs.
var once = changes{hookOn: 1, hookOff: 1, heldOn: 1, heldOff: 1}

// begin counts anew.
func (p *player) begin() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.changes = changes{}
}

func (p *player) counted() changes {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.changes
}

// follow looks at every state that the Cluster and its condition UpgradeHeld are in, between two looks of the player too.
func (p *player) follow(ctx context.Context, t *testing.T, running *sync.WaitGroup) {
	t.Helper()
	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(clusterapi.ClusterKind)
	var last *holds
	p.watch(ctx, t, running, clusters, func(object client.Object) {
		found, isCluster := object.(*unstructured.Unstructured)
		if !isCluster {
			return
		}
		now := holdsOf(found)
		if last != nil {
			p.changed(*last, now)
		}
		last = &now
	})
	var reported metav1.Condition
	p.watch(ctx, t, running, &v1.AddonCatalogueList{}, func(object client.Object) {
		found, isCatalogue := object.(*v1.AddonCatalogue)
		if !isCatalogue {
			return
		}
		if now := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionUpgradeHeld); now != nil {
			p.said(reported, *now)
			reported = *now
		}
	})
}

// changed judges a change of the Cluster.
func (p *player) changed(from, to holds) {
	if !from.Hook && to.Hook && to.isPending {
		p.complain("the hook was put on while an upgrade is pending")
	}
	if to.isPending && !to.Hook && !to.Workers {
		p.complain("the hook is off, and workers are not held")
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range []struct {
		from, to bool
		on, off  *int
	}{{from.Hook, to.Hook, &p.changes.hookOn, &p.changes.hookOff}, {from.Workers, to.Workers, &p.changes.heldOn, &p.changes.heldOff}} {
		switch {
		case one.to && !one.from:
			*one.on++
		case one.from && !one.to:
			*one.off++
		}
	}
}

// said judges a change of the condition: a stage keeps its clock, and no upgrade goes on but by its gates.
func (p *player) said(from, to metav1.Condition) {
	p.mutex.Lock()
	slack := p.slack
	p.mutex.Unlock()
	if from.Reason == to.Reason && to.LastTransitionTime.Sub(from.LastTransitionTime.Time).Abs() > slack {
		p.complain("the clock of stage %s went from %s to %s", to.Reason, from.LastTransitionTime, to.LastTransitionTime)
	}
	switch to.Reason {
	case v1.ReasonOverridden, v1.ReasonNotHonoured, v1.ReasonNotHoldable:
		p.complain("UpgradeHeld is %s: %s", to.Reason, to.Message)
	case v1.ReasonTimedOut:
		if !p.stuck() {
			p.complain("UpgradeHeld is %s: %s", to.Reason, to.Message)
		}
	}
}

// watch has each state of the subject's objects of a kind seen, in order.
func (p *player) watch(ctx context.Context, t *testing.T, running *sync.WaitGroup, list client.ObjectList, see func(client.Object)) {
	t.Helper()
	events, err := p.client.Watch(ctx, list, client.InNamespace(p.key.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	running.Go(func() {
		defer events.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case event, isOpen := <-events.ResultChan():
				object, isObject := event.Object.(client.Object)
				switch {
				case ctx.Err() != nil:
					return
				case !isOpen || event.Type == watch.Error || !isObject:
					p.complain("a watch ended: %s", fmt.Sprint(event))
					return
				case event.Type == watch.Added, event.Type == watch.Modified:
					see(object)
				}
			}
		}
	})
}
