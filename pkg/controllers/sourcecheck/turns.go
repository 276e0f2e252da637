package sourcecheck

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/backoff"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// item is one source, and what is known of it.
type item struct {
	// use is the first version that has it, at is the place of that among those of its add-on.
	use       catalogue.SourceUse
	at        int
	catalogue string
	version   *v1.AddonVersion

	// mine says that this seed checks it.
	mine bool
	good bool
	// unrendered says of a good one that it can't be rendered without an installation.
	unrendered bool
	fault      *catalogue.SourceFault
	failures   int32
	// due is when it is checked next, unless it is good.
	due time.Time
}

// outcome of a check; not checked: something of our own failed.
type outcome struct {
	fault               *catalogue.SourceFault
	checked, unrendered bool
	// slow says that the check took long, whatever it found.
	slow bool
}

// turns decide which source is checked next.
type turns struct {
	items map[string]*item
	share catalogue.SourceShare
	// busy are the catalogues of which a source is being checked.
	busy map[string]bool
	// slow are the catalogues whose last check took long. They never take all places.
	slow map[string]bool
	// last is when each catalogue had its turn, as a number that grows.
	last map[string]int
	turn int
}

func newTurns() turns {
	return turns{items: map[string]*item{}, busy: map[string]bool{}, slow: map[string]bool{}, last: map[string]int{}}
}

// want sets which sources there are, and says whether one went. What is known of others stays; of new
// ones an earlier process may have known something, which is used once and then dropped from before.
func (t *turns) want(catalogues map[string]listed, before *catalogue.SourceChecks) (gone bool) {
	wanted := t.firstUses(catalogues)
	for key, found := range wanted {
		if known := t.items[key]; known != nil {
			known.use, known.at, known.catalogue, known.version = found.use, found.at, found.catalogue, found.version
			wanted[key] = known
			continue
		}
		if fault, isBad := before.Bad[key]; isBad {
			found.fault = &fault
		}
		found.good, found.unrendered, found.mine = before.Good[key], before.Unrendered[key], t.isMine(key)
		delete(before.Good, key)
		delete(before.Bad, key)
	}
	gone = len(t.items) > 0 && slices.ContainsFunc(slices.Collect(maps.Keys(t.items)), func(key string) bool { return wanted[key] == nil })
	t.items = wanted
	return gone
}

// firstUses are the sources of some catalogues by key. A source of several stays with the catalogue that
// had it first, while that has it: another one can't take it into its own turn.
func (t *turns) firstUses(catalogues map[string]listed) map[string]*item {
	uses := map[string]*item{}
	for _, name := range slices.Sorted(maps.Keys(catalogues)) {
		for _, found := range catalogues[name].items {
			chosen, known := uses[found.use.Key], t.items[found.use.Key]
			isFirst := known != nil && known.catalogue == found.catalogue
			if chosen == nil || isFirst && chosen.catalogue != known.catalogue {
				uses[found.use.Key] = &found
			}
		}
	}
	return uses
}

// divide sets which seeds share in the checks.
func (t *turns) divide(share catalogue.SourceShare) {
	if share.Seed == t.share.Seed && slices.Equal(share.Seeds, t.share.Seeds) {
		return
	}
	t.share = share
	for key, known := range t.items {
		known.mine = t.isMine(key)
	}
}

func (t *turns) isMine(key string) bool {
	return t.share.Seed != "" && catalogue.CheckerOf(key, t.share.Seeds) == t.share.Seed
}

// inOrder compares by add-on, and then the newest version first, as the master names them.
func inOrder(a, b *item) int {
	return cmp.Or(cmp.Compare(a.use.Addon, b.use.Addon), cmp.Compare(a.at, b.at))
}

// due are the sources that this seed has to check now, by catalogue, of those that have none under way.
func (t *turns) due(now time.Time) map[string][]*item {
	due := map[string][]*item{}
	for _, known := range t.items {
		if known.mine && !known.good && !known.due.After(now) && !t.busy[known.catalogue] {
			due[known.catalogue] = append(due[known.catalogue], known)
		}
	}
	return due
}

// soonest is the time until a source is due that is not yet.
func (t *turns) soonest(now time.Time) time.Duration {
	soonest := longestPause
	for _, known := range t.items {
		if known.mine && !known.good && known.due.After(now) {
			soonest = min(soonest, known.due.Sub(now))
		}
	}
	return soonest
}

// next gives catalogues their turn, the one that waits longest first, while fewer than most checks run;
// one place is for those whose last check was not slow.
// Of a catalogue, what was never tried comes first.
func (t *turns) next(due map[string][]*item, most int) []item {
	waiting := slices.SortedFunc(maps.Keys(due), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.last[a], t.last[b]), cmp.Compare(a, b))
	})
	slow := 0
	for name := range t.busy {
		if t.slow[name] {
			slow++
		}
	}
	var chosen []item
	for _, name := range waiting {
		if len(t.busy) >= most || t.slow[name] && slow >= max(1, most-1) {
			continue
		}
		if t.slow[name] {
			slow++
		}
		first := slices.MinFunc(due[name], func(a, b *item) int {
			return cmp.Or(cmp.Compare(a.failures, b.failures), inOrder(a, b))
		})
		t.turn++
		t.last[name], t.busy[name] = t.turn, true
		chosen = append(chosen, *first)
	}
	return chosen
}

const (
	// slowAfter is the time after which a check counts as slow.
	slowAfter = 15 * time.Second
	// longestPause is the longest wait before a source is tried again.
	longestPause = time.Hour
	// longestOfContent is that where a server answered, and its content is wrong.
	longestOfContent = 24 * time.Hour
)

func longestAfter(found outcome) time.Duration {
	if !found.checked || found.fault.Reason == v1.ReasonFetchFailed || found.fault.Reason == v1.ReasonSourceNotServed {
		return longestPause
	}
	return longestOfContent
}

// conclude takes down what a check found, and says whether that changes the report.
func (t *turns) conclude(of item, found outcome, options Options) (changed bool) {
	delete(t.busy, of.catalogue)
	delete(t.slow, of.catalogue)
	if found.slow {
		t.slow[of.catalogue] = true
	}
	known := t.items[of.use.Key]
	if known == nil {
		return false
	}
	if found.checked && found.fault == nil {
		known.good, known.unrendered, known.fault, known.failures = true, found.unrendered, nil, 0
		return true
	}
	known.failures++
	pause := options.FirstPause
	if !found.checked { // such as a Secret that is on its way
		pause /= 6
	}
	known.due = options.Clock.Now().Add(backoff.Around(backoff.After(known.failures, pause, longestAfter(found)), 0.1))
	if !found.checked || known.fault != nil && *known.fault == *found.fault {
		return false
	}
	known.fault = found.fault
	return true
}
