package addoninstallation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// One function sets each condition, from all facts and the outcome.

// earned are the conditions that a reconciliation sets, in its order.
var earned = []string{
	kubermaticv1.ConditionCompatible, kubermaticv1.ConditionValuesResolved, kubermaticv1.ConditionFetched, kubermaticv1.ConditionRendered,
	kubermaticv1.ConditionAccessReady, kubermaticv1.ConditionApplied, kubermaticv1.ConditionHealthy,
}

// inOrder sorts conditions: Ready, the earned ones, others by name.
func inOrder(conditions []metav1.Condition) {
	rank := func(condition metav1.Condition) int {
		at := slices.Index(earned, condition.Type)
		if at < 0 && condition.Type != kubermaticv1.ConditionReady {
			at = len(earned)
		}
		return at
	}
	slices.SortFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.Type, b.Type))
	})
}

// earn sets an earned condition: True with the reason if the reconciliation passed its step, or the outcome's status if
// the outcome is about it. If the reconciliation ended earlier, False becomes Unknown, since the failure was found with
// other inputs. An outcome about Ready changes no earned condition.
func earn(f *facts, outcome *loop.Outcome, condition, reason, message string) {
	list, generation := &f.installation.Status.Conditions, f.installation.Generation
	at, ended := slices.Index(earned, condition), slices.Index(earned, outcome.Condition)
	switch before := meta.FindStatusCondition(*list, condition); {
	case outcome.Is(loop.Done), at < ended:
		conditions.True(list, generation, condition, reason, message)
	case at == ended:
		conditions.Set(list, outcome.As(condition, generation))
	case ended >= 0 && before != nil && before.Status == metav1.ConditionFalse && !installation.IsHeld(before.Reason):
		conditions.Unknown(list, generation, condition, kubermaticv1.ReasonProgressing,
			"this step is tried again once condition "+outcome.Condition+" is True")
	}
}

// earnOfContent is earn for a condition about content. If only the record has the content, nothing was checked, so True
// stays.
func earnOfContent(f *facts, outcome *loop.Outcome, condition, reason, message string) {
	isPast := outcome.Is(loop.Done) || slices.Index(earned, condition) < slices.Index(earned, outcome.Condition)
	if isPast && f.pinned != "" && meta.IsStatusConditionTrue(f.installation.Status.Conditions, condition) {
		return
	}
	earn(f, outcome, condition, reason, message)
}

func setCompatible(f *facts, outcome *loop.Outcome) {
	reason, message := kubermaticv1.ReasonCompatible, ""
	version := f.choice.Version
	switch {
	case f.pinned != "":
		reason, message = kubermaticv1.ReasonPinned, f.pinned
	case version != nil && version.Deprecated != "":
		reason, message = kubermaticv1.ReasonDeprecated, deprecation(version, f.installation.Status.AvailableUpdate)
	}
	earn(f, outcome, kubermaticv1.ConditionCompatible, reason, message)
}

func setValuesResolved(f *facts, outcome *loop.Outcome) {
	unknown := unknownKeys(f.installation, f.values)
	earnOfContent(f, outcome, kubermaticv1.ConditionValuesResolved, kubermaticv1.ReasonValuesResolved, unknown)
}

func setFetched(f *facts, outcome *loop.Outcome) {
	reason := kubermaticv1.ReasonFetched
	if f.moved != "" {
		reason = kubermaticv1.ReasonArtifactMoved
	}
	earnOfContent(f, outcome, kubermaticv1.ConditionFetched, reason, f.moved)
}

func setRendered(f *facts, outcome *loop.Outcome) {
	if installation.IsHeld(outcome.Reason) { // before rendering
		return
	}
	reason, message := kubermaticv1.ReasonRendered, f.leftOut()
	if hasNothing(&f.run) {
		reason, message = kubermaticv1.ReasonNothingToApply, "every template of the add-on renders to nothing for this cluster"
	}
	earnOfContent(f, outcome, kubermaticv1.ConditionRendered, reason, message)
}

// setAccessReady reports the credentials that the reconciliation maintained; few versions have any. A reconciliation
// that ended before leaves the condition.
func setAccessReady(f *facts, outcome *loop.Outcome) {
	list, generation := &f.installation.Status.Conditions, f.installation.Generation
	switch worst := f.worstAccess(); {
	case outcome.Condition == kubermaticv1.ConditionAccessReady:
		conditions.Set(list, outcome.As(outcome.Condition, generation))
	case f.hasNoAccess():
		meta.RemoveStatusCondition(list, kubermaticv1.ConditionAccessReady)
	case worst != nil && worst.Usable:
		conditions.True(list, generation, kubermaticv1.ConditionAccessReady, worst.Problem.Reason, worst.Problem.Message)
	case worst != nil:
		conditions.False(list, generation, kubermaticv1.ConditionAccessReady, worst.Problem.Reason, worst.Problem.Message)
	case len(f.statuses) > 0:
		conditions.True(list, generation, kubermaticv1.ConditionAccessReady, kubermaticv1.ReasonAccessGranted, "")
	}
}

// setApplied gives a wait for other installations a transition time of its own, which is its clock, even if the
// condition was already False for another reason. A finished rollout is applied even if no version is available.
func setApplied(f *facts, outcome *loop.Outcome) {
	list, kind := &f.installation.Status.Conditions, kubermaticv1.ConditionApplied
	before := meta.FindStatusCondition(*list, kind)
	switch {
	case f.run.Decision.Do == revision.Finish && f.run.Applied != nil:
		conditions.True(list, f.installation.Generation, kind, kubermaticv1.ReasonApplied, sharedText(f.run.Record()))
		return
	case outcome.Condition != kind || !installation.IsHeld(outcome.Reason):
	case before != nil && before.Status == metav1.ConditionFalse && !installation.IsHeld(before.Reason):
		meta.RemoveStatusCondition(list, kind)
	}
	earn(f, outcome, kind, kubermaticv1.ReasonApplied, sharedText(f.run.Record()))
}

// setHealthy reports the health of the objects, even if the outcome is about another condition. During a rollout the
// previous revision's health is not reported.
func setHealthy(f *facts, outcome *loop.Outcome) {
	list, generation, kind := &f.installation.Status.Conditions, f.installation.Generation, kubermaticv1.ConditionHealthy
	record := f.run.Record()
	switch {
	case outcome.Condition == kind:
		conditions.Set(list, outcome.As(kind, generation))
	case outcome.Is(loop.Done), f.run.IsHealthy():
		reason, message := wellBy(&f.run)
		conditions.True(list, generation, kind, reason, message)
	case f.run.Health != nil:
		conditions.Set(list, f.run.Unhealthy().As(kind, generation))
	case record != nil && !record.IsApplied() && meta.FindStatusCondition(*list, kind) != nil:
		conditions.Unknown(list, generation, kind, kubermaticv1.ReasonProgressing,
			fmt.Sprintf("version %q is not completely applied", record.Version))
	}
}

// setDrifted keeps the result of the last comparison if this reconciliation compared nothing.
func setDrifted(f *facts) {
	list, generation, kind := &f.installation.Status.Conditions, f.installation.Generation, kubermaticv1.ConditionDrifted
	if f.run.Applied != nil && meta.FindStatusCondition(*list, kind) == nil {
		conditions.False(list, generation, kind, kubermaticv1.ReasonNoDrift, "") // it was just written
	}
	if f.run.Compared == nil {
		return
	}
	fights, drifted, newer := f.run.Compared.Fights, f.run.Compared.Drifted, f.run.Compared.Newer
	switch {
	case len(fights) > 0:
		conditions.True(list, generation, kind, kubermaticv1.ReasonFight, fmt.Sprintf(
			"%s is changed back after each repair and is no longer repaired: stop the client that changes it, then set annotation %s",
			fights[0], kubermaticv1.AnnotationReconcileAt))
	case len(newer) > 0:
		conditions.True(list, generation, kind, kubermaticv1.ReasonNewerContent, fmt.Sprintf(
			"Trellis wrote %s after the recorded revision (%s in all), for example before the seed was restored; it stays until it is "+
				"applied again: to restore the recorded content, set annotation %s",
			newer[0], text.Count(len(newer), "object"), kubermaticv1.AnnotationReconcileAt))
	case len(drifted) > 0:
		conditions.True(list, generation, kind, kubermaticv1.ReasonDriftShown, fmt.Sprintf(
			"%s differs from what was applied (%s in all) and is not repaired, since the reconcile strategy is Once",
			drifted[0], text.Count(len(drifted), "object")))
	case len(f.run.Repaired) > 0:
		conditions.False(list, generation, kind, kubermaticv1.ReasonRepaired, repairedText(f.run.Repaired))
	default:
		conditions.False(list, generation, kind, kubermaticv1.ReasonNoDrift, "")
	}
}

// setDeletionBlocked says why a core add-on that is being deleted is kept.
func setDeletionBlocked(f *facts) {
	list, generation, kind := &f.installation.Status.Conditions, f.installation.Generation, kubermaticv1.ConditionDeletionBlocked
	switch {
	case f.installation.DeletionTimestamp.IsZero():
	case !isRemoved(f.installation):
		conditions.True(list, generation, kind, kubermaticv1.ReasonInCoreSet, kubermaticv1.DeletionBlockedMessage)
	case meta.IsStatusConditionTrue(*list, kind):
		conditions.False(list, generation, kind, kubermaticv1.ReasonRemoving, "")
	}
}

// setReady summarizes: the message of the outcome or, if it is Done, the installed version.
func setReady(f *facts, outcome *loop.Outcome) {
	state, generation := &f.installation.Status, f.installation.Generation
	if !outcome.Is(loop.Done) {
		conditions.Set(&state.Conditions, outcome.As(kubermaticv1.ConditionReady, generation))
		return
	}
	installed := "is installed and healthy"
	switch {
	case hasNothing(&f.run):
		installed = "has nothing to apply for this cluster"
	case isUnwatched(&f.run):
		installed = "is installed; its health is not checked"
	}
	conditions.True(&state.Conditions, generation, kubermaticv1.ConditionReady, kubermaticv1.ReasonReady,
		fmt.Sprintf("%s %s %s%s", f.installation.Spec.AddonRef.Name, state.Version, installed, waitingChange(state.Conditions)))
}
