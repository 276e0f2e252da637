package query

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// clusterPage is a part of the clusters that a caller may see.
type clusterPage struct {
	Clusters  []clusterRow `json:"clusters"`
	Total     int          `json:"total"`
	After     string       `json:"after,omitempty"`
	Truncated bool         `json:"truncated,omitempty"`
}

type clusterRow struct {
	Namespace  string      `json:"namespace"`
	Name       string      `json:"name"`
	Kind       string      `json:"kind"`
	K8sVersion string      `json:"k8sVersion"`
	KKPVersion string      `json:"kkpVersion,omitempty"`
	Paused     bool        `json:"paused,omitempty"`
	Deleted    bool        `json:"deleted,omitempty"`
	Counts     stateCounts `json:"counts"`
	// AddonsReady is that condition of the cluster's available catalogue; nil: it has none yet.
	AddonsReady *conditionAnswer `json:"addonsReady,omitempty"`
}

// TrimAvailable is the transform of the cache of available catalogues: it keeps condition AddonsReady only.
func TrimAvailable(object any) (any, error) {
	found, ok := object.(*v1.AddonCatalogue)
	if !ok {
		return object, nil
	}
	kept := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
	}}
	if ready := meta.FindStatusCondition(found.Status.Conditions, v1.ConditionAddonsReady); ready != nil {
		kept.Status.Conditions = []metav1.Condition{*ready}
	}
	return kept, nil
}

// clusters lists the clusters in the namespaces where the caller may list installations.
func (s *Server) clusters(ctx context.Context, of *call) (*content, error) {
	seen, end, err := s.reads(ctx, of)
	if err != nil {
		return nil, err
	}
	defer end()
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	all, err := s.Clusters.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	asked := &of.given.rows
	all = slices.DeleteFunc(all, func(one target.Description) bool { return one.Namespace == "" || !seen.has(one.Namespace) })
	slices.SortFunc(all, func(a, b target.Description) int { return placeOf(a).compare(placeOf(b)) })
	found := clusterPage{Clusters: []clusterRow{}, Total: len(all), Truncated: seen.truncated}
	if asked.after != nil {
		all = slices.DeleteFunc(all, func(one target.Description) bool { return placeOf(one).compare(*asked.after) <= 0 })
	}
	if len(all) > asked.limit {
		all = all[:asked.limit]
		found.After = placeOf(all[asked.limit-1]).String()
	}
	counts := s.countsOf(all)
	for _, one := range all {
		row, err := s.clusterRow(ctx, at, one)
		if err != nil {
			return nil, err
		}
		row.Counts = counts[placeOf(one)]
		found.Clusters = append(found.Clusters, row)
	}
	return answerOf(found)
}

func placeOf(one target.Description) position { return position{"", one.Namespace, one.Name} }

// countsOf counts the installations of clusters by state.
func (s *Server) countsOf(clusters []target.Description) map[position]stateCounts {
	counts, in := map[position]stateCounts{}, scope{}
	for _, one := range clusters {
		counts[placeOf(one)] = newCounts()
		in.namespaces = append(in.namespaces, one.Namespace)
	}
	in.namespaces = slices.Compact(in.namespaces)
	s.Rows.each(in, func(one *row) {
		if of := counts[position{"", one.Namespace, one.Cluster}]; of != nil {
			of[one.State]++
		}
	})
	return counts
}

func (s *Server) clusterRow(ctx context.Context, at *snapshot, one target.Description) (clusterRow, error) {
	platform := s.platform(at, one)
	row := clusterRow{
		Namespace: one.Namespace, Name: one.Name, Kind: one.Kind.String(), K8sVersion: platform.K8sVersion, KKPVersion: platform.KKPVersion,
		Paused: one.Paused, Deleted: one.Deleted,
	}
	var offered v1.AddonCatalogue
	err := s.Available.Get(ctx, cluster.AvailableOf(one.Ref), &offered)
	switch {
	case apierrors.IsNotFound(err):
		return row, nil
	case err != nil:
		return row, fmt.Errorf("reading AddonCatalogue %q: %w", cluster.AvailableOf(one.Ref), err)
	}
	if ready := meta.FindStatusCondition(offered.Status.Conditions, v1.ConditionAddonsReady); ready != nil {
		shown := shownCondition(*ready)
		shown.Message = text.Cut(shown.Message, rowMessage)
		row.AddonsReady = &shown
	}
	return row, nil
}

// conditionAnswer is a condition, with what to do about it.
type conditionAnswer struct {
	Type    string      `json:"type"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	Since   metav1.Time `json:"since"`
	Do      string      `json:"do,omitempty"`
}

func shownCondition(of metav1.Condition) conditionAnswer {
	return conditionAnswer{Type: of.Type, Status: string(of.Status), Reason: of.Reason, Message: of.Message, Since: of.LastTransitionTime}
}
