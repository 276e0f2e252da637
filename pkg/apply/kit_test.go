package apply_test

import (
	"context"
	"net/http"
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
	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/hostile"
)

// TestMain starts one real control plane, whose workloads get ready, for all tests of the package.
func TestMain(m *testing.M) {
	fleet.Main(m, fleet.ClusterOptions{Name: "user", Workloads: true})
}

// patience is spent only where something is broken; definitions of many fields take an API server long where it is not alone.
const patience = 4 * time.Minute

// lab is one test's view of the user cluster: a target whose requests are counted, and a client that is somebody else.
type lab struct {
	*testing.T
	target apply.Target
	calls  *calls
	// others is a client of somebody else; its requests are not counted.
	others dynamic.Interface
	owner  ownership.Owner
	// name is unique for the test: a namespace, or part of names.
	name string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return newLabBehind(t, fleet.Shared().Cluster("user").Config)
}

// newHostileLab is a lab whose target is asked through an API server that may lie; what it serves is told by the true one.
func newHostileLab(t *testing.T) (*lab, *hostile.Server) {
	t.Helper()
	server := hostile.New(t, fleet.Shared().Cluster("user"))
	return newLabBehind(t, server.Config()), server
}

func newLabBehind(t *testing.T, way *rest.Config) *lab {
	t.Helper()
	config := fleet.Shared().Cluster("user").Config
	counted := rest.CopyConfig(way)
	counter := &calls{}
	counted.Wrap(counter.wrap)
	finder := must(discovery.NewDiscoveryClientForConfig(config))(t)
	cached := memory.NewMemCacheClient(finder)
	name := "t-" + rand.String(6)
	return &lab{
		T: t,
		target: apply.Target{
			Metadata: must(metadata.NewForConfig(counted))(t),
			Dynamic:  must(dynamic.NewForConfig(counted))(t),
			Mapper:   restmapper.NewDeferredDiscoveryRESTMapper(cached),
			Served:   served{finder},
		},
		calls:  counter,
		others: must(dynamic.NewForConfig(config))(t),
		owner:  ownership.Owner{ClusterUID: "5f3d", Installation: name},
		name:   name,
	}
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// served tells what is served, asked anew each time.
type served struct{ client discovery.DiscoveryInterface }

func (s served) APIVersions() (words []string) {
	_, lists, _ := s.client.ServerGroupsAndResources()
	for _, list := range lists {
		for _, resource := range list.APIResources {
			words = append(words, list.GroupVersion+"/"+resource.Kind)
		}
	}
	return words
}

func (s served) MissingGroups() []string { return nil }

// calls keeps the method and path of every request.
type calls struct {
	lock sync.Mutex
	seen []string
	// before, where set, is called with each request's text before it goes out.
	before func(call string)
}

func (c *calls) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		call := request.Method + " " + request.URL.Path
		c.lock.Lock()
		c.seen = append(c.seen, call)
		c.lock.Unlock()
		if c.before != nil {
			c.before(call)
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// during runs do and returns the requests it made whose text starts with the prefix.
func (c *calls) during(prefix string, do func()) (made []string) {
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

// objects reads manifests, with NAME for the test's name.
func (l *lab) objects(manifests string) (objects []*unstructured.Unstructured) {
	l.Helper()
	for document := range strings.SplitSeq(strings.ReplaceAll(manifests, "NAME", l.name), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			l.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// prepare makes manifests the lab's installation's, in its namespace.
func (l *lab) prepare(manifests string, change ...func(*apply.Options)) []*unstructured.Unstructured {
	l.Helper()
	options := apply.Options{Owner: l.owner, TargetNamespace: l.name}
	for _, change := range change {
		change(&options)
	}
	return must(apply.Prepare(l.objects(manifests), l.target.Mapper, options))(l)
}

func createNamespace(options *apply.Options) { options.CreateNamespace = true }

// rollout advances until nothing is waited for any more.
func (l *lab) rollout(objects []*unstructured.Unstructured, known ownership.Inventory, options apply.RolloutOptions) apply.Progress {
	l.Helper()
	rollout := apply.NewRollout(l.owner, objects, known, options)
	var progress apply.Progress
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (done bool, err error) {
		progress, err = rollout.Advance(ctx, l.target)
		return len(progress.Waiting) == 0, err
	})
	if err != nil {
		l.Fatalf("advancing: %v; waiting for %v", err, progress.Waiting)
	}
	return progress
}

// install rolls out and insists on the end of it.
func (l *lab) install(objects []*unstructured.Unstructured, known ownership.Inventory) ownership.Inventory {
	l.Helper()
	progress := l.rollout(objects, known, apply.RolloutOptions{})
	if !progress.Complete {
		l.Fatalf("the rollout is not complete: refused %v", progress.Refused)
	}
	return progress.Inventory
}

// remove removes until nothing is left.
func (l *lab) remove(inventory ownership.Inventory, options apply.RemoveOptions) {
	l.Helper()
	options.Owner = l.owner
	left, blocked := inventory, []apply.Note(nil)
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (done bool, err error) {
		left, blocked, err = apply.Remove(ctx, l.target, left, options)
		return len(left) == 0, err
	})
	if err != nil {
		l.Fatalf("removing: %v; left %v, blocked %v", err, left, blocked)
	}
}

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// namespace makes the test's namespace, as somebody else.
func (l *lab) namespace() {
	l.Helper()
	l.create(namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: NAME}}`)
}

// create makes an object as somebody else.
func (l *lab) create(where schema.GroupVersionResource, namespace, manifest string) *unstructured.Unstructured {
	l.Helper()
	return l.createObject(where, namespace, l.objects(manifest)[0])
}

// createObject makes a prepared object as somebody else.
func (l *lab) createObject(where schema.GroupVersionResource, namespace string, object *unstructured.Unstructured) *unstructured.Unstructured {
	l.Helper()
	options := metav1.CreateOptions{FieldManager: "kubectl-create"}
	live, err := l.others.Resource(where).Namespace(namespace).Create(l.Context(), object, options)
	if err != nil {
		l.Fatal(err)
	}
	return live
}

// get reads an object as somebody else; nil if there is none.
func (l *lab) get(where schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	l.Helper()
	live, err := l.others.Resource(where).Namespace(namespace).Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return live
}

// edit changes an object as somebody else.
func (l *lab) edit(where schema.GroupVersionResource, name, patch string, subresources ...string) {
	l.Helper()
	if err := l.tryEdit(where, name, patch, subresources...); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) tryEdit(where schema.GroupVersionResource, name, patch string, subresources ...string) error {
	l.Helper()
	body := must(yaml.YAMLToJSON([]byte(patch)))(l)
	_, err := l.others.Resource(where).Namespace(l.name).Patch(l.Context(), name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "kubectl-edit"}, subresources...)
	return err
}

func (l *lab) delete(where schema.GroupVersionResource, namespace, name string) {
	l.Helper()
	if err := l.others.Resource(where).Namespace(namespace).Delete(l.Context(), name, metav1.DeleteOptions{}); err != nil {
		l.Fatal(err)
	}
}

// eventually waits until holds is true.
func (l *lab) eventually(what string, holds func() bool) {
	l.Helper()
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return holds(), nil
	})
	if err != nil {
		l.Fatalf("%s: not in time", what)
	}
}

// reasons are "kind name: reason" of notes.
func reasons(notes []apply.Note) (texts []string) {
	for _, note := range notes {
		texts = append(texts, note.Key.Kind+" "+note.Key.Name+": "+note.Reason)
	}
	return texts
}

const whenUnused = kubermaticv1.CRDRemoveWhenUnused

// keysOf are the keys of objects that drifted.
func keysOf(drift []apply.Drift) (keys []ownership.Key) {
	for _, one := range drift {
		keys = append(keys, one.Key)
	}
	return keys
}
