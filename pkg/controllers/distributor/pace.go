package distributor

import (
	"fmt"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// How fast Custom catalogues are read, in bytes as catalogue.Weigh counts them (ADR 123).
const (
	// editsFree is what an author may change before an edit waits.
	editsFree = 512 << 10
	// leastEdit is what an edit counts at least: it is written to all seeds, and to clusters, however small it is.
	leastEdit = 8 << 10
	// editsPerSecond are shared by all authors who changed something lately. One has an eighth of it at least.
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

// newcomers have a debt together: no catalogue has this name.
const newcomers = ""

// pace has what each author changed lately, so that one who changes much again and again holds up no other. Core catalogues are not
// paced.
type pace struct {
	debts  map[string]debt
	repaid time.Time
}

// debt is what was read of an author, less what time repaid.
type debt struct {
	bytes float64
	// since is when something was read last while the debt was small enough.
	since time.Time
}

// perSecond is what time repays of an author's debt.
func (p *pace) perSecond(author string) float64 {
	if author == newcomers {
		return newPerSecond
	}
	authors := len(p.debts)
	if _, both := p.debts[newcomers]; both {
		authors--
	}
	return editsPerSecond / float64(max(1, min(authors, leastShare)))
}

// repay takes off what the time until now repays.
func (p *pace) repay(now time.Time) {
	left := make(map[string]debt, len(p.debts))
	for author, owed := range p.debts {
		owed.bytes -= max(0, now.Sub(p.repaid).Seconds()) * p.perSecond(author)
		if owed.bytes > 0 {
			left[author] = owed
		}
	}
	p.debts, p.repaid = left, now
}

// wait is how long a catalogue that is new or changed is not to be read; 0: it may be now. Before is what was read of it before, or nil.
func (p *pace) wait(object *v1.AddonCatalogue, before *reading) time.Duration {
	if object.Spec.Type == v1.CatalogueCore {
		return 0
	}
	payer := payerOf(object, before)
	owed, free := p.debts[payer], freeOf(payer)
	_, versions := catalogue.Size(&object.Spec)
	switch {
	case payer == newcomers:
	case before.readAt.Before(owed.since) && p.repaid.Sub(owed.since) < oneGo:
		return 0
	case max(1, int(versions)) < before.weight.Versions: // once more than what was read: to take a version out is urgent
		free += float64(before.weight.Bytes)
	}
	if owed.bytes <= free {
		return 0
	}
	seconds := (owed.bytes - free) / p.perSecond(payer)
	return max(soonest, time.Duration(seconds*float64(time.Second))+time.Millisecond) // rounded up
}

// charge adds what a pass read, at its end: all that a pass finds of an author goes together.
func (p *pace) charge(read []*reading) {
	for _, found := range read {
		if found.weight.Bytes == 0 || found.object.Spec.Type == v1.CatalogueCore {
			continue
		}
		owed := p.debts[found.payer]
		if owed.bytes <= freeOf(found.payer) {
			owed.since = p.repaid
		}
		owed.bytes += float64(max(found.weight.Bytes, leastEdit))
		p.debts[found.payer] = owed
	}
}

func freeOf(payer string) float64 {
	if payer == newcomers {
		return newFree
	}
	return editsFree
}

// payerOf is the author whose debt grows when a catalogue is read.
func payerOf(object *v1.AddonCatalogue, before *reading) string {
	if before == nil || before.readAt.IsZero() {
		return newcomers
	}
	return catalogue.Author(object)
}

// told says why a catalogue waits. All edits of that time get the same text.
func (p *pace) told(object *v1.AddonCatalogue, before *reading, wait time.Duration) string {
	payer := payerOf(object, before)
	what, perSecond, whose := "its edit", editsPerSecond, fmt.Sprintf("catalogue %q, with all that is generated from it,", payer)
	if payer == newcomers {
		what, perSecond, whose = "it is new, and", newPerSecond, "all new catalogues together"
	}
	return fmt.Sprintf("%s waits until about %s: %s changed %.1f MiB within a short time, and %d KiB a second are read at most, shared by "+
		"all who change something; the seeds keep what they have until then", what, p.repaid.Add(wait).UTC().Format("15:04:05 UTC"), whose,
		p.debts[payer].bytes/(1<<20), perSecond>>10)
}
