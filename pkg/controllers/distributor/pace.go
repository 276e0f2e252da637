package distributor

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Limits on the reading of Custom catalogues, in bytes as catalogue.Weigh counts them (ADR 123).
const (
	// editsFree is how much an author may change before an edit waits, and allFree how much all authors together may.
	editsFree = 512 << 10
	allFree   = 64 << 20
	// leastEdit is the minimum that an edit counts: it is written to all seeds and to clusters, even if it is small.
	leastEdit = 8 << 10
	// editsPerSecond are shared by all authors with recent changes. Each has at least an eighth of it, but all together
	// at most eight times as much: with more than 64 authors, each has less.
	editsPerSecond = 20 << 10
	leastShare     = 8
	// newFree and newPerSecond are for all new catalogues together.
	newFree      = 16 << 20
	newPerSecond = 160 << 10
	// oneGo is how long the generated catalogues of a repository may take to arrive: each catalogue is read once in that time.
	oneGo = 30 * time.Second
	// soonest is the shortest time to the reconciliation that reads waiting edits.
	soonest = time.Second
)

// account has the debt of an author, which grows when a catalogue is read. New catalogues share one account, the empty one.
type account struct {
	author string
	// urgent is for edits that remove versions while the author's debt for other edits is too high.
	urgent bool
}

var newcomers account

// pace has the recent changes of each author, so that one who changes much repeatedly delays no other author. Core
// catalogues have no limit.
type pace struct {
	debts  map[account]debt
	repaid time.Time
}

// debt is the amount that was read on an account, minus the amount that time repaid.
type debt struct {
	bytes float64
	// since is when a catalogue was last read while the debt was small enough.
	since time.Time
}

// authors is the number of authors' accounts with a debt.
func (p *pace) authors() int {
	if _, both := p.debts[newcomers]; both {
		return len(p.debts) - 1
	}
	return len(p.debts)
}

// perSecond is the rate at which time repays a debt.
func (p *pace) perSecond(of account) float64 {
	if of == newcomers {
		return newPerSecond
	}
	authors := p.authors()
	return editsPerSecond / max(1, float64(min(authors, leastShare)), float64(authors)/leastShare)
}

// free is the debt up to which no edit waits.
func (p *pace) free(of account) float64 {
	if of == newcomers {
		return newFree
	}
	return min(editsFree, allFree/float64(max(1, p.authors())))
}

// repay subtracts the amount for the time until now.
func (p *pace) repay(now time.Time) {
	left := make(map[account]debt, len(p.debts))
	for of, owed := range p.debts {
		owed.bytes -= max(0, now.Sub(p.repaid).Seconds()) * p.perSecond(of)
		if owed.bytes > 0 {
			left[of] = owed
		}
	}
	p.debts, p.repaid = left, now
}

// wait returns the account of a catalogue that is new or changed, and how long it must wait; 0: it may be read now.
// Argument before is its last reading, or nil. An edit that removes a version is urgent.
func (p *pace) wait(object *v1.AddonCatalogue, before *reading) (account, time.Duration) {
	if object.Spec.Type == v1.CatalogueCore {
		return newcomers, 0
	}
	if before == nil || before.readAt.IsZero() {
		return newcomers, p.waitOn(newcomers, nil)
	}
	of := account{author: catalogue.Author(object)}
	wait := p.waitOn(of, before)
	if _, versions := catalogue.Size(&object.Spec); wait > 0 && max(1, int(versions)) < before.weight.Versions {
		of.urgent = true
		wait = p.waitOn(of, before)
	}
	return of, wait
}

func (p *pace) waitOn(of account, before *reading) time.Duration {
	owed, free := p.debts[of], p.free(of)
	if owed.bytes <= free || before != nil && before.readAt.Before(owed.since) && p.repaid.Sub(owed.since) < oneGo {
		return 0
	}
	seconds := (owed.bytes - free) / p.perSecond(of)
	return max(soonest, time.Duration(seconds*float64(time.Second))+time.Millisecond) // rounded up
}

// charge adds the catalogues that a reconciliation read, at its end: until then, none of them delays another of its author's.
func (p *pace) charge(read []*reading) {
	for _, found := range read {
		if found.weight.Bytes == 0 || found.object.Spec.Type == v1.CatalogueCore {
			continue
		}
		owed := p.debts[found.payer]
		if owed.bytes <= p.free(found.payer) {
			owed.since = p.repaid
		}
		owed.bytes += float64(max(found.weight.Bytes, leastEdit))
		p.debts[found.payer] = owed
	}
}

// reported says why a catalogue waits. All edits of that time get the same text.
func (p *pace) reported(of account, wait time.Duration) string {
	what, whose := "its edit", fmt.Sprintf("catalogue %q, with all that is generated from it,", of.author)
	if of == newcomers {
		what, whose = "it is new, and", "all new catalogues together"
	}
	return fmt.Sprintf("%s waits until about %s: %s changed %.1f MiB within a short time, and the master reads %.1f KiB a second of "+
		"such changes, less while more authors change catalogues; the seeds keep the last content until then",
		what, p.repaid.Add(wait).UTC().Format("15:04:05 UTC"), whose, p.debts[of].bytes/(1<<20), p.perSecond(of)/(1<<10))
}
