package fleet

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// reported has the reported parts of a set's status.
type reported struct {
	trouble conditions.Reported
	// revision is the one that began, opened are its opened groups, and complete says whether it is everywhere.
	revision string
	opened   map[string]bool
	complete bool
	// young says that seeds were behind and had time left.
	young bool
}

// news is one event.
type news struct{ kind, reason, message string }

// reportedIn are the reported parts according to a status, so that a new process repeats nothing.
func reportedIn(status *v1.AddonSetStatus) reported {
	found := reported{trouble: conditions.ReportedIn(status.Conditions), revision: status.Revision, opened: map[string]bool{}}
	for _, group := range status.Groups {
		found.opened[group.Name] = hasOpened(group.State)
	}
	state, _ := conditions.StateOf(status.Conditions)
	found.complete = state == conditions.StateReady
	return found
}

func hasOpened(state v1.GroupState) bool {
	return state != v1.GroupWaiting && state != v1.GroupAwaitingApproval
}

// open notes which groups opened, and returns the names of newly opened ones.
func (t *reported) open(groups []v1.GroupStatus) (now []string) {
	for _, group := range groups {
		if group.State == v1.GroupOpen && !t.opened[group.Name] {
			now = append(now, group.Name)
		}
		t.opened[group.Name] = t.opened[group.Name] || hasOpened(group.State)
	}
	return now
}

// update returns the events of a status. While seeds are awaited their revisions vary, so no revision is reported
// then, nor while the set is paused. That seeds are behind is a warning once one has used up its time.
func (t *reported) update(status *v1.AddonSetStatus, fleet *rollout.Fleet) []news {
	var found []news
	normal := func(reason, format string, arguments ...any) {
		found = append(found, news{corev1.EventTypeNormal, reason, fmt.Sprintf(format, arguments...)})
	}
	ready, isTrouble := t.trouble.Update(status.Conditions)
	isReady := ready != nil && ready.Status == metav1.ConditionTrue
	hasLasted := t.grow(ready, fleet)
	mayReport := len(fleet.Awaited) == 0 && (ready == nil || ready.Reason != v1.ReasonPaused)
	if mayReport {
		t.roll(status, normal)
	}
	switch {
	case isReady && (isTrouble || !t.complete && t.revision != ""):
		t.complete = true
		normal(v1.EventCompleted, "%s", rollout.CompletedMessage(t.revision, ready.Message))
	case isTrouble && t.young:
		normal(ready.Reason, "%s", ready.Message)
	case isTrouble, hasLasted:
		found = append(found, news{corev1.EventTypeWarning, ready.Reason, cmp.Or(ready.Message, ready.Reason)})
	}
	return found
}

// roll reports a revision that begins, and groups that open.
func (t *reported) roll(status *v1.AddonSetStatus, normal func(reason, format string, arguments ...any)) {
	if status.Revision != "" && status.Revision != t.revision {
		*t = reported{trouble: t.trouble, revision: status.Revision, opened: map[string]bool{}, young: t.young}
		normal(v1.EventRolloutStarted, "revision %s begins to roll out", t.revision)
	}
	if status.Revision != t.revision {
		return
	}
	for _, group := range t.open(status.Groups) {
		normal(v1.EventGroupOpened, "clusters of group %q move to revision %s", group, t.revision)
	}
}

// grow notes whether seeds are behind and have time left, and says whether their time ended while they are still behind.
func (t *reported) grow(ready *metav1.Condition, fleet *rollout.Fleet) (hasLasted bool) {
	isBehind, wasYoung := ready != nil && ready.Reason == v1.ReasonSeedsBehind, t.young
	t.young = isBehind && len(fleet.Awaited) > 0 && len(fleet.LeftOut) == 0
	return isBehind && wasYoung && !t.young
}

// announce reports events, and trouble in the log too.
func (d *Director) announce(ctx context.Context, object *v1.AddonSet, all []news) {
	for _, one := range all {
		ctrl.LoggerFrom(ctx).Info("wrote an event about a set", "reason", one.reason, "message", one.message)
		d.recorder.Eventf(object, nil, one.kind, one.reason, "RollOut", "%s", text.Message(one.message))
	}
}
