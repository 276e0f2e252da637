package addoninstallation

import (
	"cmp"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/installer"
)

// healthOf are a version's health rules for the record. Under another name of the add-on, its Lease keeps the previous
// name.
func healthOf(template *kubermaticv1.Template, addon string) *kubermaticv1.HealthCheck {
	check := template.Health.DeepCopy()
	if check != nil && check.Mode == kubermaticv1.HealthByLease {
		if check.Lease == nil {
			check.Lease = &kubermaticv1.HealthLease{}
		}
		check.Lease.Name = cmp.Or(check.Lease.Name, addon)
	}
	return check
}

// isUnwatched says that the installed version opts out of health checks.
func isUnwatched(run *installer.Run) bool {
	record := run.Record()
	return record != nil && record.Health != nil && record.Health.Mode == kubermaticv1.HealthUnwatched
}

// wellBy are reason and message of condition Healthy if it is True.
func wellBy(run *installer.Run) (reason, message string) {
	if isUnwatched(run) {
		return kubermaticv1.ReasonNotWatched, "the version turns health checks off"
	}
	return kubermaticv1.ReasonHealthy, ""
}
