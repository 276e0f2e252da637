package revision

import (
	"slices"

	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Limits of a record, on writing and on reading.
const (
	maxEntries = 5 * ownership.MaxObjects
	maxHooks   = ownership.MaxObjects
	// maxPieces of values, lists and maps: entries and hooks, and twice the values, of 256 KiB.
	maxPieces = 1 << 20
	// maxLevels of nesting; objects have 256 at most.
	maxLevels = 512
)

// answeredEach and answeredBase are the bytes that answers may add, for each entry and in total, in addition to fieldsets.PerByte.
const (
	answeredEach = 512
	answeredBase = 64 << 10
)

// bound refuses a record that is too large for the rendered objects, and drops unneeded fields.
func (r *Record) bound() error {
	name := headName(r.Owner(), r.Revision)
	tooMany := func(what string, have, most int) error {
		return &TooLargeError{Secret: name, Installation: r.Installation, What: what, Have: have, Max: most}
	}
	r.Superseded, r.Shared = withoutFields(r.Superseded), withoutFields(r.Shared)
	answered, explained := r.answered(), r.explained()
	switch entries := len(r.Inventory) + len(r.Superseded) + len(r.Shared); {
	case r.Revision > highestRevision:
		return tooMany("as its revision number", r.Revision, highestRevision)
	case entries > maxEntries:
		return tooMany("objects of this and earlier revisions", entries, maxEntries)
	case len(r.Hooks) > maxHooks:
		return tooMany("hooks", len(r.Hooks), maxHooks)
	case answered > explained:
		return &GrowthError{Secret: name, Installation: r.Installation, Have: answered, Max: explained}
	}
	return nil
}

func withoutFields(inventory ownership.Inventory) ownership.Inventory {
	if !slices.ContainsFunc(inventory, func(entry ownership.Entry) bool { return len(entry.Fields) > 0 }) {
		return inventory
	}
	bare := slices.Clone(inventory)
	for i := range bare {
		bare[i].Fields = nil
	}
	return bare
}

// answered counts bytes from the user cluster. An intent's fields are of earlier revisions.
func (r *Record) answered() int {
	sum := len(r.HooksState.Failed)
	for i := range r.Inventory {
		sum += len(r.Inventory[i].UID)
		if r.State == StateApplied {
			sum += len(r.Inventory[i].Fields)
		}
	}
	for _, entry := range slices.Concat(r.Superseded, r.Shared) {
		sum += len(entry.UID)
	}
	for _, hook := range r.Hooks {
		if hook.Run != nil {
			sum += len(hook.Run.UID)
		}
	}
	if r.Rollback != nil {
		sum += len(r.Rollback.Problem)
	}
	if r.Helm != nil {
		sum += len(r.Helm.Description)
	}
	return sum
}

func (r *Record) explained() int {
	sent := 0
	for _, object := range r.Objects {
		sent += len(object)
	}
	for i := range r.Hooks {
		sent += len(r.Hooks[i].Object)
	}
	return answeredBase + fieldsets.PerByte*sent + answeredEach*(len(r.Inventory)+len(r.Superseded)+len(r.Shared)+len(r.Hooks))
}
