package addonset

import (
	"encoding/json"
	"regexp"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Bounds of annotation deviations of a Cluster, whose owner writes it.
const (
	maxDeviationsBytes = 8 << 10
	maxDeviations      = 32
	maxBy              = 64
	maxWhy             = 200
)

// version is the format of a pinned version.
var version = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

// Deviation says how one Cluster differs from an item of a set.
type Deviation struct {
	// Set is the name of a set; empty: any set with the item.
	Set string `json:"set"`
	// Item is the name of the item.
	Item string `json:"item"`
	// OptOut leaves the item out of the cluster.
	OptOut bool `json:"optOut"`
	// Version pins the item to an exact version.
	Version string `json:"version"`
	// By is who decided it, and Why the reason, in the words of the Cluster's owner.
	By  string `json:"by"`
	Why string `json:"why"`
}

// IsNone reports whether there is no deviation.
func (d Deviation) IsNone() bool { return d.Item == "" }

// ReadDeviations reads annotation deviations of a Cluster. Entries that can't be used have no effect, and an annotation beyond the bounds
// has none at all.
func ReadDeviations(value string) (read []Deviation) {
	if value == "" || len(value) > maxDeviationsBytes {
		return nil
	}
	var entries []json.RawMessage
	if json.Unmarshal([]byte(value), &entries) != nil || len(entries) > maxDeviations {
		return nil
	}
	for _, entry := range entries {
		var one Deviation
		if json.Unmarshal(entry, &one) != nil {
			continue
		}
		one.By, one.Why = text.Cut(text.Line(one.By), maxBy), text.Cut(text.Line(one.Why), maxWhy)
		isPin := version.MatchString(one.Version)
		if one.Item == "" || one.By == "" || one.Why == "" || one.OptOut == (one.Version != "") || !one.OptOut && !isPin {
			continue
		}
		read = append(read, one)
	}
	return read
}

// DeviationOf is the first deviation from an item of a set; IsNone if there is none.
func DeviationOf(all []Deviation, set, item string) Deviation {
	for _, one := range all {
		if one.Item == item && (one.Set == "" || one.Set == set) {
			return one
		}
	}
	return Deviation{}
}
