package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// TooManyKindsError reports that a user cluster serves more kinds than kindLimit.
type TooManyKindsError struct{ Count int }

func (e *TooManyKindsError) Error() string {
	return fmt.Sprintf("the API server serves %d kinds, at most %d are allowed", e.Count, kindLimit)
}

type served struct {
	mapper meta.RESTMapper
	// mappings caches answers by kindQuestion: the mapper searches all kinds of a group for each.
	mappings sync.Map
	versions []string
	missing  []string
}

// kinds is the discovery of one cluster, cached until reset.
type kinds struct {
	client rest.Interface
	mutex  sync.Mutex
	now    *served
}

// current repeats discovery after a reset. Concurrent callers wait for the same discovery.
func (k *kinds) current(ctx context.Context) (*served, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.now != nil {
		return k.now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	now, err := discover(ctx, k.client)
	if err != nil {
		return nil, err
	}
	k.now = now
	return now, nil
}

func (k *kinds) refresh(ctx context.Context) error {
	now, err := discover(ctx, k.client)
	if err != nil {
		return err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.now = now
	return nil
}

func (k *kinds) reset() {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.now = nil
}

// discover makes two calls if discovery is aggregated, otherwise one more per group version.
func discover(ctx context.Context, client rest.Interface) (*served, error) {
	groups, err := listGroups(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("discovering the served kinds: %w", err)
	}
	if err := checkAll(groups); err != nil {
		return nil, err
	}
	now := &served{mapper: mapperOf(groups), versions: versionsOf(groups)}
	for _, one := range groups {
		for _, version := range one.versions {
			if version.missing {
				now.missing = append(now.missing, schema.GroupVersion{Group: one.name, Version: version.name}.String())
			}
		}
	}
	slices.Sort(now.missing)
	return now, nil
}

func mapperOf(groups []group) meta.RESTMapper {
	var all []*restmapper.APIGroupResources
	for _, one := range groups {
		entry := &restmapper.APIGroupResources{VersionedResources: map[string][]metav1.APIResource{}}
		entry.Group.Name = one.name
		entry.Group.PreferredVersion.Version = one.preferred
		for _, version := range one.versions {
			entry.Group.Versions = append(entry.Group.Versions, metav1.GroupVersionForDiscovery{Version: version.name})
			if !version.missing {
				entry.VersionedResources[version.name] = kindsOf(version)
			}
		}
		all = append(all, entry)
	}
	return restmapper.NewDiscoveryRESTMapper(all)
}

func kindsOf(version *groupVersion) []metav1.APIResource {
	kinds := make([]metav1.APIResource, 0, len(version.resources))
	for _, r := range version.resources {
		if !strings.Contains(r.Name, "/") {
			kinds = append(kinds, metav1.APIResource{
				Name: r.Name, SingularName: r.SingularName, Namespaced: r.Namespaced, Kind: r.Kind,
			})
		}
	}
	return kinds
}

// versionsOf has the form of Helm's capabilities: group versions, and group versions with a kind.
func versionsOf(groups []group) []string {
	set := map[string]bool{}
	for _, one := range groups {
		for _, version := range one.versions {
			if version.missing {
				continue
			}
			name := schema.GroupVersion{Group: one.name, Version: version.name}.String()
			set[name] = true
			for _, r := range version.resources {
				set[servedAs(name, r)+"/"+r.Kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// servedAs is the version of a resource's kind. A subresource such as scale may have its own.
func servedAs(version string, r resource) string {
	if r.Version == "" {
		return version
	}
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// mapper is a connection's RESTMapper. Calls have no context: the client's deadline ends them.
type mapper struct{ kinds *kinds }

var _ meta.ResettableRESTMapper = mapper{}

// Reset makes the next call discover again.
func (m mapper) Reset() { m.kinds.reset() }

// KindFor implements meta.RESTMapper, as do the methods below.
func (m mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(d meta.RESTMapper) (schema.GroupVersionKind, error) { return d.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(d meta.RESTMapper) ([]schema.GroupVersionKind, error) { return d.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(d meta.RESTMapper) (schema.GroupVersionResource, error) { return d.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (m mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(d meta.RESTMapper) ([]schema.GroupVersionResource, error) { return d.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper. The answer is shared: don't change it.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	now, err := m.kinds.current(context.Background())
	if err != nil {
		return nil, err
	}
	question := kindQuestion{kind, strings.Join(versions, ",")}
	if known, found := now.mappings.Load(question); found {
		return known.(*meta.RESTMapping), nil
	}
	answer, err := now.mapper.RESTMapping(kind, versions...)
	if err == nil {
		now.mappings.Store(question, answer)
	}
	return answer, err
}

type kindQuestion struct {
	kind     schema.GroupKind
	versions string
}

// RESTMappings implements meta.RESTMapper.
func (m mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(d meta.RESTMapper) ([]*meta.RESTMapping, error) { return d.RESTMappings(kind, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(d meta.RESTMapper) (string, error) { return d.ResourceSingularizer(resource) })
}

func ask[T any](m mapper, question func(meta.RESTMapper) (T, error)) (T, error) {
	now, err := m.kinds.current(context.Background())
	if err != nil {
		var none T
		return none, err
	}
	return question(now.mapper)
}
