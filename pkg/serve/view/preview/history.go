package preview

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/values"
)

// History has the revisions of an installation that are on record, and the values in force. It is JSON of the query endpoint.
type History struct {
	// Revisions begin with the newest one.
	Revisions []Revision `json:"revisions"`
	// Values are those that the newest revision was rendered with, by path.
	Values []Value `json:"values"`
	// Masked says why no values of leaves are shown; "" if they are.
	Masked string `json:"masked,omitempty"`
	// Truncated says that values are left out, since there are too many.
	Truncated bool `json:"truncated,omitempty"`
}

// Revision is one revision, with what differs from the one before.
type Revision struct {
	Revision int `json:"revision"`
	// State is intent until all objects are applied.
	State   string      `json:"state"`
	Addon   string      `json:"addon"`
	Version string      `json:"version"`
	Time    metav1.Time `json:"time"`
	// RollbackTo is the revision whose objects this one has; 0: it is no rollback.
	RollbackTo int `json:"rollbackTo,omitempty"`
	// Counts are the numbers of objects by action; nil: the revision before is no longer on record, so nothing is compared.
	Counts *Counts `json:"counts,omitempty"`
	// Objects are those that differ, without their leaves, and Values the values that differ.
	Objects []Object `json:"objects,omitempty"`
	Values  []Change `json:"values,omitempty"`
	// Masked says why no values of leaves are shown; "" if they are.
	Masked string `json:"masked,omitempty"`
	// Truncated says that objects or values are left out, since there are too many.
	Truncated bool `json:"truncated,omitempty"`
}

// Side is a revision that is compared.
type Side struct {
	Objects []Rendered
	Values  map[string]any
}

// mostDiffering bounds the objects and the values of a revision that differ.
const mostDiffering = 200

// AddValues adds the values in force with their layers.
func (h *History) AddValues(merged map[string]any, origins values.Origins, shown Shown) {
	var made Preview
	made.AddValues(merged, origins, shown)
	h.Values, h.Masked, h.Truncated = append([]Value{}, made.Values...), made.Masked, made.Truncated
}

// AddDifferences compares two revisions.
func (r *Revision) AddDifferences(was, is Side, shown Shown) {
	var made Preview
	made.AddObjects(was.Objects, is.Objects, shown)
	r.Counts, r.Masked = &made.Counts, made.Masked
	for _, one := range made.Objects {
		if one.Action == ActionSame {
			continue
		}
		if one.Changes = nil; len(r.Objects) < mostDiffering {
			r.Objects = append(r.Objects, one)
		} else {
			r.Truncated = true
		}
	}
	left := mostDiffering
	found := differences{shown: shown, left: &left}
	found.compare(was.Values, is.Values, nil)
	r.Values, r.Truncated = found.changes, r.Truncated || left < 0
}
