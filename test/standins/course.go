package standins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

const notAnswering = "the user cluster's API server does not answer"

// course is what the player knows of an installation beside its status.
type course struct {
	// generation that is played, in a cluster that answers, since begun.
	generation int64
	begun      time.Time
	// good is what was applied when it was Ready last.
	good *v1.AppliedState
	// gaveUp: this generation was rolled back.
	gaveUp bool
	// wrote is the resourceVersion of the last write.
	wrote string
	// removing is when the deletion was seen.
	removing time.Time
}

// courseOf is that of an installation that another player had before, as far as its status tells.
func courseOf(installation *v1.AddonInstallation) *course {
	c := &course{}
	ready := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionReady)
	if ready == nil || installation.Status.LastApplied == nil {
		return c
	}
	rolledBack := ready.Reason == v1.ReasonRolledBack
	if ready.Status == metav1.ConditionTrue || rolledBack {
		c.good = installation.Status.LastApplied.DeepCopy()
	}
	if rolledBack && ready.ObservedGeneration == installation.Generation {
		c.generation, c.gaveUp, c.begun = installation.Generation, true, ready.LastTransitionTime.Time
	}
	return c
}

// follow writes the status that an installation has now into it, and gives how long it is right; 0 is until something changes.
func (c *course) follow(installation *v1.AddonInstallation, act Act, now time.Time) time.Duration {
	status := &installation.Status
	status.ObservedGeneration, status.Cause = installation.Generation, ""
	switch {
	case act.Fate == Unreachable:
		setReady(installation, metav1.ConditionUnknown, v1.ReasonClusterUnreachable, notAnswering)
		return 0
	case installation.Spec.Paused:
		setReady(installation, metav1.ConditionFalse, v1.ReasonPaused, "the installation is paused: set spec.paused to false to continue")
		return 0
	case act.Fate == Waits:
		setReady(installation, metav1.ConditionFalse, act.Reason, "it waits, by the script")
		return 0
	}
	if c.generation != installation.Generation {
		c.generation, c.begun, c.gaveUp = installation.Generation, now, false
	}
	if c.gaveUp {
		apply(status, *c.good, now)
		showRolledBack(installation, act.Cause)
		return 0
	}
	if act.Fate == Refused {
		passed(installation, v1.ConditionRendered)
		setCondition(installation, v1.ConditionApplied, metav1.ConditionFalse, v1.ReasonObjectInvalid, "it is refused, by the script")
		setReady(installation, metav1.ConditionFalse, v1.ReasonObjectInvalid, "it is refused, by the script")
		return 0
	}
	apply(status, appliedBy(installation), now)
	passed(installation, v1.ConditionApplied)
	left := c.begun.Add(act.takes(installation)).Sub(now)
	switch {
	case act.Fate == Works && left <= 0:
		c.good = status.LastApplied.DeepCopy()
		return showReady(installation, act.Flaps, -left)
	case act.Fate == RollsBack && left <= 0 && c.good != nil:
		c.gaveUp = true
		apply(status, *c.good, now)
		showRolledBack(installation, act.Cause)
		return 0
	case left <= 0 && act.Takes > 0:
		showUnhealthy(installation, v1.ReasonTimeout, "0 of 1 objects are healthy; not healthy in time, by the script")
		status.Cause = act.Cause
		return 0
	}
	showUnhealthy(installation, v1.ReasonProgressing, "0 of 1 objects are healthy")
	return max(left, 0)
}

// isGone says whether the finalizer may go, or how long that takes; 0 is until something changes.
func (c *course) isGone(installation *v1.AddonInstallation, act Act, now time.Time) (bool, time.Duration) {
	if installation.Spec.DeletionPolicy == v1.DeletionOrphan {
		return true, 0
	}
	installation.Status.ObservedGeneration = installation.Generation
	if act.Fate == Unreachable {
		setReady(installation, metav1.ConditionUnknown, v1.ReasonClusterUnreachable, notAnswering+"; the removal waits until this is solved")
		return false, 0
	}
	if c.removing.IsZero() {
		c.removing = now
	}
	left := c.removing.Add(act.takes(installation)).Sub(now)
	if left <= 0 && act.Fate != Hangs {
		return true, 0
	}
	setReady(installation, metav1.ConditionFalse, v1.ReasonRemoving, "objects are being removed")
	return false, max(left, 0)
}

// appliedBy is what applying the present spec leaves; its time is not set.
func appliedBy(object *v1.AddonInstallation) v1.AppliedState {
	spec := object.Spec.DeepCopy()
	spec.Paused, spec.DeletionPolicy = false, "" // no part of what is rendered
	content, err := json.Marshal(spec)
	if err != nil {
		panic(err) // it came as JSON
	}
	sum := sha256.Sum256(content)
	inputs := hex.EncodeToString(sum[:8])
	applied := v1.AppliedState{
		Addon: string(spec.AddonRef.Name), Version: spec.AddonRef.Version, EntryDigest: spec.AddonRef.Digest,
		ArtifactDigest: "sha256:" + inputs, Inputs: inputs, Objects: inputs,
	}
	if granted, isGrant := installation.ReadGrant(object.Annotations[v1.AnnotationPlatformValues]); isGrant {
		applied.PlatformValues = granted.Content
		applied.Inputs += granted.Content
	}
	return applied
}

// apply takes something for applied. The time is that of the last change.
func apply(status *v1.AddonInstallationStatus, applied v1.AppliedState, now time.Time) {
	status.Version = applied.Version
	if last := status.LastApplied; last != nil && last.Inputs == applied.Inputs && last.EntryDigest == applied.EntryDigest {
		return
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	applied.Time = &at
	status.LastApplied = &applied
}

// showReady says that everything is healthy; with flaps, in every other turn that something is not, and how long that stays so.
func showReady(installation *v1.AddonInstallation, flaps, since time.Duration) time.Duration {
	var wait time.Duration
	if flaps > 0 {
		wait = flaps - since%flaps
		if since/flaps%2 == 1 {
			showUnhealthy(installation, v1.ReasonUnhealthy, "0 of 1 objects are healthy; it flaps, by the script")
			return wait
		}
	}
	passed(installation, v1.ConditionHealthy)
	count(installation, 1)
	setReady(installation, metav1.ConditionTrue, v1.ReasonReady,
		string(installation.Spec.AddonRef.Name)+" "+installation.Status.Version+" is installed and healthy")
	return wait
}

func showUnhealthy(installation *v1.AddonInstallation, reason, message string) {
	count(installation, 0)
	setCondition(installation, v1.ConditionHealthy, metav1.ConditionFalse, reason, message)
	setReady(installation, metav1.ConditionFalse, reason, message)
}

// showRolledBack: what is there works, and is not what was asked for.
func showRolledBack(installation *v1.AddonInstallation, cause string) {
	const message = "the version was given up and the one before is back, by the script"
	installation.Status.Cause = cause
	passed(installation, v1.ConditionHealthy)
	count(installation, 1)
	setCondition(installation, v1.ConditionApplied, metav1.ConditionFalse, v1.ReasonRolledBack, message)
	setReady(installation, metav1.ConditionFalse, v1.ReasonRolledBack, message)
}

func count(installation *v1.AddonInstallation, healthy int32) {
	summary := "0/1"
	if healthy == 1 {
		summary = "1/1"
	}
	installation.Status.Objects = &v1.ObjectCounts{Total: 1, Healthy: healthy, Summary: summary}
}

// pipeline is the order of the conditions that a pass earns.
var pipeline = []struct{ condition, reason string }{
	{v1.ConditionCompatible, v1.ReasonCompatible}, {v1.ConditionValuesResolved, v1.ReasonValuesResolved},
	{v1.ConditionFetched, v1.ReasonFetched}, {v1.ConditionRendered, v1.ReasonRendered}, {v1.ConditionApplied, v1.ReasonApplied},
	{v1.ConditionHealthy, v1.ReasonHealthy},
}

// passed has a pass come through all conditions up to that one.
func passed(installation *v1.AddonInstallation, last string) {
	for _, step := range pipeline {
		setCondition(installation, step.condition, metav1.ConditionTrue, step.reason, "")
		if step.condition == last {
			return
		}
	}
}

func setReady(installation *v1.AddonInstallation, state metav1.ConditionStatus, reason, message string) {
	setCondition(installation, v1.ConditionReady, state, reason, message)
}

func setCondition(installation *v1.AddonInstallation, kind string, state metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&installation.Status.Conditions, metav1.Condition{
		Type: kind, Status: state, Reason: reason, Message: message, ObservedGeneration: installation.Generation,
	})
}
