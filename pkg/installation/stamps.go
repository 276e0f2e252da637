package installation

import (
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Move is a write of an installation that changes what runs.
type Move struct {
	// At is when it is written, StartedAt when the revision began that it belongs to.
	At, StartedAt time.Time
	Pace          Pace
}

// Stamps are the annotations of the move: when it was, and whether the installation was not Ready
// before; nil: there is none yet. Who is in the middle of a move keeps what it was before that. A move
// is never older than its revision, also where the clock was set back meanwhile: what came of it
// counts.
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

// KeptStamps are those of the move before, for a write that changes nothing that runs.
func KeptStamps(live *v1.AddonInstallation) map[string]string {
	stamps := map[string]string{}
	for _, name := range []string{v1.AnnotationMoved, v1.AnnotationSick} {
		if value, isThere := live.Annotations[name]; isThere {
			stamps[name] = value
		}
	}
	return stamps
}
