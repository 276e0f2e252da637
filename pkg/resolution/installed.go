package resolution

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// InstalledOnRecord is the add-on's version in the user cluster by the newest record, "" for none.
// An unfinished intent installed nothing: the version before it counts.
func InstalledOnRecord(record *revision.Record, addon string) string {
	switch {
	case record == nil || record.Addon != addon:
		return ""
	case record.State == revision.StateApplied:
		return record.Version
	}
	return record.From
}

// InstalledInStatus is the same without a record, from status.version and lastApplied, which the
// controller writes after each pass. It is behind the record during a pass.
func InstalledInStatus(installation *v1.AddonInstallation) string {
	applied := installation.Status.LastApplied
	if applied == nil || applied.Addon != string(installation.Spec.AddonRef.Name) {
		return ""
	}
	return installation.Status.Version
}
