package coreaddon

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// namedAtMost is the maximum number of installations in a message.
const namedAtMost = 3

// listedAtMost is the maximum number of core add-ons in status.core.
const listedAtMost = 200

// reasonLength is the maximum length of a reason in status.core. Users may write the status of installations.
const reasonLength = 128

// coreOf lists and counts the core add-ons of the plan, for status.core.
func coreOf(f *facts) v1.CoreAddons {
	var listed []v1.CoreAddonState
	for _, member := range f.plan.members {
		listed = append(listed, stateOf(member))
	}
	for _, one := range f.set.wanted {
		if f.set.frozen != "" || slices.ContainsFunc(listed, func(before v1.CoreAddonState) bool { return before.Name == one.name }) {
			continue
		}
		state := v1.CoreAddonProgressing // its installation is not created yet
		switch {
		case slices.Contains(f.plan.taken, one.name):
			state = v1.CoreAddonNameTaken
		case slices.Contains(f.plan.missing, one.addon()), slices.Contains(f.plan.unknown, one.addon()):
			state = v1.CoreAddonMissing
		}
		listed = append(listed, v1.CoreAddonState{Name: one.name, Addon: one.addon(), State: state})
	}
	slices.SortFunc(listed, func(a, b v1.CoreAddonState) int { return strings.Compare(a.Name, b.Name) })
	return v1.CoreAddons{CoreAddonCounts: countsOf(&f.plan), Addons: listed[:min(len(listed), listedAtMost)]}
}

// stateOf is the state of an installation, for status.core.
func stateOf(member *v1.AddonInstallation) v1.CoreAddonState {
	state := v1.CoreAddonState{
		Name: member.Name, Addon: string(member.Spec.AddonRef.Name), Version: member.Status.Version, State: v1.CoreAddonProgressing,
	}
	ready := meta.FindStatusCondition(member.Status.Conditions, v1.ConditionReady)
	if ready != nil {
		state.Reason = ready.Reason[:min(len(ready.Reason), reasonLength)]
	}
	switch {
	case installation.IsReady(member):
		state.State = v1.CoreAddonReady
	case ready != nil && ready.Status == metav1.ConditionFalse:
		state.State = v1.CoreAddonFailing
	}
	return state
}

// countsOf are the counts of the plan, for status.core.
func countsOf(p *plan) v1.CoreAddonCounts {
	counts := v1.CoreAddonCounts{Total: int32(p.total), Missing: int32(len(p.missing) + len(p.unknown))}
	for _, member := range p.members {
		switch ready := meta.FindStatusCondition(member.Status.Conditions, v1.ConditionReady); {
		case installation.IsReady(member):
			counts.Ready++
		case ready != nil && ready.Status == metav1.ConditionFalse:
			counts.Failing++
		}
	}
	return counts
}

// isUnfit reports whether no version of an installation's add-on fits its cluster.
func isUnfit(installation *v1.AddonInstallation) bool {
	return meta.IsStatusConditionFalse(installation.Status.Conditions, v1.ConditionCompatible)
}

// conditionOf is AddonsReady for a cluster: the worst finding decides.
func conditionOf(f *facts) metav1.Condition {
	say := func(status metav1.ConditionStatus, reason, format string, arguments ...any) metav1.Condition {
		return metav1.Condition{Type: v1.ConditionAddonsReady, Status: status, Reason: reason, Message: fmt.Sprintf(format, arguments...)}
	}
	counts, waiting := countsOf(&f.plan), append(notReady(&f.plan), f.gates...)
	unknown := unknownText(f)
	switch {
	case f.terminating:
		return say(metav1.ConditionFalse, v1.ReasonNamespaceTerminating,
			"namespace %q is being deleted and its cluster is not: core add-ons stay in the cluster, and none is added", f.asked.Namespace)
	case len(f.plan.taken) > 0:
		return say(metav1.ConditionFalse, v1.ReasonNameTaken,
			"AddonInstallation %q is not a core add-on, but has the name of one: delete it, and create it again under another name", f.plan.taken[0])
	case len(f.failures) > 0:
		name := slices.Sorted(maps.Keys(f.failures))[0]
		return say(metav1.ConditionFalse, v1.ReasonFailed, "%s", f.failures[name])
	case f.set.frozen != "":
		return say(metav1.ConditionUnknown, v1.ReasonCoreSetUnknown, "%s", f.set.frozen)
	case len(waiting) > 0:
		message := fmt.Sprintf("%d of %d core add-ons are ready; %s", counts.Ready, counts.Total-counts.Missing, text.Names(waiting, namedAtMost))
		if len(f.plan.unknown) > 0 {
			message += missingText(&f.plan)
		}
		if unknown != "" {
			message += "; " + unknown
		}
		return say(metav1.ConditionFalse, v1.ReasonCoreAddonsNotReady, "%s", message)
	case len(f.plan.unknown) > 0:
		return say(metav1.ConditionFalse, v1.ReasonAddonUnknown, "%s%s", readyText(counts), missingText(&f.plan))
	case unknown != "":
		return say(metav1.ConditionUnknown, v1.ReasonCoreSetUnknown, "%s", unknown)
	}
	if counts.Missing == 0 {
		return say(metav1.ConditionTrue, v1.ReasonCoreAddonsReady, "all %d core add-ons are ready", counts.Ready)
	}
	return say(metav1.ConditionTrue, v1.ReasonCoreAddonsReady, "%s%s", readyText(counts), missingText(&f.plan))
}

func readyText(counts v1.CoreAddonCounts) string {
	return fmt.Sprintf("%d of %d desired core add-ons are ready", counts.Ready, counts.Total)
}

// missingText names add-ons that no catalogue has. A rule without an add-on is no problem: a platform chooses its
// add-ons. Every add-on of the list is required.
func missingText(p *plan) string {
	var found strings.Builder
	for _, one := range []struct {
		names []string
		from  string
	}{{p.unknown, "catalogue"}, {p.missing, "Core catalogue"}} {
		if number := len(one.names); number > 0 {
			fmt.Fprintf(&found, "; %d %s in no %s: %s", number, text.Verb(number, "is", "are"), one.from, text.Names(one.names, namedAtMost))
		}
	}
	return found.String()
}

// unknownText says which part of the set is unknown; empty if none is.
func unknownText(f *facts) string {
	if f.set.refused != "" {
		return f.set.refused
	}
	if held := heldText(&f.set); held != "" {
		return held + "; it stays as it is"
	}
	if orphans := orphansOf(f); len(orphans) > 0 {
		return fmt.Sprintf("ConfigMap %q, which listed %s, no longer exists: these add-ons stay as they are; create the "+
			"ConfigMap again, or with an empty list (%s: '[]') to remove them", ListName, text.Names(orphans, namedAtMost), ListKey)
	}
	return ""
}

// orphansOf are the members from a deleted list, sorted.
func orphansOf(f *facts) []string {
	if !f.set.keepListed {
		return nil
	}
	var names []string
	for _, member := range f.plan.members {
		if isListed(member) {
			names = append(names, member.Name)
		}
	}
	slices.Sort(names)
	return names
}

// notReady names the members that are not ready, each with its reason.
func notReady(p *plan) []string {
	var names []string
	for _, member := range p.members {
		if installation.IsReady(member) {
			continue
		}
		reason := v1.ReasonProgressing
		if ready := meta.FindStatusCondition(member.Status.Conditions, v1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
			reason = ready.Reason
		}
		names = append(names, fmt.Sprintf("%s: %s", member.Name, reason))
	}
	slices.Sort(names)
	return names
}

// heldText names an add-on of which it is unknown whether the cluster should have it; empty if there is none.
func heldText(s *set) string {
	names := slices.Sorted(maps.Keys(s.held))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("it can't be determined whether the cluster should have %s: %s", names[0], s.held[names[0]])
}
