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

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Target is one user cluster.
type Target struct {
	// Metadata writes and lists: its answers are small for objects of any size.
	Metadata metadata.Interface
	Dynamic  dynamic.Interface
	// Mapper knows the served kinds as of its reset, also those of definitions deleted since.
	Mapper meta.ResettableRESTMapper
	// Served lists all served kinds, to check a namespace before its removal; nil: none is removed.
	Served Served
	// DryRun: the API server checks writes by a Client, and makes none.
	DryRun bool
}

// Served says what an API server serves, as of the mapper's last reset.
type Served interface {
	// APIVersions are served group versions and kinds: "apps/v1", "apps/v1/Deployment", "v1/Pod".
	APIVersions() []string
	// MissingGroups are the groups, or group versions, whose kinds discovery could not list.
	MissingGroups() []string
}

// IsUnserved says that a list got a 404: a served kind has a list, even if an empty one.
func IsUnserved(err error) bool { return apierrors.IsNotFound(err) }

// IsUnknown says whether an unserved kind may have objects: its API server or discovery fails.
func (t Target) IsUnknown(ctx context.Context, entry ownership.Entry) (bool, error) {
	registered, down, err := t.IsRegistered(ctx, entry)
	return down || registered && t.IsMissing(entry.Group), err
}

// IsMissing says whether discovery could not list a group: its API server may be down since.
func (t Target) IsMissing(group string) bool {
	return t.Served != nil && slices.ContainsFunc(t.Served.MissingGroups(), func(missing string) bool {
		name, _, _ := strings.Cut(missing, "/")
		return name == group
	})
}

// IsRegistered says whether an APIService exists for a group and version, and is not available.
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

// Note is a message about one object.
type Note struct {
	Key ownership.Key
	// Reason is a reason of condition Applied; in Health, a status of kstatus.
	Reason  string
	Message string
	// Cause is the cause in the user cluster, one of the API's causes; empty: none.
	Cause string
}
