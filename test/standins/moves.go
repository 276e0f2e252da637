package standins

import (
	"fmt"
	"maps"
	"net/http"
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
// the design has it, or rolled back. What a Player says is of a write where annotation digest is the write's; the soak counts from the
// stamp of the last write at the earliest, also where nobody says anything new since it repeats what stands already. It may err in one
// direction only: to take a cluster for done too early.
type Moves struct {
	waves Waves

	mutex sync.Mutex
	// items are how many installations of a cluster are written in this roll.
	items int
	all   map[string]*move
	// reported of each installation, "<cluster>/<installation>", by a Player.
	reported map[string]reported
	peaks    []int
	// halted: nothing may begin to move; unordered: groups don't count.
	halted, unordered bool
	complaints        []string
}

// move is one cluster of a roll.
type move struct {
	name  string
	group int
	// written last, by installation.
	written map[string]Write
	failed  bool
}

// reported is what a Player said of an installation last.
type reported struct {
	digest string
	// ready since; gone: it is no more. Both were sent at a time before which nobody knows.
	ready, gone bool
	since, sent time.Time
}

// NewMoves expects nothing yet.
func NewMoves(waves Waves) *Moves {
	return &Moves{waves: waves, all: map[string]*move{}, reported: map[string]reported{}, peaks: make([]int, len(waves.Limits))}
}

// Begin begins a roll in which all those clusters are behind, in each of which so many installations are written. What is written in
// other clusters takes no place.
func (m *Moves) Begin(items int, clusters ...string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.items, m.all, m.peaks = items, map[string]*move{}, make([]int, len(m.waves.Limits))
	m.halted, m.unordered = false, false
	for _, name := range clusters {
		m.all[name] = &move{name: name, group: m.waves.Group(name), written: map[string]Write{}}
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
	if len(moved.written) == 0 || !moved.failed && m.isFree(moved, write.At) {
		m.begins(write, moved)
	}
	before, isKnown := moved.written[write.Installation]
	isReported := m.reported[write.Cluster+"/"+write.Installation].digest == write.Digest
	if isKnown && !isReported && before.Digest == write.Digest && before.Moved.Before(write.Moved) {
		write.Moved = before.Moved // written by two leaders at once: the first goes by its own time
	}
	moved.written[write.Installation] = write
}

// begins judges a cluster that takes a place.
func (m *Moves) begins(write Write, moved *move) {
	if m.halted {
		m.complain("%s %s: a cluster begins to move after the halt", write.Method, write.Path)
	}
	moving := 1
	for name, other := range m.all {
		switch {
		case other == moved || m.isFree(other, write.At):
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
	var all []string
	for _, other := range m.all {
		if other.group != group || len(other.written) == 0 || m.isFree(other, at) {
			continue
		}
		lacks := []string{}
		for _, item := range slices.Sorted(maps.Keys(other.written)) {
			if free, ready := m.free(other, item); !ready {
				lacks = append(lacks, item+" is not Ready")
			} else if left := free.Sub(at); left > 0 {
				lacks = append(lacks, fmt.Sprintf("%s for %s still: written %s, told %+v", item, left,
					other.written[item].Moved.Format(time.RFC3339Nano), m.reported[other.name+"/"+item]))
			}
		}
		all = append(all, fmt.Sprintf("%s (%d of %d written, %q)", other.name, len(other.written), m.items, lacks))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func (m *Moves) complain(format string, arguments ...any) {
	if len(m.complaints) < maxComplaints {
		m.complaints = append(m.complaints, fmt.Sprintf(format, arguments...))
	}
}

// isFree says whether a cluster that moved holds no place any more.
func (m *Moves) isFree(of *move, at time.Time) bool {
	if of.failed {
		return true
	}
	if len(of.written) < m.items {
		return false
	}
	for item := range of.written {
		if free, ready := m.free(of, item); !ready || at.Before(free) {
			return false
		}
	}
	return true
}

// free is from when on what was written last holds the place no longer; false: nothing says so yet.
func (m *Moves) free(of *move, item string) (time.Time, bool) {
	said, write := m.reported[of.name+"/"+item], of.written[item]
	if write.Method == http.MethodDelete {
		return said.sent, said.gone
	}
	return later(said.sent, later(said.since, write.Moved).Add(m.waves.Soak)), said.ready && said.digest == write.Digest
}

// Saved implements Observer.
func (m *Moves) Saved(installation *v1.AddonInstallation, sent time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	name, digest := ClusterOf(installation.Namespace), installation.Annotations[v1.AnnotationDigest]
	ready := meta.FindStatusCondition(installation.Status.Conditions, v1.ConditionReady)
	said := reported{digest: digest, sent: sent, since: ready.LastTransitionTime.Truncate(time.Second)} // as the API server keeps it
	if applied := installation.Status.LastApplied; applied != nil && applied.Time != nil {
		said.since = later(said.since, applied.Time.Time)
	}
	said.ready = ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == installation.Generation
	m.reported[name+"/"+installation.Name] = said
	moved := m.all[name]
	if moved == nil || ready.Reason != v1.ReasonRolledBack {
		return
	}
	if write, written := moved.written[installation.Name]; written && write.Digest == digest {
		moved.failed = true
		m.halted = m.halted || m.waves.Strict && m.waves.Limits[moved.group] == 1
	}
}

// Gone implements Observer.
func (m *Moves) Gone(installation *v1.AddonInstallation, sent time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.reported[ClusterOf(installation.Namespace)+"/"+installation.Name] = reported{gone: true, sent: sent}
}

func later(one, other time.Time) time.Time {
	if one.After(other) {
		return one
	}
	return other
}
