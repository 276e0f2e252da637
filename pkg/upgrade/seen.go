package upgrade

import "time"

// Gate is an installation that upgrades wait for.
type Gate struct {
	// Name of the installation.
	Name string
	// Right says that it is Ready at its generation, for the version that the control plane has.
	Right bool
	// Bridges says that it is Ready at the version that it is to have before the upgrade, or that no
	// version fits both sides.
	Bridges bool
	// Breaks says that no version fits after the upgrade.
	Breaks bool
	// Problem is why it is not right; it is fit for a condition.
	Problem string
}

// Workers say whether machines are held.
type Workers string

// What may be seen of workers, and wanted of them.
const (
	// WorkersNone: the topology has none.
	WorkersNone Workers = ""
	// WorkersFree: they follow the control plane.
	WorkersFree Workers = "Free"
	// WorkersHeld: our annotation is on the first of each kind.
	WorkersHeld Workers = "Held"
)

// Seen is a cluster as it was read.
type Seen struct {
	// Topology says that its versions are those of a topology: else nothing of it can be held.
	Topology bool
	// Wanted is the version that its topology asks for.
	Wanted string
	// Versions of the control plane's machines, oldest first; empty while unknown.
	Versions []string
	// Asked is the version that its control plane was told to have; empty while unknown.
	Asked string
	// Awaits is what the control plane waits for before it is known what its gates are to be ready for, in
	// words; empty: that is known.
	Awaits string
	// WorkersFirst says that the control plane, in a chain of upgrades, waits for workers at the
	// version that it has.
	WorkersFirst bool
	// Hook says that the hook is on.
	Hook    bool
	Workers Workers
	// Off says that people let upgrades of this cluster go, by annotation.
	Off   bool
	Gates []Gate
}

// Rules are the settings of a seed.
type Rules struct {
	// Hold says whether upgrades may wait.
	Hold bool
	// Timeout of each stage; 0: none.
	Timeout time.Duration
}

// Before is the condition that was written last.
type Before struct {
	// Reason of the condition; empty: there is none.
	Reason string
	// Since is its transition.
	Since time.Time
}

// oldest is the version that the cluster counts as having.
func (s *Seen) oldest() string {
	if len(s.Versions) == 0 {
		return ""
	}
	return s.Versions[0]
}

// isAt says whether all of the control plane has a version, and is told to have no other.
func (s *Seen) isAt(version string) bool {
	for _, one := range s.Versions {
		if one != version {
			return false
		}
	}
	return s.Asked == "" || s.Asked == version
}

// hasBegun says whether the control plane was told to leave the version that it has.
func (s *Seen) hasBegun() bool { return !s.isAt(s.oldest()) }

// unfinished are the gates that a stage waits for.
func (s *Seen) unfinished(isDone func(Gate) bool) (waiting []Gate) {
	for _, gate := range s.Gates {
		if !isDone(gate) {
			waiting = append(waiting, gate)
		}
	}
	return waiting
}

func isRight(gate Gate) bool { return gate.Right }

func hasBridged(gate Gate) bool { return gate.Bridges && !gate.Breaks }
