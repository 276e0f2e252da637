package addonset

import (
	"fmt"
	"strconv"
	"strings"
)

// InvalidError says that a set can't be used, and why.
type InvalidError struct{ Why error }

func (e *InvalidError) Error() string { return e.Why.Error() }

// Unwrap is the reason.
func (e *InvalidError) Unwrap() error { return e.Why }

// FieldError is a problem of one field of a set.
type FieldError struct {
	// Place is the path of the field, with the names of the items in it: spec.addons[0] ("web").values.
	Place string
	// Problem says what is wrong, and how to fix it.
	Problem string
}

func (e *FieldError) Error() string { return e.Place + ": " + e.Problem }

// CycleError says that items wait for each other.
type CycleError struct {
	// Items are in the order of their dependsOn; the last one depends on the first.
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
	return "spec.addons: dependsOn has a cycle, so that these items would never be installed: " + strings.Join(names, " after ") +
		": remove one of the dependencies"
}

// TooLargeError says that a spec is too large to be copied to the seeds.
type TooLargeError struct{ Have, Max int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("spec has %d bytes, at most %d are allowed: split the set, or move values to the catalogue or to Secrets",
		e.Have, e.Max)
}
