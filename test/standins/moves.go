package standins

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// maxComplaints are kept; one is enough, and a thousand of the same help nobody.
const maxComplaints = 10

// Waves are what a roll-out is to keep to. Groups are numbered from 0.
type Waves struct {
	// Group of a cluster.
	Group func(name string) int
	// Limits are how many clusters of each group may move at a time.
	Limits []int
	// Soak is how long a cluster keeps its place once everything is Ready.
	Soak time.Duration
	// Strict: no cluster may fail. In a group with one place nothing begins to move after the first that does; where there are
	// more, who has failed may be known after another has begun.
	Strict bool
}

// Moves follows which clusters move, by the writes that come by a gate and by what a Player answers to them, without a look at what
// the controller thinks. A cluster has a place from its first write until all that was written there is Ready for the soak, counted as
// the design has it, or rolled back. It may err in one direction only: to take a cluster for done too early.
type Moves struct {
	waves Waves

	mutex sync.Mutex
	// items are how many installations of a cluster are written in this roll.
	items int
	all   map[string]*move
	// seen is annotation moved of each installation, as it was seen last.
	seen  map[string]string
	peaks []int
	// halted: nothing may begin to move; unordered: groups don't count.
	halted, unordered bool
	complaints        []string
}

// move is one cluster of a roll.
type move struct {
	group int
	// written installations, with what annotation moved was before: until it is another one, what is Ready is the one before.
	written map[string]string
	// free is from when on an installation holds the place no longer.
	free   map[string]time.Time
	failed bool
}

// NewMoves expects nothing yet.
func NewMoves(waves Waves) *Moves {
	return &Moves{waves: waves, all: map[string]*move{}, seen: map[string]string{}, peaks: make([]int, len(waves.Limits))}
}

// Begin begins a roll in which all those clusters are behind, in each of which so many installations are written. What is written in
// other clusters takes no place.
func (m *Moves) Begin(items int, clusters ...string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.items, m.all, m.peaks = items, map[string]*move{}, make([]int, len(m.waves.Limits))
	m.halted, m.unordered = false, false
	for _, name := range clusters {
		m.all[name] = &move{group: m.waves.Group(name), written: map[string]string{}, free: map[string]time.Time{}}
	}
}

// Halt says that from now on nothing may begin to move, until Begin.
func (m *Moves) Halt() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.halted = true
}

// Unordered says that clusters keep to the places of their groups only, until Begin.
func (m *Moves) Unordered() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.unordered = true
}

// Away says that a cluster is not waited for.
func (m *Moves) Away(name string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.all[name].failed = true
}

// Peaks are how many clusters of each group moved at once, at most, since Begin.
func (m *Moves) Peaks() []int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]int{}, m.peaks...)
}

// Complaints say where the waves were not kept to, the first few.
func (m *Moves) Complaints() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]string{}, m.complaints...)
}

func (m *Moves) wrote(write Write) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	moved := m.all[write.Cluster]
	if moved == nil {
		return
	}
	isFree := moved.isFree(m.items, write.At)
	if _, again := moved.written[write.Installation]; again && !isFree {
		return // what was asked for may stand since an answer that was lost: then nobody says anything new of it
	}
	if len(moved.written) == 0 || !moved.failed && isFree {
		m.begins(write, moved)
	}
	moved.written[write.Installation] = m.seen[write.Cluster+"/"+write.Installation]
	delete(moved.free, write.Installation)
}

// begins judges a cluster that takes a place.
func (m *Moves) begins(write Write, moved *move) {
	if m.halted {
		m.complain("%s %s: a cluster begins to move after the halt", write.Method, write.Path)
	}
	moving := 1
	for name, other := range m.all {
		switch {
		case other == moved || other.isFree(m.items, write.At):
		case other.group < moved.group && !m.unordered:
			m.complain("%s %s: cluster %s of group %d is not done", write.Method, write.Path, name, other.group)
		case other.group == moved.group && len(other.written) > 0:
			moving++
		}
	}
	m.peaks[moved.group] = max(m.peaks[moved.group], moving)
	if limit := m.waves.Limits[moved.group]; moving > limit {
		m.complain("%s %s: %d clusters of group %d move at once, %d may: %s", write.Method, write.Path, moving, moved.group, limit,
			m.holding(moved.group, write.At))
	}
}

// holding tells which clusters of a group have a place, what of them isn't Ready, and for how long the others have it still.
func (m *Moves) holding(group int, at time.Time) string {
	var told []string
	for name, other := range m.all {
		if other.group != group || len(other.written) == 0 || other.isFree(m.items, at) {
			continue
		}
		var left time.Duration
		var lacks []string
		for _, item := range slices.Sorted(maps.Keys(other.written)) {
			if free, ready := other.free[item]; ready {
				left = max(left, free.Sub(at))
			} else {
				lacks = append(lacks, item)
			}
		}
		told = append(told, fmt.Sprintf("%s (%d of %d written, not Ready %q, %s left)", name, len(other.written), m.items, lacks, left))
	}
	slices.Sort(told)
	return strings.Join(told, ", ")
}

func (m *Moves) complain(format string, arguments ...any) {
	if len(m.complaints) < maxComplaints {
		m.complaints = append(m.complaints, fmt.Sprintf(format, arguments...))
	}
}

// isFree says whether a cluster that moved holds no place any more.
func (m *move) isFree(items int, at time.Time) bool {
	if m.failed {
		return true
	}
	if len(m.written) < items {
		return false
	}
	for name := range m.written {
		if free, ready := m.free[name]; !ready || at.Before(free) {
			return false
		}
	}
	return true
}

// Saved implements Observer.
func (m *Moves) Saved(installation *v1.AddonInstallation, sent time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	name, said := ClusterOf(installation.Namespace), installation.Annotations[v1.AnnotationMoved]
	m.seen[name+"/"+installation.Name] = said
	moved := m.all[name]
	if moved == nil {
		return
	}
	if before, written := moved.written[installation.Name]; !written || before == said {
		return
	}
	ready := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionReady)
	switch {
	case ready.Reason == v1.ReasonRolledBack:
		moved.failed = true
		m.halted = m.halted || m.waves.Strict && m.waves.Limits[moved.group] == 1
	case ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == installation.Generation:
		moved.free[installation.Name] = later(sent, soaked(installation, ready, m.waves.Soak))
	default:
		delete(moved.free, installation.Name)
	}
}

// Gone implements Observer.
func (m *Moves) Gone(installation *v1.AddonInstallation, sent time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	name := ClusterOf(installation.Namespace)
	delete(m.seen, name+"/"+installation.Name)
	if moved := m.all[name]; moved != nil {
		moved.free[installation.Name] = sent
	}
}

// soaked is when the soak is over: it counts from the latest of what was written, applied and Ready.
func soaked(installation *v1.AddonInstallation, ready *metav1.Condition, soak time.Duration) time.Time {
	since := ready.LastTransitionTime.Truncate(time.Second) // as the API server keeps it
	if applied := installation.Status.LastApplied; applied != nil && applied.Time != nil {
		since = later(since, applied.Time.Time)
	}
	if at, err := time.Parse(time.RFC3339Nano, installation.Annotations[v1.AnnotationMoved]); err == nil {
		since = later(since, at)
	}
	return since.Add(soak)
}

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}
