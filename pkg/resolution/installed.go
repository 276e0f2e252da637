package resolution

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// InstalledOnRecord is the installed version: what the user cluster has of an add-on by an
// installation's newest record, "" for nothing of it. An intent that was not carried out to its end
// installed nothing: the version before it counts.
func InstalledOnRecord(record *revision.Record, addon string) string {
	switch {
	case record == nil || record.Addon != addon:
		return ""
	case record.State == revision.StateApplied:
		return record.Version
	}
	return record.From
}

// InstalledInStatus is the same for those who have no record: the controller writes it into
// status.version after each pass, with lastApplied, which tells of which add-on. It is behind the
// record while a pass is under way.
func InstalledInStatus(installation *v1.AddonInstallation) string {
	applied := installation.Status.LastApplied
	switch {
	case applied == nil:
		return ""
	case applied.Addon == "": // written by an earlier release, which showed in status.version what was resolved
		return applied.Version
	case applied.Addon != string(installation.Spec.AddonRef.Name):
		return ""
	}
	return installation.Status.Version
}
