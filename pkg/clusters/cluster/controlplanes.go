package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// controlPlanes reads the control plane objects of Cluster API's Clusters, for their versions. The operator lists
// their kinds; nothing is read for a Cluster that refers to another kind.
type controlPlanes struct {
	// objects holds the fields that TrimControlPlane keeps.
	objects cache.Cache
	kinds   *optionalKinds
	listed  []schema.GroupResource
	// changed is called with each change of an object, and allRead once all objects of a kind were read. Until then
	// it is unknown which of them exist.
	changed func(planeKey)
	allRead func()

	mutex sync.Mutex
	// watched are the kinds of the Clusters' control planes; ended ends with the manager.
	watched map[schema.GroupVersionKind]bool
	ended   <-chan struct{}
}

func newControlPlanes(objects cache.Cache, kinds *optionalKinds, listed []schema.GroupResource) *controlPlanes {
	return &controlPlanes{objects: objects, kinds: kinds, listed: listed, watched: map[schema.GroupVersionKind]bool{}}
}

// planeKey is a control plane object.
type planeKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// planeOf is the control plane object that a Cluster refers to, in its own namespace.
func planeOf(found *capiv1.Cluster) planeKey {
	reference := found.Spec.ControlPlaneRef
	return planeKey{kind: reference.GroupKind(), namespace: found.Namespace, name: reference.Name}
}

// wanted are the listed kinds, each known once it is served. A kind is watched once a Cluster has a control plane of
// it: the list may also have kinds of other objects, which only templates see (seen.go).
func (c *controlPlanes) wanted() (all []optionalKind) {
	for _, one := range c.listed {
		kind := schema.GroupKind{Group: one.Group, Kind: one.Resource}
		all = append(all, optionalKind{kind: kind, isResource: true, begin: func(ctx context.Context, _ schema.GroupVersionKind) error {
			c.kinds.whenBegun(ctx, kind, func(ctx context.Context) { // before that, served does not return the kind
				c.mutex.Lock()
				c.ended = ctx.Done()
				c.mutex.Unlock()
				c.allRead()
			})
			return nil
		}})
	}
	return all
}

// need watches a kind that is listed and served, for the control plane of a Cluster. It does not wait. After a
// failure, the next Cluster that needs the kind causes another attempt.
func (c *controlPlanes) need(kind schema.GroupKind) {
	served, isServed := c.served(kind)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !isServed || c.watched[served] {
		return
	}
	if err := c.watch(served); err != nil {
		ctrl.Log.WithName("cluster").Error(err, "watching control planes", "kind", kind.String())
		return
	}
	c.watched[served] = true
}

// watch requires that the caller holds the mutex.
func (c *controlPlanes) watch(served schema.GroupVersionKind) error {
	handler, err := onChange(context.Background(), c.objects, empty(served), func(before, after client.Object) {
		one := cmp.Or(after, before)
		c.changed(planeKey{kind: served.GroupKind(), namespace: one.GetNamespace(), name: one.GetName()})
	})
	if err != nil {
		return err
	}
	ended := c.ended
	go func() {
		if toolscache.WaitForCacheSync(ended, handler.HasSynced) {
			c.allRead()
		}
	}()
	return nil
}

// served is the version in which a listed kind is served.
func (c *controlPlanes) served(kind schema.GroupKind) (schema.GroupVersionKind, bool) {
	for _, one := range c.listed {
		if one.Group != kind.Group {
			continue
		}
		if begun, ok := c.kinds.begun(schema.GroupKind{Group: one.Group, Kind: one.Resource}); ok && begun.GroupKind() == kind {
			return begun, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// known is a version of Kubernetes without its "v", or the reason why there is none.
type known struct {
	version, problem string
	// asked is the version that the control plane is asked to have, if it can be read.
	asked string
	// versions are all its running versions, oldest first if they can be compared; the desired version if none runs
	// yet.
	versions []string
}

// getter is the part of a client.Reader that controlPlanes needs.
type getter interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
}

// versionOf is the version of a Cluster's control plane: the oldest that runs. It prefers the list in the control
// plane object, which it reads with the reader, to the copy in the Cluster: the copy is updated later than the next
// version that the control plane is asked to have. The desired version counts only before any version runs.
func (c *controlPlanes) versionOf(ctx context.Context, reader getter, found *capiv1.Cluster) (known, error) {
	plane, problem, err := c.plane(ctx, reader, found)
	asked, _, _ := unstructured.NestedString(plane.Object, "spec", "version")
	version := known{problem: problem}
	if own := listed(plane); len(own) > 0 {
		version = oldest(own)
	} else if reported := textsOf(found.Status.ControlPlane.Versions); len(reported) > 0 {
		version, err = oldest(reported), nil
	} else if one, _, _ := unstructured.NestedString(plane.Object, "status", "version"); one != "" {
		version = oldest([]string{one})
	} else if problem == "" {
		version = oldest([]string{cmp.Or(asked, found.Spec.Topology.Version)})
	}
	version.asked = strings.TrimPrefix(asked, "v")
	return version, err
}

// plane is the control plane object of a Cluster. It is empty if there is none, or if the problem says why it can't
// be read.
func (c *controlPlanes) plane(
	ctx context.Context, reader getter, found *capiv1.Cluster,
) (object *unstructured.Unstructured, problem string, err error) {
	object = &unstructured.Unstructured{}
	plane := planeOf(found)
	if plane.name == "" {
		return object, "", nil
	}
	served, isServed := c.served(plane.kind)
	if !isServed {
		return object, fmt.Sprintf("its control plane is a %s, which is not one of the kinds that this seed may read: see its "+
			"--cluster-api-providers", shown(plane.kind)), nil
	}
	object.SetGroupVersionKind(served)
	err = reader.Get(ctx, client.ObjectKey{Namespace: plane.namespace, Name: plane.name}, object)
	if apierrors.IsNotFound(err) {
		return &unstructured.Unstructured{}, fmt.Sprintf("its control plane, %s %q, does not exist", shown(plane.kind), plane.name), nil
	}
	if err != nil {
		return &unstructured.Unstructured{}, "", fmt.Errorf("reading %s %q: %w", plane.kind, plane.name, err)
	}
	return object, "", nil
}

func textsOf(versions []capiv1.StatusVersion) []string {
	texts := make([]string, len(versions))
	for i, one := range versions {
		texts[i] = one.Version
	}
	return texts
}

// shown is the kind that a Cluster names, for messages: in v1beta1 it may be any text.
func shown(kind schema.GroupKind) string { return text.Cut(text.Line(kind.String()), kindShown) }

// kindShown is the maximum length of a kind's name in a message, in bytes.
const kindShown = 120

// listed are the versions in the status of a control plane object, if it has a list of them.
func listed(object *unstructured.Unstructured) (versions []string) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "versions")
	for _, one := range list {
		entry, _ := one.(map[string]any)
		if version, _ := entry["version"].(string); version != "" {
			versions = append(versions, version)
		}
	}
	return versions
}

// oldest is the oldest of these versions. If one of them is invalid, the oldest is unknown.
func oldest(texts []string) known {
	parsed := make(map[string]*version.Version, len(texts))
	for _, one := range texts {
		found, err := version.ParseSemantic(one)
		switch {
		case one == "":
			return known{problem: "its control plane has no version yet", versions: texts}
		case err != nil:
			return known{problem: "its control plane has a version that is not a semantic version", versions: texts}
		}
		parsed[one] = found
	}
	sorted := slices.SortedStableFunc(slices.Values(texts), func(one, other string) int {
		switch {
		case parsed[one].LessThan(parsed[other]):
			return -1
		case parsed[other].LessThan(parsed[one]):
			return 1
		}
		return 0
	})
	return known{version: strings.TrimPrefix(sorted[0], "v"), versions: sorted}
}

// TrimControlPlane keeps only the fields of a control plane object that its version is read from.
func TrimControlPlane(object any) (any, error) {
	whole, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	trimmed := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "resourceVersion"},
		{"spec", "version"}, {"status", "version"}, {"status", "versions"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(whole.Object, path...)
		if err == nil && found {
			_ = unstructured.SetNestedField(trimmed.Object, value, path...) // the parents are maps
		}
	}
	return trimmed, nil
}
