package upgrade

import "time"

// Gate is an installation that upgrades wait for.
type Gate struct {
	// Name is that of the installation.
	Name string
	// Right says that it is Ready at its generation, for the version that the control plane has.
	Right bool
	// Bridges says that it is Ready at the version that it should have before the upgrade, or that no version fits both
	// sides.
	Bridges bool
	// Breaks says that no version fits after the upgrade.
	Breaks bool
	// Problem is why it is not right, as a text for a condition.
	Problem string
}

// Workers say whether machines are held.
type Workers string

// The states of workers, observed or desired.
const (
	// WorkersNone: the topology has none.
	WorkersNone Workers = ""
	// WorkersFree: they follow the control plane.
	WorkersFree Workers = "Free"
	// WorkersHeld: our annotation is on the first of each kind.
	WorkersHeld Workers = "Held"
)

// ClusterState is the observed state of a cluster.
type ClusterState struct {
	// Topology says that a topology decides its versions: otherwise its upgrades can't be held.
	Topology bool
	// Wanted is the version that its topology requests.
	Wanted string
	// Versions are those of the control plane's machines, oldest first; empty while unknown.
	Versions []string
	// Asked is the version that its control plane is requested to have; empty while unknown.
	Asked string
	// Awaits is the text of what the control plane waits for before the gates' target version is known; empty if it is
	// known.
	Awaits string
	// WorkersFirst says that the control plane, in a chain of upgrades, waits for workers to reach its own version.
	WorkersFirst bool
	// Hook says that the hook is on.
	Hook    bool
	Workers Workers
	// Off says that a user released upgrades of this cluster, by annotation.
	Off   bool
	Gates []Gate
}

// Rules are the settings of a seed.
type Rules struct {
	// Hold says whether upgrades may wait.
	Hold bool
	// Timeout is that of each stage; 0: none.
	Timeout time.Duration
}

// Before is the last written condition.
type Before struct {
	// Reason is that of the condition; empty if there is none.
	Reason string
	// Since is the time of its last transition.
	Since time.Time
}

// oldest is the version that counts as the cluster's.
func (s *ClusterState) oldest() string {
	if len(s.Versions) == 0 {
		return ""
	}
	return s.Versions[0]
}

// isAt says whether the whole control plane has a version, and no other is requested.
func (s *ClusterState) isAt(version string) bool {
	for _, one := range s.Versions {
		if one != version {
			return false
		}
	}
	return s.Asked == "" || s.Asked == version
}

// hasBegun says whether the control plane was requested to leave its version.
func (s *ClusterState) hasBegun() bool { return !s.isAt(s.oldest()) }

// unfinished are the gates that a stage waits for.
func (s *ClusterState) unfinished(isDone func(Gate) bool) (waiting []Gate) {
	for _, gate := range s.Gates {
		if !isDone(gate) {
			waiting = append(waiting, gate)
		}
	}
	return waiting
}

func isRight(gate Gate) bool { return gate.Right }

func hasBridged(gate Gate) bool { return gate.Bridges && !gate.Breaks }
