package rollout_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/rollout"
)

// member is the true state of one cluster. All of a seed's state is in these, the revision and when it started.
type member struct {
	name, seed               string
	ring                     int
	created                  int
	selected, paused, dead   bool
	applied, moved, ready    int // revision, when it was written, since when it is Ready (-1: it is not)
	sick, rolledBack, leaves bool
	// stalls: its users keep it from finishing, for any write.
	stalls bool
	// refuses: the API server refuses writes there, until then. wants: its target changes at that time, in the same
	// revision.
	refuses, wants int
	lacks          bool
	// late is when it got the new target after its time was over.
	late int
	refusal
}

// refusal is the memory of a seed's controller about a member that it can't write: it was granted a move, and was
// first and last refused (0: never).
type refusal struct {
	granted     bool
	first, last int
}

// seed is a seed with its controller.
type seed struct {
	name     string
	revision int
	started  int
	edition  int // of spec.rollout
	cut      bool
	gate     string
	tally    *rollout.Tally
	reported map[string]rollout.ClusterStatus
	decision rollout.Decision
}

// platform has seeds, clusters and a master, simulated step by step.
type platform struct {
	t        testing.TB
	id       int64
	chance   *rand.Rand
	now      int
	members  map[string]*member
	seeds    []*seed
	master   bool // it exists, but may be down
	alive    bool
	operator bool // a user approves
	revision int
	edition  int
	spec     *v1.Rollout
	strategy rollout.Strategy
	rows     map[string]rollout.Row
	fleet    rollout.Fleet
	approve  string
	outcome  func(m *member, revision int) string // ok, never or rollback
	made     int
	granted  []string
	failed   bool
	// refused counts refused writes, afterwards the writes of sick clusters in their turn.
	refused, afterwards int
}

func (p *platform) errorf(format string, args ...any) {
	p.failed = true
	p.t.Errorf("fleet %d at %d: %s", p.id, p.now, fmt.Sprintf(format, args...))
}

func (p *platform) time(at int) time.Time { return time.Unix(int64(at)*60, 0) }

// newPlatform creates a platform without clusters.
func newPlatform(t testing.TB, id int64, seeds int, spec *v1.Rollout) *platform {
	p := &platform{
		t: t, id: id, chance: rand.New(rand.NewSource(id)), members: map[string]*member{}, rows: map[string]rollout.Row{},
		master: true, alive: true, now: 100, outcome: func(*member, int) string { return "ok" },
	}
	for i := range seeds {
		p.seeds = append(p.seeds, &seed{name: fmt.Sprintf("seed-%d", i)})
	}
	p.use(spec)
	return p
}

// use edits spec.rollout.
func (p *platform) use(spec *v1.Rollout) {
	strategy, err := rollout.NewStrategy(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.spec, p.strategy = spec, strategy
	p.edition++
}

func (p *platform) add(seed, ring int) *member {
	p.made++
	m := &member{
		name: fmt.Sprintf("cluster-%d", p.made), seed: p.seeds[seed].name, ring: ring, created: p.now, selected: true, ready: -1,
	}
	p.members[m.name] = m
	return m
}

func (p *platform) names() []string {
	names := make([]string, 0, len(p.members))
	for name := range p.members {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (p *platform) groupOf(m *member) int {
	return p.strategy.GroupOf(labels.Set{"ring": fmt.Sprint(m.ring)})
}

func minutes(duration time.Duration) int { return int(duration / time.Minute) }

// statusOf is the table of "Waves" for one cluster: none if the set has no installation there and needs none. A
// cluster that can't be written keeps its place for a while, and is sick then.
func (p *platform) statusOf(s *seed, m *member) (rollout.ClusterStatus, bool) {
	status, has := p.found(s, m)
	isDue := status.State == v1.ClusterBehind || status.State == v1.ClusterNew && p.isAtOnce(s, m)
	if !isDue && !status.Again && status.State != v1.ClusterAway {
		m.refusal = refusal{}
	}
	deadline := minutes(p.strategy.Groups[p.groupOf(m)].ProgressDeadline)
	if isDue && m.first > 0 && p.now-m.first >= deadline {
		status.State, status.Again = v1.ClusterSick, true
	}
	if status.State == v1.ClusterSick && m.first > 0 && p.now-m.last < min(deadline, 5) {
		status.Again = false
	}
	m.granted = m.granted && status.State == v1.ClusterBehind
	if m.granted {
		status.State = v1.ClusterMoving
	}
	return status, has
}

// isAtOnce reports whether a new cluster has to be written.
func (p *platform) isAtOnce(s *seed, m *member) bool { return m.applied != s.revision && !m.dead }

// found is the standing of a cluster by its objects.
func (p *platform) found(s *seed, m *member) (rollout.ClusterStatus, bool) {
	group := p.groupOf(m)
	pace := p.strategy.Groups[group]
	status := rollout.ClusterStatus{Group: group}
	overdue := p.now-m.moved >= minutes(pace.ProgressDeadline)
	soaked := m.ready >= 0 && p.now-max(m.ready, m.moved) >= minutes(pace.Soak)
	// A stalled cluster is past no deadline, but under way only for a limited time.
	isOver := p.now-m.moved >= 2*minutes(pace.ProgressDeadline)+minutes(pace.Soak)
	inTime := !overdue || m.stalls && m.ready < 0 && !isOver
	isThere := m.selected && m.applied == s.revision
	switch {
	case !m.selected && m.applied == 0:
		return status, false
	case m.selected && m.created > s.started:
		status.Group, status.State = rollout.NoGroup, v1.ClusterNew
	case isThere && !m.lacks && (soaked || m.moved < s.started):
		status.State = v1.ClusterCurrent
	case (isThere || m.leaves) && m.stalls && m.ready < 0 && !m.rolledBack && isOver && m.moved >= s.started:
		status.State, status.Again = v1.ClusterSick, isThere && m.lacks && !m.dead && !m.paused
		status.Holds = m.late > 0 && p.now-m.late <= minutes(pace.Soak)+5
	case (isThere || m.leaves) && (m.rolledBack || !inTime && m.ready < 0) && m.moved >= s.started:
		status.State = v1.ClusterFailed
		switch {
		case !m.rolledBack && (m.dead || m.paused):
			status.State, status.Lost = v1.ClusterAway, !m.paused
		case m.sick:
			status.State = v1.ClusterSick
		}
	case isThere && !m.lacks, m.leaves && inTime:
		status.State = v1.ClusterMoving
	case m.applied != 0 && m.moved > 0 && !soaked && !m.rolledBack && inTime && !m.leaves:
		status.State, status.Again = v1.ClusterMoving, !m.dead && !m.paused
	case m.dead || m.paused:
		status.State = v1.ClusterAway
	default:
		status.State, status.Sick = v1.ClusterBehind, m.applied != 0 && m.ready < 0
	}
	return status, true
}

// look is an event of a cluster at its seed's controller.
func (p *platform) look(s *seed, name string) {
	m := p.members[name]
	if m == nil {
		s.tally.Drop(name)
		delete(s.reported, name)
		return
	}
	status, has := p.statusOf(s, m)
	if !has {
		s.tally.Drop(name)
		delete(s.reported, name)
		return
	}
	s.tally.Put(name, status)
	s.reported[name] = status
	switch {
	case status.Group == rollout.NoGroup && p.isAtOnce(s, m) && (status.State == v1.ClusterNew || status.Again):
		p.carryOut(s, m, false)
	case m.granted && p.now > m.last: // retried, in its own place
		p.carryOut(s, m, status.Sick)
	}
}

// carryOut writes to a cluster, unless it refuses.
func (p *platform) carryOut(s *seed, m *member, isSick bool) {
	if m.refuses > p.now {
		if m.first == 0 {
			m.first = p.now
		}
		m.last = p.now
		p.refused++
		return
	}
	m.refusal = refusal{}
	m.sick, m.rolledBack, m.moved, m.ready, m.lacks, m.late = isSick, false, p.now, -1, false, 0
	if m.selected {
		m.applied = s.revision
	} else {
		m.leaves = true
	}
}

// restart starts a seed's controller, which counts every cluster before anything moves.
func (p *platform) restart(s *seed) {
	s.tally, s.reported = rollout.NewTally("monitoring"), map[string]rollout.ClusterStatus{}
	for _, m := range p.members {
		if m.seed == s.name {
			m.refusal = refusal{}
		}
	}
	p.recount(s)
}

func (p *platform) recount(s *seed) {
	for name := range s.reported {
		if p.members[name] == nil {
			p.look(s, name)
		}
	}
	for _, name := range p.names() {
		if p.members[name].seed == s.name {
			p.look(s, name)
		}
	}
}

// sync copies the set to a seed: a new revision starts, a new rollout causes a recount.
func (p *platform) sync(s *seed) {
	if s.cut && s.tally != nil || s.revision == p.revision && s.edition == p.edition {
		return
	}
	if s.revision != p.revision {
		s.revision, s.started = p.revision, p.now
		for _, m := range p.members {
			if m.seed == s.name { // grants and refusals of another revision are void
				m.refusal, m.lacks, m.late = refusal{}, false, 0
			}
		}
	}
	s.edition = p.edition
	if s.tally == nil {
		p.restart(s)
		return
	}
	p.recount(s)
}

// decide is a reconciliation of a seed's queue by set.
func (p *platform) decide(s *seed) {
	if s.edition != p.edition {
		return // the strategy differs from the one that the simulation's table uses
	}
	gate := rollout.ByRule
	if p.master {
		var err error
		if gate, err = rollout.ReadGate(s.gate, fmt.Sprintf("r%d", s.revision)); err != nil {
			p.errorf("%v", err)
		}
	}
	s.decision = rollout.Decide(p.strategy, s.tally, gate)
	p.checkCounts(s)
	if s.decision.Reason == v1.ReasonHalted {
		p.revoke(s)
	}
	for _, name := range s.decision.Move {
		p.checkMove(s, name, gate)
		p.write(s, name)
	}
}

// revoke revokes the places of clusters to which nothing was written yet.
func (p *platform) revoke(s *seed) {
	for _, name := range p.names() {
		if m := p.members[name]; m.seed == s.name && m.granted {
			m.granted = false
			p.look(s, name)
		}
	}
}

// write is a granted move.
func (p *platform) write(s *seed, name string) {
	reported, m := s.reported[name], p.members[name]
	isLate := reported.State == v1.ClusterSick
	wasSick := reported.Sick
	if isLate {
		reported.Again, reported.Holds = false, true
	} else {
		reported.State, reported.Again = v1.ClusterMoving, false
	}
	s.reported[name] = reported
	s.tally.Put(name, reported)
	switch refused := p.refused; {
	case m == nil: // deleted, and not reported yet
	case isLate && m.first == 0 && m.refuses <= p.now: // in addition to a move that takes too long there
		m.lacks, m.late = false, p.now
		p.afterwards++
	default:
		m.granted = !isLate
		if p.carryOut(s, m, wasSick); p.refused > refused && isLate { // the place is free at once
			p.look(s, name)
		} else if isLate {
			p.afterwards++
		}
		if p.refused > refused {
			return
		}
	}
	p.granted = append(p.granted, name)
}

// limit computes places and failures in another way than the product.
func limit(from, or *intstr.IntOrString, fallback string, of int, up bool) int {
	text := fallback
	if or != nil {
		text = or.String()
	}
	if from != nil {
		text = from.String()
	}
	number, most := 0, 0
	if _, err := fmt.Sscanf(text, "%d", &number); err != nil {
		panic(err)
	}
	if !strings.HasSuffix(text, "%") {
		return number
	}
	for most*100 < of*number {
		most++
	}
	if !up && most*100 > of*number {
		most--
	}
	if up {
		return max(most, 1)
	}
	return most
}

func (p *platform) places(group, of int) int {
	if p.spec == nil {
		return of
	}
	pace := v1.Pace{}
	if group < len(p.spec.Groups) {
		pace = p.spec.Groups[group].Pace
	}
	return limit(pace.MaxConcurrency, p.spec.MaxConcurrency, "10%", of, true)
}

func (p *platform) failures(group, of int) int {
	if p.spec == nil {
		return of
	}
	pace := v1.Pace{}
	if group < len(p.spec.Groups) {
		pace = p.spec.Groups[group].Pace
	}
	return limit(pace.MaxFailures, p.spec.MaxFailures, "0", of, false)
}

// reports counts the clusters of a group, as the controllers of some seeds know them.
func reports(group int, seeds ...*seed) (states map[v1.ClusterState]int, all int) {
	states = map[v1.ClusterState]int{}
	for _, s := range seeds {
		for _, reported := range s.reported {
			if reported.Group == group {
				states[reported.State]++
				all++
			}
		}
	}
	return states, all
}

// holding counts the sick clusters of a group that take a place, as a seed's controller knows them.
func holding(group int, s *seed) int {
	found := 0
	for _, reported := range s.reported {
		if reported.Group == group && reported.State == v1.ClusterSick && reported.Holds {
			found++
		}
	}
	return found
}

// movingAgain counts the clusters of a group that move and have a new target by now.
func movingAgain(group int, s *seed) int {
	found := 0
	for _, reported := range s.reported {
		if reported.Group == group && reported.State == v1.ClusterMoving && reported.Again {
			found++
		}
	}
	return found
}

func (p *platform) checkCounts(s *seed) {
	counts := p.groupCounts(s)
	for i := range p.strategy.Groups {
		states, all := reports(i, s)
		want := v1.ClusterCounts{
			Selected: int32(all), Current: int32(states[v1.ClusterCurrent]), Moving: int32(states[v1.ClusterMoving]),
			Behind: int32(states[v1.ClusterBehind]), Failed: int32(states[v1.ClusterFailed]), Sick: int32(states[v1.ClusterSick]),
			Away: int32(states[v1.ClusterAway]),
		}
		if counts[i] != want {
			p.errorf("%s counts %+v in group %d, there are %+v", s.name, counts[i], i, want)
		}
	}
}

func (p *platform) groupCounts(s *seed) []v1.ClusterCounts { return s.tally.GroupCounts(p.strategy) }

// checkMove checks the guarantees for a move, before it is written.
func (p *platform) checkMove(s *seed, name string, gate rollout.Allowance) {
	reported, known := s.reported[name]
	again, late := reported.State == v1.ClusterMoving && reported.Again, reported.State == v1.ClusterSick && reported.Again
	if !known || reported.Group == rollout.NoGroup || reported.State != v1.ClusterBehind && !again && !late || reported.Held {
		p.errorf("%s moves, which is %+v", name, reported)
		return
	}
	for i := range p.strategy.Groups {
		states, all := reports(i, s)
		if states[v1.ClusterFailed] > p.failures(i, all) {
			p.errorf("%s moves after the halt: %d of %d failed in group %d", name, states[v1.ClusterFailed], all, i)
		}
		if i < reported.Group && states[v1.ClusterBehind]+states[v1.ClusterMoving] > 0 {
			p.errorf("%s of group %d moves while group %d has %v", name, reported.Group, i, states)
		}
		taken := states[v1.ClusterMoving] + holding(i, s)
		if again { // in its own place, in addition to those that are written by now
			taken -= movingAgain(i, s)
		}
		if i == reported.Group && taken >= p.places(i, all) {
			p.errorf("%s moves above %d places in group %d of %d", name, p.places(i, all), i, all)
		}
		if i == reported.Group && late && states[v1.ClusterBehind] > 0 {
			p.errorf("%s, which is sick, moves before %d that are not, in group %d", name, states[v1.ClusterBehind], i)
		}
		if i <= reported.Group && gate == rollout.ByRule && p.strategy.Groups[i].Start == v1.StartApproved {
			p.errorf("%s moves without the approval of group %d", name, i)
		}
	}
	first := gate == rollout.FirstOnly && reported.Group == 0 && p.strategy.Groups[0].Start == v1.StartAutomatic
	if gate != rollout.ByRule && !first && reported.Group >= int(gate) {
		p.errorf("%s of group %d moves with gate %d", name, reported.Group, gate)
	}
}

// report is a seed's status on its way to the master.
func (p *platform) report(s *seed) {
	row := p.rows[s.name]
	if row.Seed == "" {
		row = rollout.Row{Seed: s.name, Since: p.time(p.now), State: rollout.RowLagging}
	}
	current := s.revision == p.revision && s.edition == p.edition
	switch {
	case s.cut && (row.State == rollout.RowLagging || row.Revision != fmt.Sprintf("r%d", p.revision) || len(row.Groups) != len(p.strategy.Groups)):
		row.State = rollout.RowLagging
	case s.cut:
		row.State = rollout.RowUnreached
	case !current:
		row.State = rollout.RowLagging
	default:
		row.State, row.Since, row.Revision = rollout.RowSynced, p.time(p.now), fmt.Sprintf("r%d", s.revision)
		row.Counts, row.Reason = s.tally.Counts(), s.decision.Reason
		row.Groups = nil
		if len(s.decision.Groups) == len(p.strategy.Groups) {
			row.Groups = s.tally.GroupStatuses(p.strategy, s.decision)
		}
	}
	p.rows[s.name] = row
}

// evaluate is a reconciliation of the master: it computes gates from rows.
func (p *platform) evaluate(lost func() bool) {
	if !p.alive || !p.master {
		return
	}
	var rows []rollout.Row
	for _, s := range p.seeds {
		if row := p.rows[s.name]; row.Seed != "" {
			rows = append(rows, row)
		} else {
			p.report(s)
			rows = append(rows, p.rows[s.name])
		}
	}
	fleet := rollout.SelectRows(p.strategy, rows, p.time(p.now))
	revision := fleet.Revision()
	approved, err := p.strategy.ReadApproval(p.approve, revision)
	if err != nil {
		approved = rollout.NoGroup // edited meanwhile: the group was removed
	}
	p.fleet = rollout.Gate(p.strategy, fleet, approved)
	p.checkFleet(rows)
	for _, s := range p.seeds {
		if slices.Contains(p.fleet.Gated, s.name) && !s.cut && !lost() {
			s.gate = rollout.GateValue(p.rows[s.name].Revision, p.fleet.Gate)
		}
	}
	if reason := p.fleet.Reason; p.operator && (reason == v1.ReasonAwaitingApproval || reason == v1.ReasonNoEvidence) {
		next := min(max(p.fleet.Gate, 0), len(p.strategy.Groups)-1)
		p.approve = revision + "/" + p.strategy.Groups[next].Name
	}
}

// checkFleet checks a gate against the rows that it was computed from.
func (p *platform) checkFleet(rows []rollout.Row) {
	sums := make([]v1.ClusterCounts, len(p.strategy.Groups))
	for _, row := range rows {
		if slices.Contains(p.fleet.LeftOut, row.Seed) {
			continue
		}
		if row.State == rollout.RowLagging && p.fleet.Gate > 1 {
			p.errorf("gate %d while %s lags", p.fleet.Gate, row.Seed)
		}
		for i := range row.Groups {
			if row.State != rollout.RowLagging && len(row.Groups) == len(sums) {
				counts := row.Groups[i].Counts
				sums[i].Selected += counts.Selected
				sums[i].Failed += counts.Failed
				sums[i].Behind += counts.Behind
				sums[i].Moving += counts.Moving
			}
		}
	}
	for i, sum := range sums {
		if int(sum.Failed) > p.failures(i, int(sum.Selected)) && p.fleet.Gate > 0 {
			p.errorf("gate %d although %d failed in group %d", p.fleet.Gate, sum.Failed, i)
		}
		if i+1 < p.fleet.Gate && sum.Behind+sum.Moving > 0 {
			p.errorf("gate %d although group %d has %d behind and %d moving", p.fleet.Gate, i, sum.Behind, sum.Moving)
		}
	}
}

// live advances the time in the clusters.
func (p *platform) live(by int) {
	p.now += by
	for _, name := range p.names() {
		m := p.members[name]
		if m.wants > 0 && p.now >= m.wants && m.applied != 0 {
			m.wants, m.lacks = 0, true
		}
		switch {
		case m.dead || m.moved == 0 || p.now-m.moved < 1, m.stalls:
		case m.leaves:
			if p.outcome(m, 0) == "ok" {
				m.applied, m.leaves, m.moved, m.ready = 0, false, 0, -1
			}
		case m.ready < 0 && p.outcome(m, m.applied) == "ok":
			m.ready = p.now
		case p.outcome(m, m.applied) == "rollback":
			m.rolledBack = true
		}
	}
}

// settle continues without randomness until nothing changes any longer.
func (p *platform) settle() {
	quiet, before, by := 0, "", 2
	if p.spec == nil {
		by = 5 // the defaults are 30 minutes and 5
	}
	for range 3000 {
		p.live(by)
		p.round()
		after := fmt.Sprint(p.fleet.Reason, p.fleet.Counts, p.fleet.Gate, p.approve, len(p.granted))
		for _, s := range p.seeds {
			after += fmt.Sprint(s.decision.Reason, s.tally.Counts())
		}
		if quiet++; after != before {
			quiet, before = 0, after
		}
		if quiet > 15 { // longer than any move may take
			return
		}
	}
	p.errorf("it never ends: %s", before)
}

// round delivers all events once.
func (p *platform) round() {
	for _, s := range p.seeds {
		p.sync(s)
		for _, name := range p.names() {
			if p.members[name].seed == s.name {
				p.look(s, name)
			}
		}
		for name := range s.reported {
			if p.members[name] == nil {
				p.look(s, name)
			}
		}
		p.decide(s)
		p.report(s)
	}
	p.evaluate(func() bool { return false })
}

// reason is the reason of the fleet.
func (p *platform) reason() string {
	if !p.master || !p.alive {
		return p.seeds[0].decision.Reason
	}
	return p.fleet.Reason
}

// TestPromisesHoldForEveryFleet: The test covers the table of "Waves" and the gates of several seeds, for 10,000
// platforms in which everything changes at any time: clusters are relabelled, created and deleted, fail, recover,
// flap, are paused, refuse writes, and get a new target in the middle of a revision or after their time; sets are
// edited, controllers restarted, seeds cut off, masters stopped; events are reported late and in any order. The test
// fails when more move than may, a later group moves before its turn, something moves after a halt or past a gate,
// the counts are not those of the clusters, or a rollout ends without a reason.
func TestPromisesHoldForEveryFleet(t *testing.T) {
	fleets, ends := 10000, map[string]int{}
	if testing.Short() {
		fleets = 1000
	}
	moves, refused, afterwards := 0, 0, 0
	for id := range int64(fleets) {
		p := randomPlatform(t, id)
		for range 20 + p.chance.Intn(40) {
			p.chaos()
		}
		p.calm()
		p.settle()
		p.checkEnd()
		ends[p.reason()]++
		moves, refused, afterwards = moves+len(p.granted), refused+p.refused, afterwards+p.afterwards
		if p.failed {
			t.Fatalf("fleet %d breaks a promise: randomPlatform(t, %d) makes it again", id, id)
		}
	}
	t.Logf("%d fleets, %d moves (%d of sick clusters), %d refusals, ends: %v", fleets, moves, afterwards, refused, ends)
	if refused < fleets/10 || afterwards < fleets/100 {
		t.Error("the simulation shows too little")
	}
	for _, reason := range []string{
		v1.ReasonComplete, v1.ReasonHalted, v1.ReasonAwaitingApproval, v1.ReasonNoEvidence, v1.ReasonSeedsBehind,
	} {
		if ends[reason] == 0 {
			t.Errorf("no fleet ended in %s: the simulation shows too little", reason)
		}
	}
}

// checkEnd: if nothing moves any longer, the rollout is complete, or its status says why not.
func (p *platform) checkEnd() {
	reason := p.reason()
	named := []string{v1.ReasonHalted, v1.ReasonAwaitingApproval, v1.ReasonNoEvidence, v1.ReasonSeedsBehind}
	if reason == v1.ReasonRollingOut && p.master && !p.alive {
		return // the seed waits for its master, and reports it
	}
	if reason != v1.ReasonComplete {
		if !slices.Contains(named, reason) {
			p.errorf("it ends in %s (%s), seeds %s", reason, p.fleet.Message, p.seeds[0].decision.Message)
		}
		return
	}
	for _, s := range p.seeds {
		if s.cut {
			continue
		}
		for name, reported := range s.reported {
			if reported.State == v1.ClusterBehind || reported.State == v1.ClusterMoving {
				p.errorf("complete, and %s is %s", name, reported.State)
			}
		}
	}
}

// randomPlatform is a platform with random properties.
func randomPlatform(t testing.TB, id int64) *platform {
	chance := rand.New(rand.NewSource(id + 1<<32))
	p := newPlatform(t, id, 1+chance.Intn(3), randomRollout(chance))
	p.master = len(p.seeds) > 1 || chance.Intn(2) == 0
	p.operator = chance.Intn(2) == 0
	worst := chance.Intn(12)
	p.outcome = func(m *member, revision int) string {
		// The result depends on name and revision, so that a retry changes nothing, and a fix may help.
		hash := fnv.New32a()
		fmt.Fprintf(hash, "%s %d %d", m.name, revision, id)
		switch lot := int(hash.Sum32()>>8) % 40; {
		case lot < worst:
			return "never"
		case lot < 2*worst:
			return "rollback"
		}
		return "ok"
	}
	for range chance.Intn(14) {
		m := p.add(chance.Intn(len(p.seeds)), chance.Intn(5))
		m.dead, m.paused = chance.Intn(12) == 0, chance.Intn(12) == 0
	}
	p.now++
	p.revision = 1
	for _, s := range p.seeds {
		p.sync(s)
	}
	return p
}

func randomRollout(chance *rand.Rand) *v1.Rollout {
	if chance.Intn(10) == 0 {
		return nil
	}
	made := &v1.Rollout{Pace: randomPace(chance)}
	for i := range chance.Intn(4) {
		group := v1.RolloutGroup{
			Name:            v1.AddonName(fmt.Sprintf("ring-%d", i)),
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": fmt.Sprint(i)}},
			Pace:            randomPace(chance),
		}
		if chance.Intn(5) == 0 {
			group.Start = v1.StartApproved
		}
		made.Groups = append(made.Groups, group)
	}
	return made
}

func randomPace(chance *rand.Rand) v1.Pace {
	pace := v1.Pace{
		Soak:             &metav1.Duration{Duration: time.Duration(chance.Intn(3)) * time.Minute},
		ProgressDeadline: &metav1.Duration{Duration: time.Duration(3+chance.Intn(6)) * time.Minute},
	}
	pick := func(values ...intstr.IntOrString) *intstr.IntOrString {
		if at := chance.Intn(len(values) + 1); at < len(values) {
			return &values[at]
		}
		return nil
	}
	pace.MaxConcurrency = pick(intstr.FromInt32(1), intstr.FromInt32(3), intstr.FromString("34%"), intstr.FromString("100%"))
	pace.MaxFailures = pick(intstr.FromInt32(1), intstr.FromInt32(2), intstr.FromString("25%"), intstr.FromString("100%"))
	return pace
}

// chaos is one random event.
func (p *platform) chaos() {
	s := p.seeds[p.chance.Intn(len(p.seeds))]
	names := p.names()
	var m *member
	if len(names) > 0 {
		m = p.members[names[p.chance.Intn(len(names))]]
	}
	switch lot := p.chance.Intn(40); {
	case lot < 10:
		p.live(1 + p.chance.Intn(3))
	case lot < 18 && m != nil:
		if at := slices.IndexFunc(p.seeds, func(s *seed) bool { return s.name == m.seed }); p.seeds[at].tally != nil {
			p.look(p.seeds[at], m.name) // reported now; before and after that, it may be late
		}
	case lot < 25:
		p.decide(s)
	case lot < 28:
		p.report(s)
	case lot < 31:
		p.evaluate(func() bool { return p.chance.Intn(3) == 0 })
	case lot < 32:
		p.restart(s)
	case lot < 33:
		s.cut = !s.cut
	case lot < 34:
		p.alive = !p.alive
	case lot < 35:
		p.revision++
	case lot < 36:
		p.edit()
	case lot < 37:
		p.add(p.chance.Intn(len(p.seeds)), p.chance.Intn(5))
	default:
		p.happen(m)
	}
	if p.chance.Intn(2) == 0 {
		p.sync(s)
	}
}

// edit changes spec.rollout. Every reachable controller then recounts.
func (p *platform) edit() {
	for _, s := range p.seeds {
		s.cut = false
	}
	p.use(randomRollout(p.chance))
	for _, s := range p.seeds {
		p.sync(s)
	}
}

// happen changes a cluster, without a report yet.
func (p *platform) happen(m *member) {
	if m == nil {
		return
	}
	switch p.chance.Intn(12) {
	case 9, 10:
		m.refuses = p.now + p.chance.Intn(60)
		if p.chance.Intn(4) == 0 {
			m.refuses = math.MaxInt
		}
	case 8:
		m.wants = p.now + p.chance.Intn(40)
	case 7, 11:
		m.stalls = !m.stalls
		m.ready = -1
		if p.chance.Intn(2) == 0 {
			m.wants = p.now + p.chance.Intn(40)
		}
	case 0:
		m.ring = p.chance.Intn(5)
	case 1:
		delete(p.members, m.name)
	case 2:
		m.dead = !m.dead
	case 3:
		m.paused = !m.paused
	case 4:
		m.ready = -1 // it flaps
	case 5:
		m.selected = false
	default:
		m.selected = !m.leaves
	}
}

// calm ends random changes. Some seeds and masters don't return.
func (p *platform) calm() {
	p.alive = p.alive || p.chance.Intn(4) > 0 || len(p.seeds) > 1
	for _, s := range p.seeds {
		s.cut = s.cut && p.chance.Intn(2) == 0
	}
}
