package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// view reports changes of the descriptions of Cluster API's Clusters, of the Cluster or of its control plane's
// object. Cluster API writes both often; a change that the description doesn't show is not reported.
type view struct {
	clusters cache.Cache
	planes   *controlPlanes

	mutex sync.Mutex
	// given is the last reported description.
	given map[types.NamespacedName]target.Description
	// planeUsers are the Clusters that refer to a control plane's object.
	planeUsers  map[planeKey]map[types.NamespacedName]bool
	subscribers []subscriber
}

// subscriber receives the description of a Cluster before and after a change; nil before its creation, and after its
// deletion. It must not block.
type subscriber func(before, after *target.Description)

func newView(clusters cache.Cache, planes *controlPlanes) *view {
	return &view{
		clusters: clusters, planes: planes, given: map[types.NamespacedName]target.Description{},
		planeUsers: map[planeKey]map[types.NamespacedName]bool{},
	}
}

// begin watches Clusters in the served version.
func (v *view) begin(ctx context.Context, served schema.GroupVersionKind) error {
	var object client.Object = &capiv1.Cluster{}
	if served.Version == capiv1.V1Beta1.Version {
		object = &capiv1.ClusterV1Beta1{}
	}
	_, err := onChange(ctx, v.clusters, object, func(before, after client.Object) {
		if after == nil {
			v.drop(before)
			return
		}
		v.look(clusterIn(after))
	})
	if err != nil {
		return fmt.Errorf("watching Cluster API's Clusters: %w", err)
	}
	return nil
}

// look compares a Cluster with its last reported description.
func (v *view) look(found *capiv1.Cluster) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	key := client.ObjectKeyFromObject(found)
	if before, known := v.given[key]; known {
		v.forgetPlane(before, key)
	}
	plane := planeOf(found)
	if v.planeUsers[plane] == nil {
		v.planeUsers[plane] = map[types.NamespacedName]bool{}
	}
	v.planeUsers[plane][key] = true
	v.notify(key, v.described(found))
}

// planeChanged checks the Clusters that refer to a control plane's object.
func (v *view) planeChanged(plane planeKey) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for key := range v.planeUsers[plane] {
		if found, isCluster := v.given[key].Object.(*capiv1.Cluster); isCluster {
			v.notify(key, v.described(found))
		}
	}
}

// lookAgain checks all Clusters, also those whose control plane's object does not exist.
func (v *view) lookAgain() {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for key, before := range v.given {
		if found, isCluster := before.Object.(*capiv1.Cluster); isCluster {
			v.notify(key, v.described(found))
		}
	}
}

// drop reports that a Cluster no longer exists.
func (v *view) drop(found client.Object) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	key := client.ObjectKeyFromObject(found)
	before, known := v.given[key]
	if !known {
		return
	}
	v.forgetPlane(before, key)
	delete(v.given, key)
	for _, one := range v.subscribers {
		one(&before, nil)
	}
}

// forgetPlane requires that the caller holds the mutex.
func (v *view) forgetPlane(before target.Description, key types.NamespacedName) {
	if found, isCluster := before.Object.(*capiv1.Cluster); isCluster {
		plane := planeOf(found)
		delete(v.planeUsers[plane], key)
		if len(v.planeUsers[plane]) == 0 {
			delete(v.planeUsers, plane)
		}
	}
}

// described never waits: a Cluster whose control plane was not read yet is checked again after the read.
func (v *view) described(found *capiv1.Cluster) target.Description {
	v.planes.need(planeOf(found).kind)
	version, err := v.planes.versionOf(context.Background(), arrived{v.planes}, found)
	if err != nil {
		version = known{problem: "its control plane was not read yet"}
	}
	return describeCAPI(found, version)
}

// notify tells all subscribers that the description of a cluster changed. The caller holds the mutex.
func (v *view) notify(key types.NamespacedName, after target.Description) {
	before, known := v.given[key]
	v.given[key] = after
	for _, one := range v.subscribers {
		switch {
		case !known:
			one(nil, &after)
		case !equal(before, after):
			one(&before, &after)
		}
	}
}

// equal reports whether two descriptions are equal.
func equal(before, after target.Description) bool {
	one, _ := before.Object.(*capiv1.Cluster)
	other, _ := after.Object.(*capiv1.Cluster)
	return before.Ref == after.Ref && before.Owner == after.Owner &&
		before.KubernetesVersion == after.KubernetesVersion && before.NoVersion == after.NoVersion &&
		before.APIServerUp == after.APIServerUp && before.Paused == after.Paused && before.Deleted == after.Deleted &&
		equality.Semantic.DeepEqual(before.Upgrade, after.Upgrade) &&
		maps.Equal(before.Labels, after.Labels) && maps.Equal(before.Annotations, after.Annotations) &&
		equality.Semantic.DeepEqual(one.Spec, other.Spec)
}

// subscribe calls a subscriber with all existing Clusters, and with changes.
func (v *view) subscribe(one subscriber) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for _, known := range v.given {
		one(nil, &known)
	}
	v.subscribers = append(v.subscribers, one)
}

// watch enqueues requests when Clusters change.
func (v *view) watch(requests Requests, relevant Relevant) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		v.subscribe(func(before, after *target.Description) {
			isSame := before != nil && after != nil && before.Ref == after.Ref
			if isSame && relevant != nil && !relevant(*before, *after) {
				return
			}
			for _, one := range []*target.Description{before, after} {
				if one == nil {
					continue
				}
				for _, request := range requests(ctx, *one) {
					queue.Add(request)
				}
			}
		})
		return nil
	})
}

// arrived reads control planes that were already read from the API server.
type arrived struct{ *controlPlanes }

var errNotRead = errors.New("not read from the API server yet")

// Get implements getter.
func (a arrived) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	informer, err := a.objects.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if !informer.HasSynced() {
		return errNotRead
	}
	return a.objects.Get(ctx, key, object, options...)
}
