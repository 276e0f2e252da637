package distributor

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// How fast Custom catalogues are read, in bytes as catalogue.Weigh counts them (ADR 123).
const (
	// editsFree is what an author may change before an edit waits, and allFree what all may together.
	editsFree = 512 << 10
	allFree   = 64 << 20
	// leastEdit is what an edit counts at least: it is written to all seeds, and to clusters, however small it is.
	leastEdit = 8 << 10
	// editsPerSecond are shared by all authors who changed something lately. One has an eighth of it at least, but all together at most
	// eight times as much: beyond 64 authors, each has less.
	editsPerSecond = 20 << 10
	leastShare     = 8
	// newFree and newPerSecond are for all new catalogues together.
	newFree      = 16 << 20
	newPerSecond = 160 << 10
	// oneGo is how long what a repository has generated may take to arrive: each catalogue is read once in that time.
	oneGo = 30 * time.Second
	// soonest is the shortest time to the pass that reads what waits.
	soonest = time.Second
)

// account is whose debt grows when a catalogue is read. New ones have one together, the empty one.
type account struct {
	author string
	// urgent is for edits that take versions out while the author owes too much for others.
	urgent bool
}

var newcomers account

// pace has what each author changed lately, so that one who changes much again and again holds up no other. Core catalogues are not
// paced.
type pace struct {
	debts  map[account]debt
	repaid time.Time
}

// debt is what was read on an account, less what time repaid.
type debt struct {
	bytes float64
	// since is when something was read last while the debt was small enough.
	since time.Time
}

// authors is on how many accounts of authors there is a debt.
func (p *pace) authors() int {
	if _, both := p.debts[newcomers]; both {
		return len(p.debts) - 1
	}
	return len(p.debts)
}

// perSecond is what time repays of a debt.
func (p *pace) perSecond(of account) float64 {
	if of == newcomers {
		return newPerSecond
	}
	authors := p.authors()
	return editsPerSecond / max(1, float64(min(authors, leastShare)), float64(authors)/leastShare)
}

// free is which debt makes nobody wait.
func (p *pace) free(of account) float64 {
	if of == newcomers {
		return newFree
	}
	return min(editsFree, allFree/float64(max(1, p.authors())))
}

// repay takes off what the time until now repays.
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

// wait is on which account a catalogue that is new or changed is read, and how long it is not to be; 0: it may be now. Before is what was
// read of it before, or nil. To take a version out is urgent.
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

// charge adds what a pass read, at its end: all that a pass finds of an author goes together.
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

// told says why a catalogue waits. All edits of that time get the same text.
func (p *pace) told(of account, wait time.Duration) string {
	what, whose := "its edit", fmt.Sprintf("catalogue %q, with all that is generated from it,", of.author)
	if of == newcomers {
		what, whose = "it is new, and", "all new catalogues together"
	}
	return fmt.Sprintf("%s waits until about %s: %s changed %.1f MiB within a short time, and %.1f KiB a second of that are read at present, "+
		"less while more authors change something; the seeds keep what they have until then",
		what, p.repaid.Add(wait).UTC().Format("15:04:05 UTC"), whose, p.debts[of].bytes/(1<<20), p.perSecond(of)/(1<<10))
}
