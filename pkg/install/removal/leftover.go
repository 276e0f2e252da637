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

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Leftovers are live objects of an adopted Helm release that are no longer wanted. The release's claims count only
// with its marks, without helm.sh/resource-policy, and if no other existing installation has the object. No entry is
// Created, so Namespaces and CRDs stay.
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

// LeftoverOptions exclude objects.
type LeftoverOptions struct {
	Owner  ownership.Owner
	Marks  ownership.HelmMarks
	Wanted []*unstructured.Unstructured
	// Known are entries of objects that stay, or are already to be removed.
	Known ownership.Inventory
	// Hooks includes objects of the release's hooks, in its namespace. Helm does not mark them.
	Hooks bool
	// NameOf is as in ownership.Question.
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
	if calls.IsKindTrouble(one.entry.GroupKind(), err) || isRefusedRead(err) {
		return nil // unknown, and an unproven claim delays nothing
	}
	if err != nil || live == nil {
		return err
	}
	if l.isLeftover(one.entry.GroupKind(), live) {
		one.live, one.entry.UID = live, live.UID
	}
	return nil
}

func (l *leftovers) isLeftover(kind schema.GroupKind, live *metav1.PartialObjectMetadata) bool {
	if live.DeletionTimestamp != nil || ownership.IsKeptByHelm(live) {
		return false
	}
	found := ownership.Of(live, ownership.Question{Owner: l.Owner, Release: &l.Marks, NameOf: l.NameOf})
	if l.Hooks {
		return isOfUpgrade(kind, live) && live.Namespace == l.Marks.ReleaseNamespace && found.IsLeftoverHook()
	}
	return found.IsLeftover()
}

// isOfUpgrade says whether helm would delete a hook's object with the next upgrade. Objects of
// install hooks are not created again, and may hold the only copy of a password.
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

// isRefusedRead says that the API server refuses to return an object, for another reason than our credentials.
func isRefusedRead(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusUnauthorized
}

const helmDeletePolicyAnnotation = "helm.sh/hook-delete-policy"
