package distributor

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// stay are the installations that have versions that are to be left, as counted last.
type stay struct {
	installations, seeds int
	// uncounted are seeds that don't answer, or did not yet.
	uncounted int
}

// having counts the installations that have one of some versions.
func (b *usageBook) having(leave catalogue.Leave) stay {
	named := map[catalogue.UsedVersion]bool{} // two spellings are one version
	for addon, versions := range leave {
		for _, version := range versions {
			named[catalogue.UsedVersion{Addon: addon, Version: catalogue.Key(version)}] = true
		}
	}
	versions := slices.Collect(maps.Keys(named))
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var found stay
	for seed := range b.seeds {
		row, counted := b.rows[seed]
		if !counted || !row.LastSeen.IsZero() {
			found.uncounted++
		}
		if count := row.Of(versions); count > 0 {
			found.installations += count
			found.seeds++
		}
	}
	return found
}

// projectLeaving tells how far clusters are with leaving what annotation leave-versions names.
func projectLeaving(object *v1.AddonCatalogue, known outcome, found stay) {
	list, generation := &object.Status.Conditions, object.Generation
	switch {
	case known.leaveProblem != "":
		conditions.False(list, generation, v1.ConditionLeaving, v1.ReasonLeaveUnreadable, known.leaveProblem)
	case len(known.leave) == 0:
		meta.RemoveStatusCondition(list, v1.ConditionLeaving)
	case found.installations+found.uncounted == 0:
		conditions.False(list, generation, v1.ConditionLeaving, v1.ReasonVersionsLeft, fmt.Sprintf(
			"no installation has %s any more; while annotation %s stands, none gets it again", known.leave, v1.AnnotationLeaveVersions))
	default:
		message := fmt.Sprintf("clusters leave %s: %d installations on %d seeds have it", known.leave, found.installations, found.seeds)
		if found.uncounted > 0 {
			message += fmt.Sprintf("; %d seeds are not counted", found.uncounted)
		}
		conditions.True(list, generation, v1.ConditionLeaving, v1.ReasonVersionsInUse, message)
	}
}

// leavingReason is the reason of condition Leaving; empty where there is none.
func leavingReason(object *v1.AddonCatalogue) string {
	if found := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionLeaving); found != nil {
		return found.Reason
	}
	return ""
}

// tellLeaving makes an event of what condition Leaving says, when that turns.
func (r *Reconciler) tellLeaving(object *v1.AddonCatalogue, before string) {
	now := leavingReason(object)
	if now == before || now == "" {
		return
	}
	kind := corev1.EventTypeNormal
	if now == v1.ReasonLeaveUnreadable {
		kind = corev1.EventTypeWarning
	}
	told := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionLeaving)
	r.recorder.Eventf(object, nil, kind, v1.EventLeft, "Leave", "%s", told.Message)
}
