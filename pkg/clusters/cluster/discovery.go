package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// Limits of discovery. Any user who may create CRDs in a user cluster can make its answers larger. The limits are
// several times the figures of large clusters.
const (
	// kindLimit is the maximum number of kinds of a user cluster, in all versions, without subresources.
	kindLimit = 5000
	// versionLimit is the maximum number of group versions, askedLimit of those that are requested one by one,
	// askedAtOnce of concurrent requests.
	versionLimit  = 1000
	askedLimit    = 500
	askedAtOnce   = 4
	resourceLimit = 20_000
	// nameLimit is the maximum length of the name of a group, version or kind, as for CRDs.
	nameLimit = 253
)

// aggregated requests all kinds in one answer, which API servers support since 1.30.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

type group struct {
	name, preferred string
	versions        []*groupVersion
}

type groupVersion struct {
	name string
	// missing says that the API server did not return the kinds of the version.
	missing   bool
	resources []resource
}

// resource is a kind, or a subresource, whose name contains "/".
type resource struct {
	Name         string `json:"name"`
	SingularName string `json:"singularName"`
	Namespaced   bool   `json:"namespaced"`
	Group        string `json:"group"`
	Version      string `json:"version"`
	Kind         string `json:"kind"`
}

// listGroups lists groups with versions and kinds. A path that is not found, or forbidden, has no groups.
func listGroups(ctx context.Context, client rest.Interface) ([]group, error) {
	var all []group
	for _, path := range []string{"/api", "/apis"} {
		groups, whole, err := askRoot(ctx, client, path)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			continue
		}
		if err == nil && !whole {
			err = askEach(ctx, client, path, groups)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, groups...)
	}
	return all, nil
}

// askRoot accepts both forms of the answer; whole reports whether it includes the kinds.
func askRoot(ctx context.Context, client rest.Interface, path string) (groups []group, whole bool, err error) {
	ctx, release := remote.Hold(ctx)
	defer release()
	var kind string
	raw, err := client.Get().AbsPath(path).SetHeader("Accept", aggregated).Do(ctx).ContentType(&kind).Raw()
	switch {
	case err != nil:
		return nil, false, err
	case strings.Contains(kind, "as=APIGroupDiscoveryList"):
		groups, err = readAggregated(raw)
		return groups, true, err
	case path == "/api":
		groups, err = readCore(raw)
	default:
		groups, err = readGroups(raw)
	}
	if err != nil {
		return nil, false, err
	}
	return groups, false, checkVersions(groups, askedLimit)
}

type responseKind struct{ Group, Version, Kind string }

func (k responseKind) resource(name, singular string, namespaced bool) resource {
	return resource{name, singular, namespaced, k.Group, k.Version, k.Kind}
}

func readAggregated(raw []byte) ([]group, error) {
	var answer struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version, Freshness string
				Resources          []struct {
					Resource, SingularResource, Scope string
					ResponseKind                      responseKind
					Subresources                      []struct {
						Subresource  string
						ResponseKind responseKind
					}
				}
			}
		}
	}
	if err := decode(raw, &answer); err != nil {
		return nil, err
	}
	groups := make([]group, 0, len(answer.Items))
	for _, item := range answer.Items {
		found := group{name: item.Metadata.Name}
		for _, served := range item.Versions {
			version := &groupVersion{name: served.Version, missing: served.Freshness == "Stale"}
			found.versions = append(found.versions, version)
			if version.missing {
				continue
			}
			found.preferred = cmp.Or(found.preferred, version.name)
			for _, kind := range served.Resources {
				namespaced := kind.Scope == "Namespaced"
				if kind.ResponseKind != (responseKind{}) {
					version.resources = append(version.resources,
						kind.ResponseKind.resource(kind.Resource, kind.SingularResource, namespaced))
				}
				for _, sub := range kind.Subresources {
					if sub.ResponseKind != (responseKind{}) {
						version.resources = append(version.resources,
							sub.ResponseKind.resource(kind.Resource+"/"+sub.Subresource, kind.SingularResource, namespaced))
					}
				}
			}
		}
		groups = append(groups, found)
	}
	return groups, nil
}

func readCore(raw []byte) ([]group, error) {
	var answer struct{ Versions []string }
	if err := decode(raw, &answer); err != nil || len(answer.Versions) == 0 {
		return nil, err
	}
	core := group{preferred: answer.Versions[0]}
	for _, version := range answer.Versions {
		core.versions = append(core.versions, &groupVersion{name: version})
	}
	return []group{core}, nil
}

func readGroups(raw []byte) ([]group, error) {
	var answer struct {
		Groups []struct {
			Name             string
			Versions         []struct{ Version string }
			PreferredVersion struct{ Version string }
		}
	}
	if err := decode(raw, &answer); err != nil {
		return nil, err
	}
	var groups []group
	for _, found := range answer.Groups {
		one := group{name: found.Name, preferred: found.PreferredVersion.Version}
		for _, version := range found.Versions {
			one.versions = append(one.versions, &groupVersion{name: version.Version})
		}
		groups = append(groups, one)
	}
	return groups, nil
}

// askEach requests the kinds of each version, a few at a time. A version whose request fails is missing; misbehaviour
// of the API server is an error.
func askEach(ctx context.Context, client rest.Interface, path string, groups []group) error {
	var asking sync.WaitGroup
	var mutex sync.Mutex
	var failed error
	places := make(chan struct{}, askedAtOnce)
	for _, one := range groups {
		for _, version := range one.versions {
			if ctx.Err() != nil {
				break
			}
			places <- struct{}{}
			asking.Go(func() {
				defer func() { <-places }()
				err := askVersion(ctx, client, []string{path, one.name, version.name}, version)
				version.missing = err != nil
				if remote.IsMisbehaviour(err) {
					mutex.Lock()
					defer mutex.Unlock()
					failed = err
				}
			})
		}
	}
	asking.Wait()
	return cmp.Or(failed, ctx.Err())
}

func askVersion(ctx context.Context, client rest.Interface, path []string, version *groupVersion) error {
	ctx, release := remote.Hold(ctx)
	defer release()
	raw, err := client.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return err
	}
	var answer struct{ Resources []resource }
	if err := decode(raw, &answer); err != nil {
		return err
	}
	version.resources = answer.Resources
	return nil
}

// decode decodes JSON that pkg/clusters/remote has limited.
func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return &remote.MisbehavesError{Did: "its list of groups and kinds has an unexpected form"}
	}
	return nil
}

func checkAll(groups []group) error {
	if err := checkVersions(groups, versionLimit); err != nil {
		return err
	}
	kinds, resources := 0, 0
	for _, one := range groups {
		for _, version := range one.versions {
			resources += len(version.resources)
			for _, served := range version.resources {
				if !strings.Contains(served.Name, "/") {
					kinds++
				}
				if served.isLong() {
					return &remote.MisbehavesError{Did: fmt.Sprintf("it serves a kind whose name has more than %d bytes", nameLimit)}
				}
			}
		}
	}
	switch {
	case kinds > kindLimit:
		return &TooManyKindsError{Count: kinds}
	case resources > resourceLimit:
		return &remote.MisbehavesError{Did: fmt.Sprintf("it serves more than %d kinds and subresources", resourceLimit)}
	}
	return nil
}

// isLong reports whether a name is too long. The name of a subresource has two parts.
func (r *resource) isLong() bool {
	return len(r.Name) > 2*nameLimit || max(len(r.SingularName), len(r.Group), len(r.Version), len(r.Kind)) > nameLimit
}

func checkVersions(groups []group, most int) error {
	count := 0
	for _, one := range groups {
		count += 1 + len(one.versions)
		for _, version := range one.versions {
			if max(len(one.name), len(version.name), len(one.preferred)) > nameLimit {
				return &remote.MisbehavesError{Did: fmt.Sprintf("it serves a group whose name has more than %d bytes", nameLimit)}
			}
		}
	}
	if count > 2*most {
		return &remote.MisbehavesError{Did: fmt.Sprintf("it serves more than %d versions of groups", most)}
	}
	return nil
}
