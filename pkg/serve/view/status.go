package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Status are the tables about an installation: what it is and what to do, its conditions in their order, and objects that are not healthy.
func Status(one *v1.AddonInstallation, now time.Time) []Table {
	row := RowOf(one, now)
	about := Fields(
		"Installation", row.Name, "Cluster", row.Cluster, "Namespace", row.Namespace, "Target namespace", row.TargetNamespace,
		"Add-on", row.Addon, "Requested", cmp.Or(row.Wanted, "newest that fits"), "Installed", row.Version, "Update", row.Update,
		"State", strings.TrimSpace(row.State+" "+row.Reason), "Message", row.Message, "What to do", AdviceOn(v1.ConditionReady, row.Reason).Do,
		"Objects", row.Objects, "Attempts", attempts(one, now),
	)
	conditions := NewTable("CONDITION", "STATUS", "REASON", "SINCE?", "MESSAGE>")
	for _, condition := range one.Status.Conditions {
		conditions.Add(conditionCells(condition, now)...)
	}
	unhealthy := NewTable("NOT HEALTHY", "REASON", "MESSAGE>")
	for _, object := range one.Status.Unhealthy {
		unhealthy.Add(Of(object.Ref, object.Reason, object.Message)...)
	}
	return []Table{about, conditions, unhealthy}
}

func conditionCells(condition metav1.Condition, now time.Time) []Cell {
	cells := Of(condition.Type, string(condition.Status), condition.Reason, Age(now.Sub(condition.LastTransitionTime.Time)), condition.Message)
	cells[1].Colour = map[metav1.ConditionStatus]Colour{metav1.ConditionTrue: Green, metav1.ConditionFalse: Red}[condition.Status]
	return cells
}

// attempts says how often an installation failed in a row, and when it is tried next.
func attempts(one *v1.AddonInstallation, now time.Time) string {
	if one.Status.Failures == 0 {
		return ""
	}
	failed := fmt.Sprintf("%d failed in a row", one.Status.Failures)
	if next := one.Status.NextAttempt; next != nil && next.After(now) {
		failed += ", the next within " + Age(next.Sub(now))
	}
	return failed
}

// LastSeen is when an event happened last.
func LastSeen(event *eventsv1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.DeprecatedLastTimestamp.Time
}

// Events is the table of events, in the given order.
func Events(events []eventsv1.Event, now time.Time) Table {
	table := NewTable("AGE", "NAME", "TYPE?", "REASON", "MESSAGE>")
	for i := range events {
		one := &events[i]
		cells := Of(Age(now.Sub(LastSeen(one))), one.Regarding.Name, one.Type, one.Reason, one.Note)
		if one.Type == "Warning" {
			cells[2].Colour = Yellow
		}
		table.Add(cells...)
	}
	return table
}

// changes are the reasons of events about what is in the user cluster.
var changes = map[string]bool{
	v1.EventApplied: true, v1.EventAdopted: true, v1.EventRolledBack: true, v1.EventRepaired: true, v1.EventReleaseChanged: true,
	v1.EventWithdrawn: true, v1.EventLeft: true, v1.EventRecordDamaged: true, v1.EventFieldsTaken: true, v1.EventShared: true,
}

// IsChange says whether an event is about what is in the user cluster, rather than about a problem.
func IsChange(event *eventsv1.Event) bool { return changes[event.Reason] }

// Applied is what an installation has in the user cluster.
func Applied(one *v1.AddonInstallation, now time.Time) Table {
	applied := one.Status.LastApplied
	if applied == nil {
		return Fields("Installation", one.Name, "Applied", "nothing yet")
	}
	var since, release string
	if applied.Time != nil {
		since = Age(now.Sub(applied.Time.Time)) + " ago"
	}
	if one.Status.Release != nil {
		release = fmt.Sprintf("%s, revision %d, %s", one.Status.Release.Name, one.Status.Release.Revision, one.Status.Release.Status)
	}
	return Fields("Installation", one.Name, "Applied", applied.Addon+" "+applied.Version, "Changed", since,
		"For Kubernetes", applied.K8sVersion, "Content", applied.EntryDigest, "Helm release", release)
}
