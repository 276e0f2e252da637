package addonset

import (
	"fmt"
	"strconv"
	"strings"
)

// FieldError says what is wrong with one field of a set.
type FieldError struct {
	// Place leads to the field, with the names of the items on the way: spec.addons[0] ("web").values.
	Place string
	// Problem says what is wrong, and what to do.
	Problem string
}

func (e *FieldError) Error() string { return e.Place + ": " + e.Problem }

// CycleError says that items wait for each other.
type CycleError struct {
	// Items in the order of their dependsOn; the last one depends on the first.
	Items []string
}

const cycleShown = 8

func (e *CycleError) Error() string {
	var names []string
	for i, name := range e.Items {
		if i == cycleShown {
			names = append(names, fmt.Sprintf("%d more", len(e.Items)-cycleShown))
			break
		}
		names = append(names, strconv.Quote(name))
	}
	names = append(names, strconv.Quote(e.Items[0]))
	return "spec.addons: dependsOn goes in a circle, which would wait for ever: " + strings.Join(names, " after ") +
		": take one of them out"
}

// TooLargeError says that a spec is too large to be copied to the seeds.
type TooLargeError struct{ Have, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("spec has %d bytes, at most %d are taken: split the set, or move values to the catalogue or to Secrets",
		e.Have, e.Max)
}
