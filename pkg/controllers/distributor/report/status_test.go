package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

var digests = map[string]string{"web": "sha256:1"}

func whole(name string) seed.State {
	return seed.State{Name: name, Reached: true, Digests: digests, At: time.Unix(1000, 0)}
}

// Red when a condition says something else for what is known, or when what statusOf was given is
// changed.
func TestStatusSaysWhatIsKnown(t *testing.T) {
	away, empty, unfetched := whole("away"), whole("empty"), whole("unfetched")
	away.Reached, away.Problem = false, "connection refused"
	empty.Digests = nil
	unfetched.Unfetched = usage.Unfetched{"web": v1.ReasonFetchFailed}
	distributed := Findings{Digests: digests, Sources: []catalogue.SourceUse{{Addon: "web", Version: "1.0.0", Key: "00"}}}
	for _, test := range []struct {
		why                       string
		git                       bool
		facts                     facts
		ready, sources, leaving   string
		rows, synced, conflicting int32
	}{
		{why: "a spec that is refused, and not on the seeds", facts: facts{Findings: Findings{Reason: v1.ReasonInvalid, Refusal: "no"}},
			ready: "False/Invalid: no; the seeds keep its last content"},
		{why: "a spec that is refused, with a last valid one", ready: "False/Invalid: no; the seeds keep the last valid content",
			facts: facts{Findings: Findings{Reason: v1.ReasonInvalid, Refusal: "no", Kept: true}}},
		{why: "an edit that waits, of one that is refused", ready: "False/Distributing: its edit waits",
			facts: facts{Findings: Findings{Reason: v1.ReasonInvalid, Refusal: "no", Waits: "its edit waits"}}},
		{why: "in git, and not read yet", git: true, facts: facts{Findings: distributed, seeds: []seed.State{whole("a")}},
			ready: "False/Fetching: the repository has not been read yet", sources: "Unknown/SourcesUnchecked: not checked yet: 1 of 1 version", rows: 1, synced: 1},
		{why: "one seed has it, one can't be reached", facts: facts{Findings: distributed, seeds: []seed.State{away, whole("b")}},
			ready: "True/Distributed: 1 of 2 seeds have it; not reached: away", sources: "Unknown/SourcesUnchecked: not checked yet: 1 of 1 version", rows: 2, synced: 1},
		{why: "one seed does not have it yet", facts: facts{Findings: distributed, seeds: []seed.State{empty}},
			ready: "False/Distributing: 0 of 1 seeds have it; not yet: empty", sources: "Unknown/SourcesUnchecked: not checked yet: 1 of 1 version", rows: 1},
		{why: "content that can't be had does not make it unready", facts: facts{Findings: distributed, seeds: []seed.State{unfetched}},
			ready: "True/Distributed: 1 of 1 seeds have it", rows: 1, synced: 1,
			sources: `False/FetchFailed: seed "unfetched": installations can't get the content of "web": FetchFailed`},
		{why: "clusters leave a version", ready: "True/Distributed: the catalogue adds nothing to the content of the seeds",
			facts:   facts{Findings: Findings{Leave: catalogue.Leave{"web": {"1.0.0"}}}, leaving: usage.Stay{Installations: 2, Seeds: 1, Uncounted: 1}},
			leaving: "True/VersionsInUse: clusters leave web 1.0.0: 2 installations on 1 seeds have it; 1 seeds are not counted"},
		{why: "a conflict", ready: "True/Distributed: the catalogue adds nothing to the content of the seeds", conflicting: 1,
			facts: facts{Findings: Findings{Conflicts: []v1.CatalogueConflict{{Addon: "web", Reason: v1.ReasonCoreReserved, WonBy: "core"}}}}},
	} {
		t.Run(test.why, func(t *testing.T) {
			object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "custom", Generation: 3}}
			if test.git {
				object.Spec.Git = &v1.CatalogueGit{}
			}
			before := object.DeepCopy()
			next := statusOf(object, &test.facts)
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object is changed:\n%s", diff)
			}
			for kind, want := range map[string]string{
				v1.ConditionReady: test.ready, v1.ConditionSourcesReady: test.sources, v1.ConditionLeaving: test.leaving,
			} {
				if got := said(next.Conditions, kind); got != want {
					t.Errorf("%s is %q, want %q", kind, got, want)
				}
			}
			if got := [3]int32{int32(len(next.Seeds)), next.SyncedSeeds, next.ConflictCount}; got != [3]int32{test.rows, test.synced, test.conflicting} {
				t.Errorf("rows, synced and conflicts are %v", got)
			}
		})
	}
}

// Red when the status of a catalogue whose edit waits counts what the edit has, or says of it that it was observed.
func TestAnEditThatWaitsIsNotObserved(t *testing.T) {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "custom", Generation: 4}}
	object.Spec.Addons = []v1.Addon{{Name: "web"}, {Name: "db"}}
	object.Status.Addons, object.Status.Versions = 1, 3
	next := statusOf(object, &facts{Findings: Findings{Generation: 4, Read: 3, Waits: "its edit waits"}})
	if next.ObservedGeneration != 3 || next.Addons != 1 || next.Versions != 3 {
		t.Errorf("generation %d with %d add-ons and %d versions is observed", next.ObservedGeneration, next.Addons, next.Versions)
	}
	for _, condition := range next.Conditions {
		if condition.ObservedGeneration != 3 {
			t.Errorf("%s is of generation %d", condition.Type, condition.ObservedGeneration)
		}
	}
	if got := said(next.Conditions, v1.ConditionReady); got != "False/Distributing: its edit waits" {
		t.Error(got)
	}
	next = statusOf(object, &facts{Findings: Findings{Generation: 4, Read: 4}})
	if next.ObservedGeneration != 4 || next.Addons != 2 || next.Versions != 0 {
		t.Errorf("once it is read: generation %d with %d add-ons and %d versions", next.ObservedGeneration, next.Addons, next.Versions)
	}
}

func said(conditions []metav1.Condition, kind string) string {
	found := meta.FindStatusCondition(conditions, kind)
	if found == nil {
		return ""
	}
	return string(found.Status) + "/" + found.Reason + ": " + found.Message
}

// Red when a row loses when it got its revision, or has that of a seed that went.
func TestRowsKeepTheirTime(t *testing.T) {
	object := &v1.AddonCatalogue{}
	f := &facts{Findings: Findings{Digests: digests}, seeds: []seed.State{whole("a"), whole("b")}}
	object.Status = statusOf(object, f)
	f.seeds = f.seeds[:1]
	f.seeds[0].At = time.Unix(2000, 0)
	f.seeds[0].Reached, f.seeds[0].Problem = false, "away"
	rows := statusOf(object, f).Seeds
	if len(rows) != 1 || rows[0].Synced || rows[0].LastSyncTime.Unix() != 1000 || rows[0].Revision == "" {
		t.Errorf("rows %+v", rows)
	}
}

// Red when what the worker of a Seed that went found out is taken down.
func TestASeedThatWentHasNoRow(t *testing.T) {
	custom := Findings{Generation: 1, Digests: digests}
	catalogues := map[types.UID]Findings{"custom": custom}
	l := &ledger{}
	l.Passed(catalogues, []string{"stays", "goes"})
	l.Passed(catalogues, []string{"stays"})
	l.SeedChanged(whole("goes"))
	l.SeedChanged(whole("stays"))
	found, ok := l.facts(&v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{UID: "custom", Generation: 1}})
	if diff := cmp.Diff([]seed.State{whole("stays")}, found.seeds, cmp.AllowUnexported(seed.State{})); !ok || diff != "" {
		t.Errorf("known %t (-want +got):\n%s", ok, diff)
	}
}

// Red when the master says more or less of sources than the seeds found: what the seed that has to check
// one says counts, else what another one says that still checks; nothing counts as wrong that nobody
// checked; and until all seeds were asked, nothing is taken back.
func TestSourcesAreAsTheSeedsFoundThem(t *testing.T) {
	uses := []catalogue.SourceUse{{Addon: "web", Version: "2.0.0", Key: "00"}, {Addon: "web", Version: "1.0.0", Key: "01"}}
	seeds := []string{"north", "south"}
	other := map[string]string{"north": "south", "south": "north"}
	first, second := catalogue.CheckerOf("00", seeds), catalogue.CheckerOf("01", seeds)
	fault := catalogue.SourceFault{Reason: v1.ReasonArtifactNotFound, Message: "no chart"}
	type found map[string]*catalogue.SourceChecks
	good := func(keys ...string) *catalogue.SourceChecks {
		checks := &catalogue.SourceChecks{Good: map[string]bool{}, Bad: map[string]catalogue.SourceFault{}}
		for _, key := range keys {
			checks.Good[key] = true
		}
		return checks
	}
	unrendered := good("00", "01")
	unrendered.Unrendered = map[string]bool{"01": true}
	bad := func(keys ...string) *catalogue.SourceChecks {
		checks := good()
		for _, key := range keys {
			checks.Bad[key] = fault
		}
		return checks
	}
	for _, test := range []struct {
		why      string
		checks   found
		checkers []string
		unasked  bool
		want     string
	}{
		{"nobody checks", found{}, nil, false, "Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions; no seed checks sources now"},
		{"nothing is checked", found{"north": good(), "south": good()}, seeds, false, "Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions"},
		{"one seed found all", found{"north": good("00", "01"), "south": good()}, seeds, false, "True/SourcesReady: every source was fetched"},
		{
			"one can't be rendered", found{"north": unrendered, "south": unrendered}, seeds, false,
			"True/SourcesReady: every source was fetched; not rendered, since they need a cluster or values: 1 of 2 versions",
		},
		{"one is wrong", found{first: bad("00"), other[first]: good()}, seeds, false, `False/ArtifactNotFound: add-on "web" version "2.0.0": no chart`},
		{
			"two are wrong", found{"north": bad("00", "01"), "south": bad("00", "01")}, seeds, false,
			`False/ArtifactNotFound: add-on "web" version "2.0.0": no chart; and 1 more`,
		},
		{"the checker finds what another does not", found{second: good("00", "01"), other[second]: bad("01")}, seeds, false, "True/SourcesReady: every source was fetched"},
		{"a seed that checks no more", found{"north": bad("00", "01"), "south": good("00", "01")}, []string{"south"}, false, "True/SourcesReady: every source was fetched"},
		{"not all seeds were asked", found{"north": good(), "south": nil}, nil, true, "True/SourcesReady: as before"},
		{"not all seeds were asked, and none checks yet", found{"north": bad("00"), "south": nil}, nil, true, "True/SourcesReady: as before"},
		{"the only seed that checks ended", found{"north": bad("00")}, nil, false, `False/ArtifactNotFound: add-on "web" version "2.0.0": no chart`},
		{"it ended before it checked all", found{"north": good("00")}, nil, false, "Unknown/SourcesUnchecked: not checked yet: 1 of 2 versions; no seed checks sources now"},
	} {
		object := &v1.AddonCatalogue{}
		object.Status.Conditions = []metav1.Condition{isTrue(v1.ConditionSourcesReady, v1.ReasonSourcesReady, "as before")}
		f := &facts{Findings: Findings{Digests: digests, Sources: uses}, checkers: test.checkers, asked: !test.unasked}
		for _, name := range seeds {
			state := whole(name)
			state.Checks = test.checks[name]
			f.seeds = append(f.seeds, state)
		}
		if got := said(statusOf(object, f).Conditions, v1.ConditionSourcesReady); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}

// Red when the message leaves out that no seed checks sources because it is away, or says so while another one checks, or while first reports
// may still come.
func TestSeedsThatAreAwayCheckNoSource(t *testing.T) {
	uses := []catalogue.SourceUse{{Addon: "web", Version: "2.0.0", Key: "00"}, {Addon: "web", Version: "1.0.0", Key: "01"}}
	known := &catalogue.SourceChecks{Good: map[string]bool{"00": true}}
	const away = "; no seed checks sources now, and these seeds do not answer: north"
	for _, test := range []struct {
		why      string
		reached  bool
		checks   *catalogue.SourceChecks
		checkers []string
		awaited  time.Duration
		want     string
	}{
		{"it checked some before", false, known, nil, 0, "Unknown/SourcesUnchecked: not checked yet: 1 of 2 versions" + away},
		{"it is not known to have checked", false, nil, nil, 0,
			"Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions" + away},
		{"it went away a moment ago", false, known, []string{"north"}, 0, "Unknown/SourcesUnchecked: not checked yet: 1 of 2 versions"},
		{"it answers", true, known, nil, 0, "Unknown/SourcesUnchecked: not checked yet: 1 of 2 versions; no seed checks sources now"},
		{"it answers, and its first report may still come", true, nil, nil, time.Second, "Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions; the seeds have not reported on their checks yet"},
		{"it is away, and its first report may still come", false, nil, nil, time.Second,
			"Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions; the seeds have not reported on their checks yet, and these seeds do not answer: north"},
		{"it answers, and did not check yet", true, nil, nil, 0, "Unknown/SourcesUnchecked: not checked yet: 2 of 2 versions; no seed checks sources now"},
	} {
		state := whole("north")
		state.Reached, state.Checks = test.reached, test.checks
		f := &facts{
			Findings: Findings{Digests: digests, Sources: uses}, checkers: test.checkers, asked: true, awaited: test.awaited,
			seeds: []seed.State{state},
		}
		if got := said(statusOf(&v1.AddonCatalogue{}, f).Conditions, v1.ConditionSourcesReady); got != test.want {
			t.Errorf("%s: %q, want %q", test.why, got, test.want)
		}
	}
}
