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

	"github.com/trellis-addons/trellis/pkg/remote"
)

// Limits on what an API server says that it serves. All of it is known to whoever connects, so it has to stay small, and
// anybody who may create CRDs can make more. The figures are several times those of large clusters.
const (
	// kindLimit is the most kinds (in all versions, without subresources) that a user cluster may serve.
	kindLimit = 5000
	// versionLimit is the most group versions, askedLimit how many of them are asked for one by one, askedAtOnce at a time.
	versionLimit = 1000
	askedLimit   = 500
	askedAtOnce  = 4
	// resourceLimit is the most kinds and subresources.
	resourceLimit = 20_000
	// nameLimit is the longest name of a group, a version or a kind, as for CRDs.
	nameLimit = 253
)

// aggregated asks for all of it in one answer, which every API server since 1.30 gives.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// group is what discovery says of one, as far as it is used.
type group struct {
	name, preferred string
	versions        []*groupVersion
}

type groupVersion struct {
	name string
	// missing says that the API server can't tell the kinds.
	missing   bool
	resources []resource
}

// resource is a kind, or a subresource, whose name has a "/" then.
type resource struct {
	Name         string `json:"name"`
	SingularName string `json:"singularName"`
	Namespaced   bool   `json:"namespaced"`
	Group        string `json:"group"`
	Version      string `json:"version"`
	Kind         string `json:"kind"`
}

// survey asks for groups, versions and kinds. A path that is not there, or not for us, has none.
func survey(ctx context.Context, client rest.Interface) ([]group, error) {
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

// askRoot takes an answer of either form; whole says that the kinds are in it.
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

// responseKind is the kind of an answer.
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

// readCore takes the list of the core group's versions.
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

// readGroups takes the list of all other groups' versions.
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

// askEach asks for the kinds of each version, a few at a time. What can't be told is missing; what no API server does ends it.
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

// decode takes JSON that has passed the limits of its bytes and values.
func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return &remote.MisbehavesError{Did: "what it says of its groups and kinds has another form"}
	}
	return nil
}

// checkAll refuses what is beyond the limits, so that what is kept is small.
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

// isLong says whether a name in it is longer than any; that of a subresource has two parts.
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
