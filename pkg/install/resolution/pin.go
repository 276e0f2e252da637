package resolution

import (
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// ContentGoneError reports that the catalogue's version has other content than addonRef.digest names.
type ContentGoneError struct {
	Addon, Version string
	// Meant is the pinned and Present the current content digest (catalogue.Origin).
	Meant, Present string
}

// Reason is a reason of condition Compatible.
func (e *ContentGoneError) Reason() string { return v1.ReasonContentGone }

func (e *ContentGoneError) Error() string {
	return fmt.Sprintf("addonRef.digest matches neither the catalogue's version %q of add-on %q nor the installed content: set it to %q, "+
		"or choose another version", e.Version, e.Addon, e.Present)
}

// Pinned is the message of Compatible if the pinned content is on record.
func (e *ContentGoneError) Pinned() string {
	return fmt.Sprintf("addonRef.digest does not match the catalogue's version %q of add-on %q: the applied revision stays, and changes "+
		"wait; to update, set it to %q", e.Version, e.Addon, e.Present)
}

// isPinnedTo reports whether an installation may have this content of a version.
func (r Request) isPinnedTo(content string) bool {
	digest := r.Installation.Spec.AddonRef.Digest
	return digest == "" || digest == content
}

// OnRecord is the reason why, after a refused choice, only the record has the requested exact version; "" if it does
// not have it. Entry is nil if the catalogue has none.
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

// isWithdrawn reports that the catalogue does not have the requested version. A version that core installations have
// to leave, or that others may no longer have, is not withdrawn: it must not be installed again.
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
