package boot

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observation is how an object was when it was seen first.
type observation struct {
	kind string
	// at is the test's time, the same for all API servers.
	at time.Time
	// revision of the API server, which counts every write.
	revision int64
	// applied is when our manager wrote it, by the API server's time; zero where it did not.
	applied metav1.Time
}

func (s observation) String() string {
	return fmt.Sprintf("%s at revision %d, %s", s.kind, s.revision, s.at.Format("15:04:05.000"))
}

// observations are objects that were seen, by name.
type observations struct {
	mutex  sync.Mutex
	byName map[string][]observation
}

// watch notes when an object is seen first, or seen so for the first time.
func (s *observations) watch(t *testing.T, from client.WithWatch, object client.Object, isIt func(*unstructured.Unstructured) bool) {
	t.Helper()
	kind, err := from.GroupVersionKindFor(object)
	if err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	one := client.MatchingFields{"metadata.name": object.GetName()}
	events, err := from.Watch(t.Context(), list, client.InNamespace(object.GetNamespace()), one)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			found, isObject := event.Object.(*unstructured.Unstructured)
			if isObject && (event.Type == watch.Added || event.Type == watch.Modified) && (isIt == nil || isIt(found)) {
				s.note(t, found)
				return
			}
		}
	}()
}

func (s *observations) note(t *testing.T, found *unstructured.Unstructured) {
	t.Helper()
	seen := observation{kind: found.GetKind(), at: time.Now(), revision: revisionOf(t, found)}
	for _, entry := range found.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Time != nil { // nobody else applies
			seen.applied = *entry.Time
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.byName == nil {
		s.byName = map[string][]observation{}
	}
	s.byName[found.GetName()] = append(s.byName[found.GetName()], seen)
}

// revisionOf is the API server's own order of all writes. What has no number is in no order: that fails the test.
func revisionOf(t *testing.T, object client.Object) int64 {
	t.Helper()
	revision, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Errorf("reading the revision of %q: %v", object.GetName(), err)
	}
	return revision
}

// all are the sightings of a name, in the order in which they came.
func (s *observations) all(name string) []observation {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.byName[name])
}

// first is the first sighting of a name; zero where there is none yet.
func (s *observations) first(name string) observation {
	all := s.all(name)
	if len(all) == 0 {
		return observation{}
	}
	return all[0]
}
