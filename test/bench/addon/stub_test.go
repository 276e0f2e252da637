package addon_test

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// stub answers what controller addon asks of an API server, and keeps the controller's catalogues with equal specs kept
// once. It is no API server: nothing is checked.
type stub struct {
	b *testing.B

	mutex    sync.Mutex
	version  int
	clusters []*kkpv1.Cluster
	merged   map[string]*v1.AddonCatalogue
	written  map[string]*kept
	specs    map[[32]byte]json.RawMessage
	// settled counts digests, the last write of an available catalogue.
	settled int
	// watches of merged and of available catalogues.
	watches map[string][]chan event
}

// kept is an available catalogue.
type kept struct {
	metadata metav1.ObjectMeta
	spec     json.RawMessage
}

// event is one of a watch.
type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

const (
	group         = "/apis/kubermatic.k8c.io/v1"
	mergedPath    = group + "/namespaces/" + catalogueNamespace + "/addoncatalogues"
	availablePath = group + "/addoncatalogues"
)

func newStub(b *testing.B) *stub {
	s := &stub{
		b: b, version: 1, merged: map[string]*v1.AddonCatalogue{}, written: map[string]*kept{},
		specs: map[[32]byte]json.RawMessage{}, watches: map[string][]chan event{},
	}
	for i := range clustersInAll {
		object := newCluster(i)
		object.UID, object.ResourceVersion = types.UID(object.Name), "1"
		object.Status.NamespaceName = "cluster-" + object.Name
		object.Status.Versions.ControlPlane = kubernetesVersions()[i%len(kubernetesVersions())]
		s.clusters = append(s.clusters, object)
	}
	for i := range addons {
		s.publish(mergedCatalogue(i, "", false))
	}
	return s
}

// publish makes or replaces a merged catalogue.
func (s *stub) publish(object *v1.AddonCatalogue) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	object.UID, object.ResourceVersion = types.UID(object.Name), s.next()
	kind := "ADDED"
	if s.merged[object.Name] != nil {
		kind = "MODIFIED"
	}
	s.merged[object.Name] = object
	s.send(mergedPath, event{kind, object})
}

func (s *stub) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *stub) send(path string, reported event) {
	for _, watch := range s.watches[path] {
		watch <- reported
	}
}

func (s *stub) count() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.settled
}

// ServeHTTP implements http.Handler.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	namespace, isAvailable := strings.CutPrefix(r.URL.Path, group+"/namespaces/")
	namespace, _, _ = strings.Cut(namespace, "/")
	switch {
	case r.URL.Query().Get("sendInitialEvents") != "": // The client lists then.
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+v1.AvailableCatalogue):
		s.get(w, namespace)
	case r.Method == http.MethodGet:
		s.list(w, r)
	case isAvailable && strings.Contains(r.URL.Path, "/addoncatalogues"):
		s.write(w, r, namespace)
	case strings.HasSuffix(r.URL.Path, "/events"):
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	default:
		s.b.Errorf("asked for %s %s", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, status int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(content)
}

func refuse(w http.ResponseWriter, status int32, reason metav1.StatusReason) {
	answer(w, int(status), metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: status,
	})
}

func (s *stub) list(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind, version, items := "PartialObjectMetadataList", "meta.k8s.io/v1", []any{}
	switch r.URL.Path {
	case group + "/clusters":
		kind, version = "ClusterList", kkpv1.GroupVersion.String()
		for _, object := range s.clusters {
			items = append(items, object)
		}
	case "/api/v1/namespaces":
		for _, object := range s.clusters {
			items = append(items, partial(metav1.ObjectMeta{Name: object.Status.NamespaceName, ResourceVersion: "1"}))
		}
	case mergedPath:
		kind, version = "AddonCatalogueList", v1.GroupVersion.String()
		for _, name := range slices.Sorted(maps.Keys(s.merged)) {
			items = append(items, s.merged[name])
		}
	case availablePath:
		for _, object := range s.written {
			items = append(items, partial(object.metadata))
		}
	}
	answer(w, http.StatusOK, map[string]any{
		"kind": kind, "apiVersion": version, "metadata": map[string]string{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

func partial(metadata metav1.ObjectMeta) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metadata,
	}
}

func (s *stub) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan event, 4*clustersInAll)
	s.mutex.Lock()
	s.watches[r.URL.Path] = append(s.watches[r.URL.Path], events)
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	encoder := json.NewEncoder(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case reported := <-events:
			if encoder.Encode(reported) != nil || flush.Flush() != nil {
				return
			}
		}
	}
}

func (s *stub) get(w http.ResponseWriter, namespace string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	object, ok := s.written[namespace]
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	answer(w, http.StatusOK, object.whole())
}

func (k *kept) whole() any {
	return map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "AddonCatalogue", "metadata": k.metadata, "spec": k.spec,
	}
}

// write takes what the controller writes: the catalogue, its status, and annotations.
func (s *stub) write(w http.ResponseWriter, r *http.Request, namespace string) {
	var sent struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     json.RawMessage   `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		s.b.Errorf("a body of %s: %v", r.URL.Path, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	object := s.written[namespace]
	kind, status := "MODIFIED", http.StatusOK
	if object == nil {
		kind, status = "ADDED", http.StatusCreated
		object = &kept{metadata: sent.Metadata}
		object.metadata.UID = types.UID(namespace)
		s.written[namespace] = object
	}
	object.metadata.ResourceVersion = s.next()
	defer func() { s.send(availablePath, event{kind, partial(object.metadata)}) }()
	switch {
	case r.Method != http.MethodPatch:
		object.spec = s.intern(sent.Spec)
		object.metadata.Generation++
		answer(w, status, object.whole())
		return
	case strings.HasSuffix(r.URL.Path, "/status"):
		object.metadata.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: r.URL.Query().Get("fieldManager"), Operation: metav1.ManagedFieldsOperationApply, Subresource: "status",
			APIVersion: v1.GroupVersion.String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`),
		}}
	default:
		s.settled++
		object.metadata.Annotations = sent.Metadata.Annotations
	}
	answer(w, status, partial(object.metadata))
}

// intern keeps equal specs once.
func (s *stub) intern(spec json.RawMessage) json.RawMessage {
	sum := sha256.Sum256(spec)
	if _, ok := s.specs[sum]; !ok {
		s.specs[sum] = spec
	}
	return s.specs[sum]
}
