package addoninstallation

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/installer"
)

// healthOf is what a record has of how a version is judged: under another name of the add-on, its Lease
// has the name that it had.
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

// isUnwatched says that the installed version asks for no judgement of its health.
func isUnwatched(pass *installer.Pass) bool {
	record := pass.Record()
	return record != nil && record.Health != nil && record.Health.Mode == kubermaticv1.HealthUnwatched
}

// wellBy is what condition Healthy says where it is True.
func wellBy(pass *installer.Pass) (reason, message string) {
	if isUnwatched(pass) {
		return kubermaticv1.ReasonNotWatched, "the version asks that nobody judges its health"
	}
	return kubermaticv1.ReasonHealthy, ""
}

// projectHealth says how the objects are where the pass ended with another condition. While a
// revision is on its way, what was seen of the one before says nothing.
func projectHealth(installation *kubermaticv1.AddonInstallation, pass *installer.Pass, result verdict) {
	list, generation := &installation.Status.Conditions, installation.Generation
	if result.done || result.condition == kubermaticv1.ConditionHealthy {
		return
	}
	record := pass.Record()
	switch {
	case pass.IsHealthy():
		reason, message := wellBy(pass)
		conditions.True(list, generation, kubermaticv1.ConditionHealthy, reason, message)
	case pass.Health != nil:
		conditions.Set(list, verdictOf(outcomeOf(pass.Unhealthy())).as(kubermaticv1.ConditionHealthy, generation))
	case record != nil && !record.IsApplied() && meta.FindStatusCondition(*list, kubermaticv1.ConditionHealthy) != nil:
		conditions.Set(list, metav1.Condition{
			Type: kubermaticv1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: kubermaticv1.ReasonProgressing,
			ObservedGeneration: generation, Message: fmt.Sprintf("version %q is not applied to its end", record.Version),
		})
	}
}
