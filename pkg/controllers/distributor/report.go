package distributor

import (
	"cmp"
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
)

// report records the findings about each catalogue, and which seeds exist.
func (r *Reconciler) report(_ context.Context, f *facts) *loop.Outcome {
	parts := partsOf(f)
	findings := make(map[types.UID]report.Findings, len(f.readings))
	for _, reading := range f.readings {
		found := &report.Findings{}
		if part := parts[reading.object.UID]; part != nil {
			found = part
		}
		complete(found, reading, f.secretProblems)
		found.NotAllowed, found.SecretWarnings = f.notAllowed[reading.object.UID], f.warnings[reading.object.UID]
		findings[reading.object.UID] = *found
	}
	seeds := make([]string, 0, len(f.targets))
	for _, to := range f.targets {
		seeds = append(seeds, to.Name)
	}
	r.reporter.Passed(findings, seeds)
	r.usage.Only(seeds)
	r.checkers.Only(seeds)
	return nil
}

// complete adds the facts about the catalogue itself to its part in the merge.
func complete(found *report.Findings, reading *reading, secretProblems map[string]string) {
	object := reading.object
	found.Name, found.Generation, found.Read = client.ObjectKeyFromObject(object), object.Generation, object.Generation
	if reading.waits != "" {
		found.Read, found.Waits = reading.generation, reading.waits
	}
	found.Kept, found.Leave = reading.refusal != nil && reading.source != nil, reading.leave
	if reading.parent() != "" {
		found.Parent = metav1.GetControllerOf(object).Name
	}
	if reading.leaveProblem != nil {
		found.LeaveProblem = reading.leaveProblem.Error()
	}
	if reading.refusal != nil {
		found.Reason, found.Refusal = reading.reason, reading.refusal.Error()
	}
	slices.Sort(found.TooLarge)
	slices.SortStableFunc(found.Conflicts, func(a, b v1.CatalogueConflict) int { // the list may be cut, and these matter (see addLeftOut)
		return cmp.Or(cmp.Compare(ownedFirst(a), ownedFirst(b)), cmp.Compare(a.Addon, b.Addon))
	})
	found.SecretProblems = map[string]string{}
	for _, name := range found.Secrets {
		if problem := secretProblems[name]; problem != "" {
			found.SecretProblems[name] = problem
		}
	}
}

// ownedFirst is less for add-ons of other owners.
func ownedFirst(conflict v1.CatalogueConflict) int {
	if conflict.Reason == v1.ReasonOwnedByOther {
		return 0
	}
	return 1
}

// partsOf are the catalogues' parts in the merge; one in git has the parts of its generated ones.
func partsOf(f *facts) map[types.UID]*report.Findings {
	parts := map[types.UID]*report.Findings{}
	part := func(uid types.UID) *report.Findings {
		if parts[uid] == nil {
			parts[uid] = &report.Findings{Digests: map[string]string{}}
		}
		return parts[uid]
	}
	for name, addon := range f.merged.Addons {
		secrets := catalogue.SecretNames(&addon.Spec)
		for _, uid := range addon.Contributors {
			part(uid).Digests[name] = addon.Digest
			part(uid).Secrets = append(part(uid).Secrets, secrets...)
		}
	}
	for _, refused := range f.merged.Refused {
		message := refused.Error()
		if !refused.IsOfNames() {
			message += "; the seeds keep the last valid one"
		}
		for _, uid := range refused.Contributors {
			part(uid).TooLarge = append(part(uid).TooLarge, message)
		}
	}
	for uid, noSpace := range f.merged.Beyond {
		part(uid).TooLarge = append(part(uid).TooLarge, noSpace.Error())
	}
	for _, reading := range f.readings {
		if sources := f.sources[reading.object.Name]; len(sources) > 0 {
			part(reading.object.UID).Sources = slices.Clone(sources)
		}
	}
	for uid, conflicts := range f.merged.Conflicts {
		part(uid).Conflicts = slices.Clone(conflicts)
	}
	addToParents(f, parts, part)
	return parts
}

// addToParents adds the findings of generated catalogues to their catalogue in git.
func addToParents(f *facts, parts map[types.UID]*report.Findings, part func(types.UID) *report.Findings) {
	for _, reading := range f.readings {
		child, parent := parts[reading.object.UID], reading.parent()
		if parent != "" && reading.waits != "" && (part(parent).Waits == "" || reading.waits < part(parent).Waits) {
			part(parent).Waits = reading.waits // one of them, in any order
		}
		if parent != "" && reading.reason == v1.ReasonTooLarge {
			part(parent).TooLarge = append(part(parent).TooLarge, reading.refusal.Error())
		}
		if child != nil && parent != "" {
			whole := part(parent)
			maps.Copy(whole.Digests, child.Digests)
			whole.Secrets = slices.Concat(whole.Secrets, child.Secrets)
			whole.TooLarge = slices.Concat(whole.TooLarge, child.TooLarge)
			whole.Sources = slices.Concat(whole.Sources, child.Sources)
			whole.Conflicts = slices.Concat(whole.Conflicts, child.Conflicts)
		}
	}
}
