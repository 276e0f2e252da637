package installation

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Move is a write of an installation that changes running objects.
type Move struct {
	// At is the time of the write, StartedAt the start of its revision.
	At, StartedAt time.Time
	Pace          Pace
}

// Stamps are the annotations of the move: its time, and whether the installation was not Ready before; nil if there
// is none yet. During a move, an installation keeps the state from before it. A move is never older than its
// revision, even if the clock was set back meanwhile: its result counts.
func (m Move) Stamps(live *v1.AddonInstallation) map[string]string {
	stamps := map[string]string{v1.AnnotationMoved: latest(m.At, m.StartedAt).UTC().Format(time.RFC3339Nano)}
	if live == nil {
		return stamps
	}
	state := StateOf(live, m.Pace, m.At)
	isSick := !state.Ready
	if state.Phase == Underway && !state.Moved.IsZero() {
		isSick = WasSick(live)
	}
	if isSick {
		stamps[v1.AnnotationSick] = "true"
	}
	return stamps
}

// KeptStamps are those of the previous move, for a write that does not change running objects.
func KeptStamps(live *v1.AddonInstallation) map[string]string {
	stamps := map[string]string{}
	for _, name := range []string{v1.AnnotationMoved, v1.AnnotationSick} {
		if value, isThere := live.Annotations[name]; isThere {
			stamps[name] = value
		}
	}
	return stamps
}
