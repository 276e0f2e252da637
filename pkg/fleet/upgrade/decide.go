package upgrade

import (
	"cmp"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/base/times"
)

// Decision has the desired annotations of a cluster, and the condition that explains them.
type Decision struct {
	// Hook and Workers are the desired states. If both are as they were seen, nothing is written.
	Hook    bool
	Workers Workers
	// Held is the status of condition UpgradeHeld, with its Reason and Message; without a reason the condition must not
	// exist.
	Held            bool
	Reason, Message string
	// Since is the transition time of the condition. If it differs from the previous time, which a clock that was ahead
	// wrote, it must be written.
	Since time.Time
	// GaveUp says that a stage ended at its timeout, and names the gates that it waited for.
	GaveUp string
	// Recheck is the delay after which time alone changes the decision; 0: never.
	Recheck time.Duration
}

// namedAtMost is how many gates a message names.
const namedAtMost = 5

// Decide decides the present hold of a cluster.
func Decide(observed *ClusterState, rules Rules, before Before, now time.Time) Decision {
	before.Since = times.Past(before.Since, now)
	d := decider{observed: observed, rules: rules, before: before, now: now}
	d.Hook, d.Workers = observed.Hook, observed.Workers
	d.decide()
	if d.Since = now; d.Reason == before.Reason && !before.Since.IsZero() {
		d.Since = before.Since
	}
	return d.Decision
}

type decider struct {
	Decision
	observed *ClusterState
	rules    Rules
	before   Before
	now      time.Time
}

func (d *decider) decide() {
	observed := d.observed
	switch isWanted := len(observed.Gates) > 0; {
	case !d.rules.Hold:
		d.release()
	case !observed.Topology:
		d.release()
		if isWanted {
			d.say(v1.ReasonNotHoldable, "the Cluster has no topology, so its upgrades can't be delayed")
		}
	case observed.Off:
		d.release()
		d.say(v1.ReasonOverridden, "annotation %s releases upgrades", v1.AnnotationUpgradeHold)
	case observed.oldest() == "":
		if isWanted {
			d.say(v1.ReasonNotHoldable, "the control plane has no valid version yet")
		}
	case observed.isAt(observed.Wanted):
		d.rest(isWanted)
	case observed.hasBegun():
		d.controlPlane(isWanted)
	case observed.Hook:
		d.beforeControlPlane()
	case observed.WorkersFirst:
		d.beforeWorkers(v1.ReasonReleased, fmt.Sprintf("every add-on is ready at Kubernetes %s", observed.oldest()))
	case isWanted:
		d.letBegin()
	}
}

// release removes our annotations.
func (d *decider) release() {
	d.Hook = false
	if d.Workers == WorkersHeld {
		d.Workers = WorkersFree
	}
}

// rest handles a control plane at the wanted version: workers may still wait.
func (d *decider) rest(isWanted bool) {
	d.beforeWorkers(v1.ReasonNotUpgrading, "no upgrade is pending")
	if d.Reason != v1.ReasonBeforeWorkers {
		d.Hook = isWanted
	}
	if !isWanted {
		d.Reason, d.Message = "", ""
	}
}

// beforeControlPlane holds the control plane by the hook, until the gates are ready for the next version.
func (d *decider) beforeControlPlane() {
	waiting := cmp.Or(d.observed.Awaits, namesOf(d.observed.unfinished(hasBridged)))
	if waiting != "" && !d.isOver(v1.ReasonBeforeControlPlane, waiting) {
		d.hold(v1.ReasonBeforeControlPlane, "the control plane waits", waiting)
		return
	}
	d.Hook = false
	d.holdWorkers()
	if d.GaveUp == "" {
		d.say(v1.ReasonReleased, "every add-on is ready for Kubernetes %s", d.observed.Wanted)
	}
}

// letBegin handles a control plane that has not begun yet, without the hook. Our own removal of the hook comes with a
// hold on workers: without that, another client removed it.
func (d *decider) letBegin() {
	switch {
	case d.before.Reason == v1.ReasonTimedOut:
		d.say(d.before.Reason, "the upgrade continues without waiting")
	case d.before.Reason == "":
		d.say(v1.ReasonReleased, "the upgrade was pending before it could be delayed")
	case d.observed.Workers != WorkersFree && d.before.Reason != v1.ReasonOverridden:
		d.say(v1.ReasonReleased, "every add-on is ready for Kubernetes %s", d.observed.Wanted)
	default:
		d.say(v1.ReasonOverridden, "the hook was removed: this upgrade does not wait")
	}
}

// controlPlane handles an upgrade of the control plane: workers stay at their version.
func (d *decider) controlPlane(isWanted bool) {
	isOverridden := d.before.Reason == v1.ReasonOverridden ||
		d.before.Reason == v1.ReasonBeforeControlPlane && !d.observed.Hook && d.observed.Workers == WorkersFree
	if isOverridden {
		d.say(v1.ReasonOverridden, "the hook was removed: this upgrade does not wait")
		return
	}
	if isWanted {
		d.holdWorkers()
	}
	if d.observed.Hook {
		d.say(v1.ReasonNotHonoured,
			"the control plane was upgraded although the hook is set: enable feature gate RuntimeSDK of Cluster API, 1.10 or newer; workers wait")
		return
	}
	d.say(v1.ReasonControlPlane, "the control plane is being upgraded to Kubernetes %s", d.observed.Wanted)
}

// beforeWorkers holds workers until the gates are right at the control plane's version. Argument after is the reason
// once nothing is held any more, with its message.
func (d *decider) beforeWorkers(after, message string) {
	waiting := namesOf(d.observed.unfinished(isRight))
	wasUnderway := isUnderway[d.before.Reason]
	switch {
	case waiting == "" || d.observed.Workers == WorkersNone:
	case d.before.Reason == v1.ReasonTimedOut && d.observed.Workers == WorkersFree:
		d.say(v1.ReasonTimedOut, "workers continue without waiting for %s", waiting)
		return
	case d.observed.Workers == WorkersHeld || wasUnderway:
		if d.isOver(v1.ReasonBeforeWorkers, waiting) {
			d.Workers = WorkersFree
			return
		}
		d.holdWorkers()
		d.hold(v1.ReasonBeforeWorkers, "workers wait", waiting)
		return
	}
	if d.Workers == WorkersHeld {
		d.Workers = WorkersFree
	}
	d.say(after, "%s", message)
}

// isUnderway has the reasons after which workers are held.
var isUnderway = map[string]bool{
	v1.ReasonReleased: true, v1.ReasonControlPlane: true, v1.ReasonNotHonoured: true, v1.ReasonBeforeWorkers: true,
}

func (d *decider) holdWorkers() {
	if d.Workers == WorkersFree {
		d.Workers = WorkersHeld
	}
}

// isOver says whether a stage has timed out, and gives up then.
func (d *decider) isOver(stage, waiting string) bool {
	if d.rules.Timeout <= 0 || d.before.Reason != stage || d.now.Before(d.before.Since.Add(d.rules.Timeout)) {
		return false
	}
	d.GaveUp = waiting
	d.say(v1.ReasonTimedOut, "after %s the upgrade continues without waiting for %s", d.rules.Timeout, d.GaveUp)
	return true
}

func (d *decider) hold(stage, who, waiting string) {
	d.Held, d.Reason = true, stage
	d.Message = text.Message(fmt.Sprintf("%s for %s; annotate the Cluster with %s=%s to release it",
		who, waiting, v1.AnnotationUpgradeHold, v1.UpgradeHoldOff))
	if d.rules.Timeout <= 0 {
		return
	}
	since := d.now
	if d.before.Reason == stage {
		since = d.before.Since
	}
	d.Recheck = max(since.Add(d.rules.Timeout).Sub(d.now), time.Second)
}

func (d *decider) say(reason, format string, arguments ...any) {
	d.Held, d.Reason, d.Message = false, reason, text.Message(fmt.Sprintf(format, arguments...))
}

// namesOf are the names of gates, each with its problem; empty if there are none.
func namesOf(gates []Gate) string {
	names := make([]string, len(gates))
	for i, gate := range gates {
		if names[i] = gate.Name; gate.Problem != "" {
			names[i] = fmt.Sprintf("%s (%s)", gate.Name, gate.Problem)
		}
	}
	return text.Names(names, namedAtMost)
}
