package calls

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Target is one user cluster as the engine sees it.
type Target struct {
	// Metadata writes and lists: its answers carry metadata only, whatever the object's size.
	Metadata metadata.Interface
	// Dynamic reads whole objects, for health.
	Dynamic dynamic.Interface
	// Mapper knows the served kinds; it can be reset when a CRD has been established.
	Mapper meta.ResettableRESTMapper
	// Served tells all served kinds, to look into a namespace before it is removed; without it no namespace is removed.
	Served Served
}

// Served tells what an API server serves, as of the mapper's last reset.
type Served interface {
	// APIVersions are served group versions and kinds: "apps/v1", "apps/v1/Deployment", "v1/Pod".
	APIVersions() []string
	// MissingGroups are the groups, or group versions, whose kinds can't be told at the moment.
	MissingGroups() []string
}

// A kind that was served once may not be any more: somebody deleted its CustomResourceDefinition, and its objects with it. The mapper
// does not know until it is asked anew, and the API server answers 404 for the path that it names.

// IsUnserved says that a list was refused since there is nothing at its path: a kind that is served has a list, if an empty one.
func IsUnserved(err error) bool { return apierrors.IsNotFound(err) }

// IsUnknown says whether nobody can tell if a kind that is not served still has objects: the API server registered behind its group
// does not answer, or discovery could not tell the group's kinds.
func (t Target) IsUnknown(ctx context.Context, entry ownership.Entry) (bool, error) {
	registered, down, err := t.IsRegistered(ctx, entry)
	return down || registered && t.IsMissing(entry.Group), err
}

// IsMissing says whether discovery could not tell the kinds of a group: its API server may have gone down since.
func (t Target) IsMissing(group string) bool {
	return t.Served != nil && slices.ContainsFunc(t.Served.MissingGroups(), func(missing string) bool {
		name, _, _ := strings.Cut(missing, "/")
		return name == group
	})
}

// IsRegistered says whether an API server is registered for a group and version, and whether it does not answer.
func (t Target) IsRegistered(ctx context.Context, entry ownership.Entry) (registered, down bool, err error) {
	name := entry.Version + "." + entry.Group
	service, err := ReadWhole(ctx, t.Dynamic.Resource(apiServices), Place{Name: name})
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("reading APIService %q: %w", name, err)
	}
	for _, condition := range ConditionsOf(service) {
		if condition.Type == "Available" {
			return true, condition.Status != metav1.ConditionTrue, nil
		}
	}
	return true, true, nil
}

// Note says something about one object.
type Note struct {
	Key ownership.Key
	// Reason is one of the reasons of condition Applied; of Health, a status word of kstatus.
	Reason string
	// Message for people: one line, with what to do.
	Message string
}
