package upgrade

import (
	"cmp"
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
	"github.com/trellis-addons/trellis/pkg/times"
)

// Decision is what is to be on a cluster, and what is told of it.
type Decision struct {
	// Hook and Workers are as they are to be. Where both are as they were seen, nothing is written.
	Hook    bool
	Workers Workers
	// Held is the status of condition UpgradeHeld, Reason and Message are its; without a reason there
	// is to be no such condition.
	Held            bool
	Reason, Message string
	// Since is the transition of the condition. It is to be written where it is not the one before: that
	// was of a clock that was ahead.
	Since time.Time
	// GaveUp says that a stage ended at its timeout, and says what it waited for.
	GaveUp string
	// Recheck is when time alone changes the decision; 0: never.
	Recheck time.Duration
}

// namedAtMost is how many gates a message names.
const namedAtMost = 5

// Decide what is to be on a cluster now.
func Decide(seen *Seen, rules Rules, before Before, now time.Time) Decision {
	before.Since = times.Past(before.Since, now)
	d := decider{seen: seen, rules: rules, before: before, now: now}
	d.Hook, d.Workers = seen.Hook, seen.Workers
	d.decide()
	if d.Since = now; d.Reason == before.Reason && !before.Since.IsZero() {
		d.Since = before.Since
	}
	return d.Decision
}

type decider struct {
	Decision
	seen   *Seen
	rules  Rules
	before Before
	now    time.Time
}

func (d *decider) decide() {
	seen := d.seen
	switch isWanted := len(seen.Gates) > 0; {
	case !d.rules.Hold:
		d.letGo()
	case !seen.Topology:
		d.letGo()
		if isWanted {
			d.say(v1.ReasonNotHoldable, "the Cluster has no topology: what upgrades it can't be told to wait")
		}
	case seen.Off:
		d.letGo()
		d.say(v1.ReasonOverridden, "annotation %s lets upgrades go", v1.AnnotationUpgradeHold)
	case seen.oldest() == "":
		if isWanted {
			d.say(v1.ReasonNotHoldable, "the control plane has no version yet that can be read")
		}
	case seen.isAt(seen.Wanted):
		d.rest(isWanted)
	case seen.hasBegun():
		d.controlPlane(isWanted)
	case seen.Hook:
		d.beforeControlPlane()
	case seen.WorkersFirst:
		d.beforeWorkers(v1.ReasonReleased, fmt.Sprintf("every add-on is right at Kubernetes %s", seen.oldest()))
	case isWanted:
		d.letBegin()
	}
}

// letGo takes off what is ours.
func (d *decider) letGo() {
	d.Hook = false
	if d.Workers == WorkersHeld {
		d.Workers = WorkersFree
	}
}

// rest is where the control plane has the version that is wanted: workers may still wait.
func (d *decider) rest(isWanted bool) {
	d.beforeWorkers(v1.ReasonNotUpgrading, "no upgrade is pending")
	if d.Reason != v1.ReasonBeforeWorkers {
		d.Hook = isWanted
	}
	if !isWanted {
		d.Reason, d.Message = "", ""
	}
}

// beforeControlPlane holds the control plane by the hook, until the gates are ready for what comes.
func (d *decider) beforeControlPlane() {
	waiting := cmp.Or(d.seen.Awaits, namesOf(d.seen.unfinished(hasBridged)))
	if waiting != "" && !d.isOver(v1.ReasonBeforeControlPlane, waiting) {
		d.hold(v1.ReasonBeforeControlPlane, "the control plane waits", waiting)
		return
	}
	d.Hook = false
	d.holdWorkers()
	if d.GaveUp == "" {
		d.say(v1.ReasonReleased, "every add-on is ready for Kubernetes %s", d.seen.Wanted)
	}
}

// letBegin is where the hook is off and the control plane has not begun yet. With it went ours on
// workers: without that, somebody else took it.
func (d *decider) letBegin() {
	switch {
	case d.before.Reason == v1.ReasonTimedOut:
		d.say(d.before.Reason, "it goes on without waiting")
	case d.before.Reason == "":
		d.say(v1.ReasonReleased, "it was pending before it could be held")
	case d.seen.Workers != WorkersFree && d.before.Reason != v1.ReasonOverridden:
		d.say(v1.ReasonReleased, "every add-on is ready for Kubernetes %s", d.seen.Wanted)
	default:
		d.say(v1.ReasonOverridden, "the hook was taken off: this upgrade does not wait")
	}
}

// controlPlane rolls: workers stay where they are.
func (d *decider) controlPlane(isWanted bool) {
	isOverridden := d.before.Reason == v1.ReasonOverridden ||
		d.before.Reason == v1.ReasonBeforeControlPlane && !d.seen.Hook && d.seen.Workers == WorkersFree
	if isOverridden {
		d.say(v1.ReasonOverridden, "the hook was taken off: this upgrade does not wait")
		return
	}
	if isWanted {
		d.holdWorkers()
	}
	if d.seen.Hook {
		d.say(v1.ReasonNotHonoured,
			"the control plane moved although the hook is on: turn on feature gate RuntimeSDK of Cluster API, 1.10 or newer; workers wait")
		return
	}
	d.say(v1.ReasonControlPlane, "the control plane goes to Kubernetes %s", d.seen.Wanted)
}

// beforeWorkers holds workers until the gates are right at what the control plane has. After is the
// reason from when nothing is held any more, with its message.
func (d *decider) beforeWorkers(after, message string) {
	waiting := namesOf(d.seen.unfinished(isRight))
	wasUnderway := isUnderway[d.before.Reason]
	switch {
	case waiting == "" || d.seen.Workers == WorkersNone:
	case d.before.Reason == v1.ReasonTimedOut && d.seen.Workers == WorkersFree:
		d.say(v1.ReasonTimedOut, "workers go on without waiting for %s", waiting)
		return
	case d.seen.Workers == WorkersHeld || wasUnderway:
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

// isOver says whether a stage's time is over, and gives up then.
func (d *decider) isOver(stage, waiting string) bool {
	if d.rules.Timeout <= 0 || d.before.Reason != stage || d.now.Before(d.before.Since.Add(d.rules.Timeout)) {
		return false
	}
	d.GaveUp = waiting
	d.say(v1.ReasonTimedOut, "after %s it goes on without waiting for %s", d.rules.Timeout, d.GaveUp)
	return true
}

func (d *decider) hold(stage, who, waiting string) {
	d.Held, d.Reason = true, stage
	d.Message = text.Message(fmt.Sprintf("%s for %s; annotate the Cluster with %s=%s to let it go on",
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

// namesOf gates, each with what it lacks; empty: there are none.
func namesOf(gates []Gate) string {
	names := make([]string, len(gates))
	for i, gate := range gates {
		if names[i] = gate.Name; gate.Problem != "" {
			names[i] = fmt.Sprintf("%s (%s)", gate.Name, gate.Problem)
		}
	}
	return text.Names(names, namedAtMost)
}
