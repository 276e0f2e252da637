package resolution

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// InstalledOnRecord is the add-on's version in the user cluster according to the newest record, "" for none. An
// unfinished intent installed nothing: the version before it counts.
func InstalledOnRecord(record *revision.Record, addon string) string {
	switch {
	case record == nil || record.Addon != addon:
		return ""
	case record.State == revision.StateApplied:
		return record.Version
	}
	return record.From
}

// InstalledInStatus is the same without a record, from status.version and lastApplied, which the controller writes
// after each reconciliation. It is older than the record during a reconciliation.
func InstalledInStatus(installation *v1.AddonInstallation) string {
	applied := installation.Status.LastApplied
	if applied == nil || applied.Addon != string(installation.Spec.AddonRef.Name) {
		return ""
	}
	return installation.Status.Version
}
