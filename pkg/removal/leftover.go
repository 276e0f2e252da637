package removal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Leftovers are the objects of a Helm release that is taken over which are not among those that are wanted: they stand in the
// user cluster, carry Helm's marks of that release and are not to be kept (helm.sh/resource-policy). What the release claims
// is not believed: an object without its marks is somebody else's, and so is one of another installation that still exists. Each
// has its live UID, and none counts as made by us, so that Namespaces and CustomResourceDefinitions stay. Kinds that
// are not served have no objects.
func Leftovers(
	ctx context.Context, target calls.Target, claimed ownership.Inventory, options LeftoverOptions,
) (ownership.Inventory, error) {
	kinds := &calls.Kinds{Mapper: target.Mapper}
	search := &leftovers{LeftoverOptions: options, target: target, kinds: kinds, wanted: map[ownership.Key]bool{}}
	for _, object := range options.Wanted {
		search.wanted[ownership.KeyOf(object)] = true
	}
	for _, entry := range options.Known {
		search.wanted[entry.Key] = true
	}
	seen := presences(claimed, false)
	if err := calls.Each(ctx, seen, search.read); err != nil {
		return nil, err
	}
	var found ownership.Inventory
	known := map[types.UID]bool{}
	for _, one := range seen {
		if one.live != nil && !known[one.live.UID] {
			known[one.live.UID] = true
			found = append(found, one.entry)
		}
	}
	return found, nil
}

// LeftoverOptions say what is none.
type LeftoverOptions struct {
	Owner ownership.Owner
	// Marks of the release that is taken over.
	Marks ownership.HelmMarks
	// Wanted are the objects that stay.
	Wanted []*unstructured.Unstructured
	// Known are entries of objects that stay, or are to go already.
	Known ownership.Inventory
	// Hooks looks for what hooks of the release made, in its namespace. Helm does not mark those: they are known by being hooks, and by
	// not being of an installation.
	Hooks bool
	// NameOf gives the name of the installation with an ID; "" where there is none, or none any more. It may be nil.
	NameOf func(id string) string
}

type leftovers struct {
	LeftoverOptions
	target calls.Target
	kinds  *calls.Kinds
	wanted map[ownership.Key]bool
}

func (l *leftovers) read(ctx context.Context, one *presence) error {
	if calls.NameProblem(one.entry.Key) {
		return nil
	}
	where, served, err := l.kinds.Known(one.entry.Key, one.entry.Version)
	if err != nil {
		return fmt.Errorf("looking up the kind of %q: %w", one.entry.Key, err)
	}
	if !served {
		return nil
	}
	switch {
	case !where.Namespaced:
		one.entry.Namespace = ""
	case one.entry.Namespace == "":
		one.entry.Namespace = l.Marks.ReleaseNamespace
	}
	if l.wanted[one.entry.Key] {
		return nil
	}
	if l.Hooks && (one.entry.IsFoundation() || one.entry.GroupKind() == calls.ClaimGK) {
		return nil
	}
	live, err := calls.ClientOf(l.target, where, one.entry.Namespace).Read(ctx, one.entry.Key)
	if calls.IsKindTrouble(one.entry.GroupKind(), err) || isNoAnswerToGive(err) {
		return nil // nobody can tell, and what is named by a claim holds up nothing
	}
	if err != nil || live == nil {
		return err
	}
	if l.isLeft(one.entry.GroupKind(), live) {
		one.live, one.entry.UID = live, live.UID
	}
	return nil
}

func (l *leftovers) isLeft(kind schema.GroupKind, live *metav1.PartialObjectMetadata) bool {
	if live.DeletionTimestamp != nil || ownership.IsKeptByHelm(live) {
		return false
	}
	found := ownership.Of(live, ownership.Question{Owner: l.Owner, Release: &l.Marks, NameOf: l.NameOf})
	if l.Hooks {
		return isOfUpgrade(kind, live) && live.Namespace == l.Marks.ReleaseNamespace && found.IsLeftoverHook()
	}
	return found.IsLeftover()
}

// isOfUpgrade says whether what a hook made is nothing but a way through an upgrade or a rollback, which helm itself would delete with the
// next one. What was made at the installation is not made again, and may be all there is of a password.
func isOfUpgrade(kind schema.GroupKind, live *metav1.PartialObjectMetadata) bool {
	annotations := live.Annotations
	isOf := func(event string) bool {
		return slices.ContainsFunc(strings.Split(annotations[ownership.HelmHookAnnotation], ","), func(word string) bool {
			return strings.HasSuffix(strings.TrimSpace(word), event)
		})
	}
	if !isOf("-upgrade") && !isOf("-rollback") {
		return false
	}
	policies := annotations[helmDeletePolicyAnnotation]
	goes := policies == "" || strings.Contains(policies, "before-hook-creation")
	return calls.Runs(kind) || goes && !isOf("-install") && kind != (schema.GroupKind{Kind: "Secret"})
}

// isNoAnswerToGive says that the API server can't or won't tell of an object, and has nothing against who asks.
func isNoAnswerToGive(err error) bool {
	var told apierrors.APIStatus
	if !errors.As(err, &told) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) {
		return false
	}
	code := told.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusUnauthorized
}

// helmDeletePolicyAnnotation says when the object of a hook goes.
const helmDeletePolicyAnnotation = "helm.sh/hook-delete-policy"
