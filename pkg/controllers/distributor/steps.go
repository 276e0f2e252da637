package distributor

import (
	"context"
	"time"

	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// pass is what one pass knows; each step adds to it.
type pass struct {
	// readings are all catalogues that somebody wrote, or that were generated.
	readings []*reading
	merged   catalogue.Merged
	// changes are versions that were merged before with other content.
	changes []catalogue.Change
	secrets wantedSecrets
	// leave are the versions of core add-ons that clusters are to leave.
	leave   catalogue.Leave
	targets []target
	// lookAgain is when to make the next pass without being asked; 0: never.
	lookAgain time.Duration
	// troubles are failures that don't hold the pass up.
	troubles []error
}

// held are the catalogues, by name, whose content can't be told at present.
func (p *pass) held() map[string]bool {
	held := map[string]bool{}
	for _, reading := range p.readings {
		if reading.isHeld() {
			held[reading.object.Name] = true
		}
	}
	return held
}

// trouble notes a failure that does not hold the pass up.
func (p *pass) trouble(err error) {
	if err != nil {
		p.troubles = append(p.troubles, err)
	}
}

// step is one step of a pass. An error ends the pass and has it tried again.
type step struct {
	name string
	run  func(ctx context.Context, p *pass) error
}

func (r *Reconciler) steps() []step {
	return []step{
		{"read", r.read},         // catalogues become sources, invalid ones by their last valid spec
		{"leave", r.leave},       // which versions of core add-ons clusters are to leave
		{"remember", r.remember}, // keep last valid specs, before they are on any seed
		{"merge", r.merge},       // all sources become one catalogue
		{"tell", r.tell},         // say which versions have other content than before
		{"hand on", r.handOn},    // find the Secrets that go along
		{"discover", r.discover}, // find the seeds and the way to them
		{"dispatch", r.dispatch}, // tell every seed's worker, and the board
		{"tidy", r.tidy},         // drop specs that are not the last valid ones any more
	}
}

// merger remembers the last merge: most passes come for a Seed or a Secret and find the same sources.
type merger struct {
	sources []*catalogue.Source
	merged  catalogue.Merged
}

func (r *Reconciler) merge(_ context.Context, p *pass) error {
	var sources []*catalogue.Source
	for _, reading := range p.readings {
		if reading.source != nil {
			sources = append(sources, reading.source)
		}
	}
	if r.merger.merged.Addons == nil || !sameSources(r.merger.sources, sources) {
		before := r.merger.merged
		r.merger.sources, r.merger.merged = sources, catalogue.Merge(sources)
		p.changes = catalogue.Changes(before, r.merger.merged)
	}
	p.merged = r.merger.merged
	return nil
}

// sameSources compares by identity: a source is made anew when its catalogue changes, and only then.
func sameSources(a, b []*catalogue.Source) bool {
	if len(a) != len(b) {
		return false
	}
	seen := make(map[*catalogue.Source]bool, len(a))
	for _, source := range a {
		seen[source] = true
	}
	for _, source := range b {
		if !seen[source] {
			return false
		}
	}
	return true
}
