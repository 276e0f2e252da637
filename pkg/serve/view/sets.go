package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
)

// Sets is the table of AddonSets, by namespace and name.
func Sets(sets []v1.AddonSet, now time.Time) Table {
	slices.SortFunc(sets, func(a, b v1.AddonSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	table := NewTable("NAME", "STATE", "REASON?", "CURRENT", "PENDING?", "FAILED?", "AGE?", "NAMESPACE*", "TYPE*", "MESSAGE*?")
	for i := range sets {
		one := &sets[i]
		state, reason, message := StateOf(one.Status.Conditions)
		counts := cmp.Or(one.Status.Counts, &v1.ClusterCounts{})
		cells := Of(one.Name, state, reason, number(counts.Current)+"/"+number(counts.Selected), number(one.Status.PendingCount),
			number(counts.Failed), Age(now.Sub(one.CreationTimestamp.Time)), one.Namespace, string(one.Spec.Type), message)
		cells[1] = StateCell(state)
		table.Add(cells...)
	}
	return table
}

func number(of int32) string { return strconv.Itoa(int(of)) }

// StateOf is the state that conditions show, with reason and message unless it is Ready.
func StateOf(all []metav1.Condition) (state, reason, message string) {
	found, ready := conditions.StateOf(all)
	if ready != nil && found != conditions.StateReady {
		reason, message = ready.Reason, ready.Message
	}
	return stateNames[found], reason, message
}

// Set are the tables about an AddonSet: its state, groups, outstanding changes, and clusters that are not current.
func Set(one *v1.AddonSet, now time.Time) []Table {
	state, reason, message := StateOf(one.Status.Conditions)
	var removal string
	if waits := one.Status.Removal; waits != nil {
		removal = number(waits.Count) + " installations wait: annotation " + v1.AnnotationRemovalApproved + "=" + waits.Word + " approves it"
	}
	about := Fields("Set", one.Name, "State", strings.TrimSpace(state+" "+reason), "Message", message, "Removal", removal)
	states := NewTable("CONDITION", "STATUS", "REASON", "SINCE?", "MESSAGE>")
	for _, condition := range one.Status.Conditions {
		states.Add(conditionCells(condition, now)...)
	}
	groups := NewTable("GROUP", "STATE", "CURRENT", "MOVING", "BEHIND?", "FAILED", "SICK?")
	for _, group := range one.Status.Groups {
		counts := group.Counts
		groups.Add(Of(group.Name, string(group.State), number(counts.Current)+"/"+number(counts.Selected), number(counts.Moving),
			number(counts.Behind), number(counts.Failed), number(counts.Sick))...)
	}
	pending := NewTable("ITEM", "CHANGE", "FROM", "TO", "CLUSTERS", "EXAMPLE?")
	for _, change := range one.Status.Pending {
		pending.Add(Of(change.Item, string(change.Change), change.From, change.To, number(change.Clusters), change.Example)...)
	}
	clusters := NewTable("CLUSTER", "SEED?", "STATE", "ITEM?", "REASON", "MESSAGE>")
	for _, cluster := range one.Status.Clusters {
		clusters.Add(Of(cluster.Name, cluster.Seed, string(cluster.State), cluster.Item, cluster.Reason, cluster.Message)...)
	}
	return []Table{about, states, groups, pending, clusters}
}
