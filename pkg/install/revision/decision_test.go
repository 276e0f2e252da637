package revision

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/test/golden"
)

// situation is one that an installation can be in.
type situation struct {
	record   *Record
	wanted   *Wanted
	observed Observed
}

// question is what a decision may depend on, with the answers that there are.
type question struct {
	name    string
	answers []answer
}

type answer struct {
	name string
	set  func(*situation)
}

func either(name string, set func(*situation)) question {
	return question{name, []answer{{"no", func(*situation) {}}, {"yes", set}}}
}

var (
	stateOfRecord = question{"record", []answer{
		{"none", func(s *situation) { s.record = nil }},
		{"Intent", func(s *situation) { s.record.State = StateIntent }},
		{"Applied", func(s *situation) { s.record.State = StateApplied }},
	}}
	rollback = question{"rollback", []answer{
		{"none", func(*situation) {}},
		{"from these inputs", func(s *situation) { s.back("new", "then") }},
		{"from other inputs", func(s *situation) { s.back("older", "then") }},
		{"from these inputs, asked for again", func(s *situation) { s.back("new", "before") }},
	}}
	equalInputs = either("inputs as on record", func(s *situation) { s.onRecord(func(r *Record) { r.Inputs = "new" }) })
	damaged     = either("newer record damaged", func(s *situation) { s.onRecord(func(r *Record) { r.Skipped = 9 }) })
	strategy    = question{"strategy Once", []answer{
		{"no", func(s *situation) { s.onRecord(func(r *Record) { r.Settled = true }) }},
		{"yes, never ready", func(s *situation) { s.observed.Once = true }},
		{"yes, was ready", func(s *situation) {
			s.observed.Once = true
			s.onRecord(func(r *Record) { r.Settled = true })
		}},
	}}
	rollout = either("rollout under way here", func(s *situation) { s.observed.Rollout = true })
	again   = either("rendering asked for", func(s *situation) { s.observed.Rerender = true })
	objects = either("objects on record", func(s *situation) {
		s.onRecord(func(r *Record) { r.Objects = []json.RawMessage{json.RawMessage(`{}`)} })
	})
	asked = question{"what people say", []answer{
		{"is another", func(s *situation) { s.onRecord(func(r *Record) { r.Wanted = "another" }) }},
		{"is not on record", func(*situation) {}},
		{"is as on record", func(s *situation) { s.onRecord(func(r *Record) { r.Wanted = "said" }) }},
	}}
	name = question{"name", []answer{
		{"as on record", func(*situation) {}},
		{"another version", func(s *situation) { s.wanted.Version = "2" }},
		{"another add-on", func(s *situation) { s.wanted.Addon = "web2" }},
	}}
	content = question{"rendered", []answer{
		{"other objects", func(s *situation) { s.wanted.Rendered.ObjectsDigest = "others" }},
		{"other hooks", func(s *situation) {
			s.wanted.Rendered.Hooks = []hooks.Hook{{Path: "a", Events: []string{"pre-install"}}}
		}},
		{"the same from another chart", func(s *situation) { s.wanted.Rendered.Helm = &helmrelease.Release{Name: "web"} }},
		{"the same", func(*situation) {}},
	}}
	gone = question{"gone", []answer{
		{"content", func(s *situation) { s.wanted.Gone = GoneContent }},
		{"artifact", func(s *situation) { s.wanted.Gone = GoneArtifact }},
		{"version", func(s *situation) { s.wanted.Gone = GoneVersion }},
	}}
	adopts   = either("takes a Helm release over", func(s *situation) { s.wanted.Rendered.Adopts = true })
	deadline = question{"deadline", []answer{
		{"none", func(*situation) {}},
		{"in an hour", func(s *situation) { s.deadline(time.Hour) }},
		{"an hour ago", func(s *situation) { s.deadline(-time.Hour) }},
		{"an hour ago, never watched", func(s *situation) {
			s.deadline(-time.Hour)
			s.observed.Watched = time.Time{}
		}},
	}}
)

func (s *situation) onRecord(set func(*Record)) {
	if s.record != nil {
		set(s.record)
	}
}

func (s *situation) back(inputs, reconcileAt string) {
	s.onRecord(func(r *Record) { r.Rollback = &Rollback{Inputs: inputs, ReconcileAt: reconcileAt} })
}

func (s *situation) deadline(left time.Duration) {
	s.onRecord(func(r *Record) {
		r.Atomic, r.LastGood, r.Timeout.Duration = true, 1, 10*time.Hour
		r.Time = metav1.NewTime(s.observed.Now.Add(left - r.Timeout.Duration))
	})
}

// plain is what the answers change: an installation of which nothing special is to be reported.
func plain() *situation {
	now := time.Unix(1800000000, 0)
	return &situation{
		record:   &Record{Revision: 2, Addon: "web", Version: "1", Inputs: "old", ObjectsDigest: "digest"},
		wanted:   &Wanted{Addon: "web", Version: "1", Inputs: "new", Asked: "said", Rendered: &Rendered{ObjectsDigest: "digest"}},
		observed: Observed{ReconcileAt: "then", Watched: now.Add(-100 * time.Hour), Now: now},
	}
}

// tree tells the decisions for all answers to questions. A question is left out where its answer
// does not matter.
func tree(questions []question, given []answer, decide func(*situation) Decision) []string {
	if len(questions) == 0 {
		made := plain()
		for _, one := range given {
			one.set(made)
		}
		return []string{"= " + decide(made).String()}
	}
	var branches [][]string
	for _, one := range questions[0].answers {
		branches = append(branches, tree(questions[1:], append(slices.Clone(given), one), decide))
	}
	var lines []string
	for i := range branches {
		if slices.ContainsFunc(branches[:i], func(other []string) bool { return slices.Equal(other, branches[i]) }) {
			continue // told with the first answer that comes to the same
		}
		var names []string
		for j, other := range questions[0].answers {
			if slices.Equal(branches[i], branches[j]) {
				names = append(names, other.name)
			}
		}
		if len(names) == len(questions[0].answers) {
			return branches[i]
		}
		lines = append(lines, fmt.Sprintf("%s: %s", questions[0].name, strings.Join(names, " | ")))
		for _, line := range branches[i] {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// Every situation, and what is done in each. Red with any change of Decide that changes one.
func TestDecisions(t *testing.T) {
	before := []question{
		stateOfRecord, rollback, strategy, equalInputs, damaged, rollout, again, objects, asked, name,
	}
	after := []question{stateOfRecord, damaged, content, equalInputs, rollback, asked, adopts}
	without := []question{stateOfRecord, damaged, rollback, deadline, rollout, strategy}
	var text strings.Builder
	section := func(title string, questions []question, decide func(*situation) Decision) {
		fmt.Fprintf(&text, "# %s\n%s\n\n", title, strings.Join(tree(questions, nil, decide), "\n"))
	}
	section("Before anything is rendered", before, func(s *situation) Decision {
		s.wanted.Rendered = nil
		return Decide(s.record, s.wanted, s.observed)
	})
	section("Once it is rendered", after, func(s *situation) Decision {
		return Decide(s.record, s.wanted, s.observed)
	})
	section("Where the desired state is not available", without, func(s *situation) Decision { return Decide(s.record, nil, s.observed) })
	section("Where only the record has the desired state", []question{gone, stateOfRecord, objects, rollback, damaged, deadline, rollout, strategy},
		func(s *situation) Decision { return Decide(s.record, s.wanted, s.observed) })

	golden.Match(t, "testdata/decisions.txt", text.String())
}

// Red when the time of an outage, of a pause or of a process that did not run counts for an atomic
// upgrade: it would be rolled back at the first read after it.
func TestOnlyTimeThatIsWatchedMakesAnUpgradeOverdue(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		why              string
		begun, watched   time.Duration
		healthy, nobodys bool
		want             bool
	}{
		{why: "its time is not over", begun: 9 * time.Minute, watched: time.Hour},
		{why: "its time is over", begun: 11 * time.Minute, watched: time.Hour, want: true},
		{why: "contact came back a moment ago", begun: time.Hour, watched: time.Second},
		{why: "contact came back and its time went by again", begun: time.Hour, watched: 11 * time.Minute, want: true},
		{why: "there is no contact", begun: time.Hour, nobodys: true},
		{why: "it was healthy once", begun: time.Hour, watched: time.Hour, healthy: true},
		{why: "a clock that was ahead began it, a moment ago", begun: -time.Hour, watched: time.Second},
		{why: "a clock that was ahead began it, and its time went by", begun: -time.Hour, watched: 11 * time.Minute, want: true},
	} {
		record := &Record{
			Revision: 2, LastGood: 1, Atomic: true, Healthy: test.healthy,
			Time: metav1.NewTime(now.Add(-test.begun)), Timeout: metav1.Duration{Duration: 10 * time.Minute},
		}
		seen := Observed{Now: now, Watched: now.Add(-test.watched)}
		if test.nobodys {
			seen.Watched = time.Time{}
		}
		if got := Decide(record, nil, seen).Do == GiveWay; got != test.want {
			t.Errorf("%s: got %t, want %t", test.why, got, test.want)
		}
	}
}

// RS39: The deadline of a revision that began while the clock was ahead counts from when its cluster is watched. Red when it never takes
// too long, or does so at once.
func TestARevisionOfAClockThatWasAheadGetsLate(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		begun, watched time.Duration
		want           bool
	}{
		{9 * time.Minute, time.Hour, false}, {11 * time.Minute, time.Second, true},
		{-time.Hour, time.Second, false}, {-time.Hour, 11 * time.Minute, true},
	} {
		record := &Record{Time: metav1.NewTime(now.Add(-test.begun)), Timeout: metav1.Duration{Duration: 10 * time.Minute}}
		if got := record.IsLate(now.Add(-test.watched), now); got != test.want {
			t.Errorf("begun %s and watched %s ago: late %t", test.begun, test.watched, got)
		}
	}
}

func TestNextRevision(t *testing.T) {
	for _, test := range []struct {
		why    string
		record *Record
		want   int
	}{
		{"the first", nil, 1},
		{"after an applied one", &Record{Revision: 3, State: StateApplied}, 4},
		{"an intent that was never carried out keeps its number", &Record{Revision: 3, State: StateIntent}, 3},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := test.record.Next(); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// Red when what becomes of an installation with its cluster is not put on record by itself, has something rendered, or is followed where
// nothing new is to be.
func TestTheEndIsAmendedAlone(t *testing.T) {
	remove := func(s *situation) { s.wanted.OnClusterDeletion = v1.ClusterDeletionRemove }
	for _, test := range []struct {
		why    string
		change func(*situation)
		do     Do
		amend  Amendment
	}{
		{"it is what is on record", func(*situation) {}, Keep, ""},
		{"another end", remove, Keep, AmendEnd},
		{"none any more", func(s *situation) { s.record.OnClusterDeletion = v1.ClusterDeletionRemove }, Keep, AmendEnd},
		{"with another name", func(s *situation) { remove(s); s.wanted.Version = "2" }, Keep, AmendName},
		{"with other inputs", func(s *situation) { remove(s); s.wanted.Inputs = "others" }, Begin, ""},
		{"strategy Once", func(s *situation) { remove(s); s.observed.Once, s.record.Settled = true, true }, Once, ""},
		{"only the record has the content", func(s *situation) { remove(s); s.wanted.Gone = GoneContent }, Hold, ""},
	} {
		s := plain()
		s.wanted.Rendered = nil
		s.record.State, s.record.Inputs = StateApplied, s.wanted.Inputs
		test.change(s)
		if got := Decide(s.record, s.wanted, s.observed); got.Do != test.do || got.Amend != test.amend {
			t.Errorf("%s: %s, wanted %s, amend %q", test.why, got, test.do, test.amend)
		}
	}
}
