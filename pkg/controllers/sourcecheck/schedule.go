package sourcecheck

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// item is one source, and the findings about it.
type item struct {
	// use is the first version with it, at is its position among those of its add-on.
	use       catalogue.SourceUse
	at        int
	catalogue string
	version   *v1.AddonVersion

	// mine says that this seed checks it.
	mine bool
	good bool
	// unrendered says that a good one can't be rendered without an installation.
	unrendered bool
	fault      *catalogue.SourceFault
	failures   int32
	// due is when it is checked next, unless it is good.
	due time.Time
}

// outcome of a check; not checked: our own part of it failed.
type outcome struct {
	fault               *catalogue.SourceFault
	checked, unrendered bool
	// slow says that the check took long, with any result.
	slow bool
}

// schedule decide which source is checked next.
type schedule struct {
	items map[string]*item
	share catalogue.SourceShare
	// busy are the catalogues with a running check.
	busy map[string]bool
	// slow are the catalogues whose last check took long. They never take all places.
	slow map[string]bool
	// last is when each catalogue had its turn, as an increasing number.
	last  map[string]int
	count int
}

func newSchedule() schedule {
	return schedule{items: map[string]*item{}, busy: map[string]bool{}, slow: map[string]bool{}, last: map[string]int{}}
}

// want sets the existing sources, and says whether one was removed. Findings about others stay; an earlier process
// may have findings about new ones, which are used once and then dropped from before.
func (t *schedule) want(catalogues map[string]listed, before *catalogue.SourceChecks) (gone bool) {
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

// firstUses are the sources of some catalogues by key. A source of several stays with the catalogue that had it
// first, as long as that has it: another one can't move it into its own turn.
func (t *schedule) firstUses(catalogues map[string]listed) map[string]*item {
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

// divide sets the seeds that share the checks.
func (t *schedule) divide(share catalogue.SourceShare) {
	if share.Seed == t.share.Seed && slices.Equal(share.Seeds, t.share.Seeds) {
		return
	}
	t.share = share
	for key, known := range t.items {
		known.mine = t.isMine(key)
	}
}

func (t *schedule) isMine(key string) bool {
	return t.share.Seed != "" && catalogue.CheckerOf(key, t.share.Seeds) == t.share.Seed
}

// inOrder compares by add-on, and then the newest version first, as the master names them.
func inOrder(a, b *item) int {
	return cmp.Or(cmp.Compare(a.use.Addon, b.use.Addon), cmp.Compare(a.at, b.at))
}

// due are the sources that this seed must check now, by catalogue, of those without a running check.
func (t *schedule) due(now time.Time) map[string][]*item {
	due := map[string][]*item{}
	for _, known := range t.items {
		if known.mine && !known.good && !known.due.After(now) && !t.busy[known.catalogue] {
			due[known.catalogue] = append(due[known.catalogue], known)
		}
	}
	return due
}

// soonest is the time until the next source is due.
func (t *schedule) soonest(now time.Time) time.Duration {
	soonest := longestPause
	for _, known := range t.items {
		if known.mine && !known.good && known.due.After(now) {
			soonest = min(soonest, known.due.Sub(now))
		}
	}
	return soonest
}

// next gives catalogues their turn, the one that waits longest first, while fewer than most checks run; one place is
// for those whose last check was not slow. Sources of a catalogue that were never tried come first.
func (t *schedule) next(due map[string][]*item, most int) []item {
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
		t.count++
		t.last[name], t.busy[name] = t.count, true
		chosen = append(chosen, *first)
	}
	return chosen
}

const (
	// slowAfter is the time after which a check counts as slow.
	slowAfter = 15 * time.Second
	// longestPause is the longest delay before a source is tried again.
	longestPause = time.Hour
	// longestOfContent is the longest delay if a server answered, and its content is wrong.
	longestOfContent = 24 * time.Hour
)

func longestAfter(found outcome) time.Duration {
	if !found.checked || found.fault.Reason == v1.ReasonFetchFailed || found.fault.Reason == v1.ReasonSourceNotServed {
		return longestPause
	}
	return longestOfContent
}

// conclude stores the result of a check, and says whether it changes the report.
func (t *schedule) conclude(of item, found outcome, options Options) (changed bool) {
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
	if !found.checked { // for example because a Secret is not copied yet
		pause /= 6
	}
	known.due = options.Clock.Now().Add(backoff.Around(backoff.After(known.failures, pause, longestAfter(found)), 0.1))
	if !found.checked || known.fault != nil && *known.fault == *found.fault {
		return false
	}
	known.fault = found.fault
	return true
}
