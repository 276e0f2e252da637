package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// mostSets is how many sets are listed.
const mostSets = 500

type setList struct {
	Sets  []setRow `json:"sets"`
	Total int      `json:"total"`
}

// setRow is one AddonSet of the seed in a list.
type setRow struct {
	Name         string           `json:"name"`
	Type         string           `json:"type,omitempty"`
	State        string           `json:"state"`
	Reason       string           `json:"reason,omitempty"`
	Message      string           `json:"message,omitempty"`
	Counts       v1.ClusterCounts `json:"counts"`
	PendingCount int32            `json:"pendingCount"`
}

// setAnswer is one AddonSet: its groups, what is pending, and why it halts.
type setAnswer struct {
	setRow
	Conditions []conditionAnswer     `json:"conditions"`
	Groups     []v1.GroupStatus      `json:"groups"`
	Pending    []v1.PendingChange    `json:"pending"`
	Clusters   []v1.SetClusterStatus `json:"clusters"`
	Removal    *v1.PendingRemoval    `json:"removal,omitempty"`
}

// sets lists the seed's AddonSets.
func (s *Server) sets(ctx context.Context, of *call) (*content, error) {
	if err := s.Reviews.Authorise(ctx, of.identity, s.setAccess("list")); err != nil {
		return nil, err
	}
	var all v1.AddonSetList
	// The cache owns the objects.
	err := s.Installations.List(ctx, &all, client.InNamespace(s.options.CatalogueNamespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing AddonSets: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b v1.AddonSet) int { return cmp.Compare(a.Name, b.Name) })
	found := setList{Sets: []setRow{}, Total: len(all.Items)}
	for i := range all.Items[:min(len(all.Items), mostSets)] {
		row := setRowOf(&all.Items[i])
		row.Message = text.Cut(row.Message, rowMessage)
		found.Sets = append(found.Sets, row)
	}
	return answerOf(found)
}

func (s *Server) setAccess(verb string) Access {
	return Access{Namespace: s.options.CatalogueNamespace, Resource: resourceSets, Verb: verb}
}

func setRowOf(one *v1.AddonSet) setRow {
	row := setRow{
		Name: one.Name, Type: string(one.Spec.Type), PendingCount: one.Status.PendingCount,
		Counts: *cmp.Or(one.Status.Counts, &v1.ClusterCounts{}),
	}
	row.State, row.Reason, row.Message = view.StateOf(one.Status.Conditions)
	return row
}

// liveSet is an AddonSet of the seed. Errors: *NotFoundError.
func (s *Server) liveSet(ctx context.Context, called string) (*v1.AddonSet, error) {
	key, one := client.ObjectKey{Namespace: s.options.CatalogueNamespace, Name: called}, &v1.AddonSet{}
	err := s.Installations.Get(ctx, key, one)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &NotFoundError{}
	case err != nil:
		return nil, fmt.Errorf("reading AddonSet %q: %w", key, err)
	}
	return one, nil
}

// set shows one AddonSet of the seed.
func (s *Server) set(ctx context.Context, of *call) (*content, error) {
	called, err := objectName(of.path["name"])
	if err != nil {
		return nil, err
	}
	if err := s.Reviews.Authorise(ctx, of.identity, s.setAccess("get")); err != nil {
		return nil, err
	}
	one, err := s.liveSet(ctx, called)
	if err != nil {
		return nil, err
	}
	shown := setAnswer{
		setRow: setRowOf(one), Conditions: []conditionAnswer{}, Groups: append([]v1.GroupStatus{}, one.Status.Groups...),
		Pending:  append([]v1.PendingChange{}, one.Status.Pending...),
		Clusters: append([]v1.SetClusterStatus{}, one.Status.Clusters...), Removal: one.Status.Removal,
	}
	for _, condition := range one.Status.Conditions {
		shown.Conditions = append(shown.Conditions, shownCondition(condition))
	}
	return answerOf(shown)
}
