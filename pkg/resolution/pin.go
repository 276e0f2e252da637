package resolution

import (
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// ContentGoneError says that the catalogue has other content under a version than the one that
// addonRef.digest names.
type ContentGoneError struct {
	Addon, Version string
	// Meant and Present are content digests (catalogue.Origin).
	Meant, Present string
}

// Reason is one of condition Compatible.
func (e *ContentGoneError) Reason() string { return v1.ReasonContentGone }

func (e *ContentGoneError) Error() string {
	return fmt.Sprintf("version %q of add-on %q has other content in the catalogue than addonRef.digest names, and that is not installed: "+
		"set the digest to %q, or choose another version", e.Version, e.Addon, e.Present)
}

// Pinned is what Compatible says where the content that is meant is on record.
func (e *ContentGoneError) Pinned() string {
	return fmt.Sprintf("version %q of add-on %q has other content in the catalogue: what is applied is kept reconciled from its record, and "+
		"changes wait; set addonRef.digest to %q to have it", e.Version, e.Addon, e.Present)
}

// isPinnedTo says whether an installation may have content of a version that it gets.
func (r Request) isPinnedTo(content string) bool {
	digest := r.Installation.Spec.AddonRef.Digest
	return digest == "" || digest == content
}

// OnRecord says of a refused choice that the record has what is asked for, an exact version, and
// why nothing else has; "" where it has not. Entry is nil if the catalogue has none.
func (r Request) OnRecord(record *revision.Record, entry *catalogue.Entry, refusal catalogue.Refusal) revision.Gone {
	wanted := r.Installation.Spec.AddonRef.Version
	switch {
	case record == nil || record.Skipped > 0 || record.Addon != r.addon():
		return ""
	case wanted == "" || catalogue.IsRange(wanted) || catalogue.Key(record.Version) != catalogue.Key(wanted):
		return ""
	case !r.isPinnedTo(record.Content):
		return ""
	}
	if _, isGone := errors.AsType[*ContentGoneError](refusal); isGone {
		return revision.GoneContent
	}
	if r.isWithdrawn(entry) {
		return revision.GoneVersion
	}
	return ""
}

// isWithdrawn says that the catalogue has nothing under the version that is asked for. One that
// core installations are to leave, or that others may not have any more, is not withdrawn: nobody
// is to get more of it.
func (r Request) isWithdrawn(entry *catalogue.Entry) bool {
	if entry == nil {
		return true
	}
	if entry.Type == v1.CatalogueCore && !r.Installation.Spec.CoreAddon || entry.Type != v1.CatalogueCore && r.isRuled() {
		return false
	}
	wanted := r.Installation.Spec.AddonRef.Version
	version, _ := entry.Version(wanted)
	return version == nil && !entry.Left(wanted)
}
