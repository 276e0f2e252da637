// Package lab is a user cluster for tests of the rooms that write, survey and remove objects: a real API server whose calls
// are counted, and the manifests that these tests share.
package lab

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/pkg/install/survey"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

// Patience is spent only where something is broken; definitions of many fields take an API server long where it is not alone.
const Patience = 4 * time.Minute

// Lab is one test's view of the user cluster: a target whose requests are counted, and a client that is somebody else.
type Lab struct {
	*testing.T
	Target calls.Target
	Calls  *Requests
	// Others is a client of somebody else; its requests are not counted.
	Others dynamic.Interface
	Owner  ownership.Owner
	// Unique is unique for the test: a namespace, or part of names.
	Unique string
}

// New is a lab whose target is asked straight.
func New(t *testing.T) *Lab {
	t.Helper()
	return newBehind(t, fleet.Shared().Cluster("user").Config)
}

// NewHostile is a lab whose target is asked through an API server that may lie; what it serves is told by the true one.
func NewHostile(t *testing.T) (*Lab, *hostile.Server) {
	t.Helper()
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	return newBehind(t, server.Config()), server
}

// newBehind is a lab whose target is asked by this way; everything else goes straight.
func newBehind(t *testing.T, way *rest.Config) *Lab {
	t.Helper()
	config := fleet.Shared().Cluster("user").Config
	counted := rest.CopyConfig(way)
	counter := &Requests{}
	counted.Wrap(counter.wrap)
	finder := Must(discovery.NewDiscoveryClientForConfig(config))(t)
	cached := memory.NewMemCacheClient(finder)
	name := "t-" + rand.String(6)
	return &Lab{
		T: t,
		Target: calls.Target{
			Metadata: Must(metadata.NewForConfig(counted))(t),
			Dynamic:  Must(dynamic.NewForConfig(counted))(t),
			Mapper:   restmapper.NewDeferredDiscoveryRESTMapper(cached),
			Served:   Served{finder},
		},
		Calls:  counter,
		Others: Must(dynamic.NewForConfig(config))(t),
		Owner:  ownership.Owner{ClusterUID: "5f3d", Installation: name},
		Unique: name,
	}
}

// Must gives the value of a call that the test can't go on without: an error ends it.
func Must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Served tells what is served, asked anew each time.
type Served struct{ client discovery.DiscoveryInterface }

// APIVersions are all that discovery names, as calls.Served has them.
func (s Served) APIVersions() (words []string) {
	_, lists, _ := s.client.ServerGroupsAndResources()
	for _, list := range lists {
		for _, resource := range list.APIResources {
			words = append(words, list.GroupVersion+"/"+resource.Kind)
		}
	}
	return words
}

// MissingGroups are those whose API server does not answer.
func (s Served) MissingGroups() (groups []string) {
	_, _, err := s.client.ServerGroupsAndResources()
	if failed, is := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); is {
		for version := range failed.Groups {
			groups = append(groups, version.String())
		}
	}
	slices.Sort(groups)
	return groups
}

// Requests keeps the method and path of every request.
type Requests struct {
	lock sync.Mutex
	seen []string
	// Before, where set, is called with each request's text before it goes out.
	Before func(call string)
}

func (c *Requests) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
		call := request.Method + " " + request.URL.Path
		c.lock.Lock()
		c.seen = append(c.seen, call)
		c.lock.Unlock()
		if c.Before != nil {
			c.Before(call)
		}
		return next.RoundTrip(request)
	})
}

// RoundTripper is a function that stands in the way of requests.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip makes the function an http.RoundTripper.
func (r RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// During runs do and returns the requests it made whose text starts with the prefix.
func (c *Requests) During(prefix string, do func()) (made []string) {
	c.lock.Lock()
	before := len(c.seen)
	c.lock.Unlock()
	do()
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, call := range c.seen[before:] {
		if strings.HasPrefix(call, prefix) {
			made = append(made, call)
		}
	}
	return made
}

// Objects reads manifests, with NAME for the test's name.
func (l *Lab) Objects(manifests string) (objects []*unstructured.Unstructured) {
	l.Helper()
	for document := range strings.SplitSeq(strings.ReplaceAll(manifests, "NAME", l.Unique), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			l.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// Prepare makes manifests the lab's installation's, in its namespace.
func (l *Lab) Prepare(manifests string, change ...func(*apply.Options)) []*unstructured.Unstructured {
	l.Helper()
	options := apply.Options{Owner: l.Owner, TargetNamespace: l.Unique}
	for _, change := range change {
		change(&options)
	}
	return Must(apply.Prepare(l.Objects(manifests), l.Target.Mapper, options))(l)
}

// CreateNamespace is a change for Prepare: the target namespace is one of the objects.
func CreateNamespace(options *apply.Options) { options.CreateNamespace = true }

// Rollout advances until nothing is waited for any more.
func (l *Lab) Rollout(objects []*unstructured.Unstructured, known ownership.Inventory, options apply.RolloutOptions) apply.Progress {
	l.Helper()
	rollout := apply.NewRollout(l.Owner, objects, known, options)
	var progress apply.Progress
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, Patience, true, func(ctx context.Context) (done bool, err error) {
		progress, err = rollout.Advance(ctx, l.Target)
		return len(progress.Waiting) == 0, err
	})
	if err != nil {
		l.Fatalf("advancing: %v; waiting for %v", err, progress.Waiting)
	}
	return progress
}

// Install rolls out and insists on the end of it.
func (l *Lab) Install(objects []*unstructured.Unstructured, known ownership.Inventory) ownership.Inventory {
	l.Helper()
	progress := l.Rollout(objects, known, apply.RolloutOptions{})
	if !progress.Complete {
		l.Fatalf("the rollout is not complete: refused %v", progress.Refused)
	}
	return progress.Inventory
}

// Remove removes until nothing is left.
func (l *Lab) Remove(inventory ownership.Inventory, options removal.RemoveOptions) {
	l.Helper()
	options.Owner = l.Owner
	left, blocked := inventory, []calls.Note(nil)
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, Patience, true, func(ctx context.Context) (done bool, err error) {
		left, blocked, err = removal.Remove(ctx, l.Target, left, options)
		return len(left) == 0, err
	})
	if err != nil {
		l.Fatalf("removing: %v; left %v, blocked %v", err, left, blocked)
	}
}

// Removed removes as far as possible in one call.
func Removed(l *Lab, inventory ownership.Inventory, options removal.RemoveOptions) (left ownership.Inventory, blocked []calls.Note) {
	l.Helper()
	left, blocked, err := removal.Remove(l.Context(), l.Target, inventory, options)
	if err != nil {
		l.Fatal(err)
	}
	return left, blocked
}

// ConfigMaps and the others are the resources that a lab reads and changes as somebody else.
var (
	ConfigMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	Namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	Deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	ApiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	Definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// Namespace makes the test's namespace, as somebody else.
func (l *Lab) Namespace() {
	l.Helper()
	l.Create(Namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}`)
}

// Create makes an object as somebody else.
func (l *Lab) Create(where schema.GroupVersionResource, namespace, manifest string) *unstructured.Unstructured {
	l.Helper()
	return l.CreateObject(where, namespace, l.Objects(manifest)[0])
}

// CreateObject makes a prepared object as somebody else.
func (l *Lab) CreateObject(
	where schema.GroupVersionResource, namespace string, object *unstructured.Unstructured,
) *unstructured.Unstructured {
	l.Helper()
	options := metav1.CreateOptions{FieldManager: "kubectl-create"}
	live, err := l.Others.Resource(where).Namespace(namespace).Create(l.Context(), object, options)
	if err != nil {
		l.Fatal(err)
	}
	return live
}

// Get reads an object as somebody else; nil if there is none.
func (l *Lab) Get(where schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	l.Helper()
	live, err := l.Others.Resource(where).Namespace(namespace).Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return live
}

// Edit changes an object as somebody else.
func (l *Lab) Edit(where schema.GroupVersionResource, name, patch string, subresources ...string) {
	l.Helper()
	if err := l.TryEdit(where, name, patch, subresources...); err != nil {
		l.Fatal(err)
	}
}

// TryEdit is Edit for what may be refused, or for an object that may not be there yet.
func (l *Lab) TryEdit(where schema.GroupVersionResource, name, patch string, subresources ...string) error {
	l.Helper()
	body := Must(yaml.YAMLToJSON([]byte(patch)))(l)
	_, err := l.Others.Resource(where).Namespace(l.Unique).Patch(l.Context(), name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "kubectl-edit"}, subresources...)
	return err
}

// Delete asks for an object's end as somebody else, and does not wait for it.
func (l *Lab) Delete(where schema.GroupVersionResource, namespace, name string) {
	l.Helper()
	if err := l.Others.Resource(where).Namespace(namespace).Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// Eventually waits until holds is true.
func (l *Lab) Eventually(what string, holds func() bool) {
	l.Helper()
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		return holds(), nil
	})
	if err != nil {
		l.Fatalf("%s: not in time", what)
	}
}

// Reasons are "kind name: reason" of notes.
func Reasons(notes []calls.Note) (texts []string) {
	for _, note := range notes {
		texts = append(texts, note.Key.Kind+" "+note.Key.Name+": "+note.Reason)
	}
	return texts
}

// WhenUnused removes definitions that hold no objects any more.
const WhenUnused = kubermaticv1.CRDRemoveWhenUnused

// KeysOf are the keys of objects that drifted.
func KeysOf(drift []survey.Drift) (keys []ownership.Key) {
	for _, one := range drift {
		keys = append(keys, one.Key)
	}
	return keys
}
