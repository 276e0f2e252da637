package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Beside finds Clusters that are not KKP's in addition to those of another Finder. They are in memory, so tests need
// no CRD for them.
type Beside struct {
	cluster.Finder
	Reader cluster.LiveReader

	mutex    sync.Mutex
	made     int
	clusters []target.Description
	notify   []func(target.Description)
}

// Over adds them to the Finder of KKP's Clusters of a manager that is to be started.
func (b *Beside) Over(finder cluster.Finder, live cluster.LiveReader) *Beside {
	b.Finder, b.Reader = finder, live
	return b
}

// Make creates a Cluster in a namespace, which is Ready and has a version.
func (b *Beside) Make(namespace, name string, change ...func(*target.Description)) target.Description {
	b.mutex.Lock()
	b.made++
	uid := types.UID(fmt.Sprintf("uid-%s-%s-%d", namespace, name, b.made))
	b.mutex.Unlock()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: target.GroupClusterAPI, Version: "v1beta2", Kind: "Cluster"})
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetUID(uid)
	object.SetCreationTimestamp(metav1.Now())
	made := target.Description{
		Ref:               target.Ref{Kind: target.KindClusterAPI, Namespace: namespace, Name: name, UID: uid},
		KubernetesVersion: "v1.36.3", APIServerUp: true, Annotations: map[string]string{}, Object: object,
		Owner: metav1.OwnerReference{APIVersion: target.GroupClusterAPI + "/v1beta2", Kind: "Cluster", Name: name, UID: uid},
	}
	for _, one := range change {
		one(&made)
	}
	b.Put(made)
	return made
}

// Put replaces a Cluster.
func (b *Beside) Put(changed target.Description) {
	b.mutex.Lock()
	b.clusters = append(b.without(changed.Ref), changed)
	b.mutex.Unlock()
	b.changed(changed)
}

// Remove removes a Cluster.
func (b *Beside) Remove(gone target.Description) {
	b.mutex.Lock()
	b.clusters = b.without(gone.Ref)
	b.mutex.Unlock()
	b.changed(gone)
}

func (b *Beside) without(ref target.Ref) []target.Description {
	return slices.DeleteFunc(slices.Clone(b.clusters), func(one target.Description) bool {
		return one.Namespace == ref.Namespace && one.Name == ref.Name
	})
}

func (b *Beside) changed(about target.Description) {
	b.mutex.Lock()
	notify := slices.Clone(b.notify)
	b.mutex.Unlock()
	for _, one := range notify {
		one(about)
	}
}

// Find implements cluster.Finder.
func (b *Beside) Find(ctx context.Context, ref target.Ref) (target.Description, error) {
	var others []string
	for _, one := range b.all() {
		if one.Namespace == ref.Namespace && one.Name == ref.Name && ref.Matches(one.Ref) {
			return one, nil
		}
		if one.Namespace == ref.Namespace {
			others = append(others, one.Name)
		}
	}
	found, err := b.Finder.Find(ctx, ref)
	if unknown, isUnknown := errors.AsType[*cluster.UnknownError](err); isUnknown {
		unknown.Others = others
	}
	return found, err
}

func (b *Beside) all() []target.Description {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.clusters)
}

// List implements cluster.Finder.
func (b *Beside) List(ctx context.Context) ([]target.Description, error) {
	found, err := b.Finder.List(ctx)
	return append(found, b.all()...), err
}

// Gone implements cluster.Finder, at once.
func (b *Beside) Gone(ctx context.Context, ref target.Ref) (bool, error) {
	if ref.Kind != target.KindClusterAPI {
		return b.Finder.Gone(ctx, ref)
	}
	return !slices.ContainsFunc(b.all(), func(one target.Description) bool { return ref.Matches(one.Ref) }), nil
}

// Annotate implements cluster.Finder.
func (b *Beside) Annotate(ctx context.Context, ref target.Ref, change func(annotations map[string]string) error) error {
	for _, one := range b.all() {
		if !ref.Matches(one.Ref) {
			continue
		}
		annotations := map[string]string{}
		maps.Copy(annotations, one.Annotations)
		if err := change(annotations); err != nil {
			return err
		}
		one.Annotations = annotations
		b.Put(one)
		return nil
	}
	return b.Finder.Annotate(ctx, ref, change)
}

// Live implements cluster.LiveReader.
func (b *Beside) Live(ctx context.Context, ref target.Ref) (target.Description, error) {
	if ref.IsKKP() {
		return b.Reader.Live(ctx, ref)
	}
	for _, one := range b.all() {
		if ref.Matches(one.Ref) {
			return one, nil
		}
	}
	return target.Description{}, apierrors.NewNotFound(schema.GroupResource{Group: target.GroupClusterAPI, Resource: "clusters"}, ref.Name)
}

// Watch implements cluster.Finder.
func (b *Beside) Watch(informers cache.Cache, requests cluster.Requests, relevant cluster.Relevant) source.Source {
	beside := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		reported := func(about target.Description) {
			for _, one := range requests(ctx, about) {
				queue.Add(one)
			}
		}
		b.mutex.Lock()
		b.notify = append(b.notify, reported)
		b.mutex.Unlock()
		for _, one := range b.all() {
			reported(one)
		}
		return nil
	})
	return both{b.Finder.Watch(informers, requests, relevant), beside}
}

// both combines two sources.
type both struct{ one, other source.Source }

// Start implements source.Source.
func (s both) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if err := s.one.Start(ctx, queue); err != nil {
		return err
	}
	return s.other.Start(ctx, queue)
}
