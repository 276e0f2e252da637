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
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// report hands over what the pass found out about each catalogue, and which seeds there are.
func (r *Reconciler) report(_ context.Context, f *facts) loop.Outcome {
	parts := contributionsOf(f)
	findings := make(map[types.UID]report.Findings, len(f.readings))
	for _, reading := range f.readings {
		findings[reading.object.UID] = findingsOf(reading, parts[reading.object.UID], f.secretProblems)
	}
	seeds := make([]string, 0, len(f.targets))
	for _, to := range f.targets {
		seeds = append(seeds, to.Name)
	}
	r.reporter.Passed(findings, seeds)
	r.usage.Only(seeds)
	return nil
}

func findingsOf(reading *reading, part *contribution, secretProblems map[string]string) report.Findings {
	object := reading.object
	found := report.Findings{
		Name: client.ObjectKeyFromObject(object), Generation: object.Generation,
		Kept: reading.refusal != nil && reading.source != nil, Leave: reading.leave, SecretProblems: map[string]string{},
	}
	if reading.parent() != "" {
		found.Parent = metav1.GetControllerOf(object).Name
	}
	if reading.leaveProblem != nil {
		found.LeaveProblem = reading.leaveProblem.Error()
	}
	if reading.refusal != nil {
		found.Reason, found.Refusal = reading.reason, reading.refusal.Error()
	}
	if part == nil {
		return found
	}
	found.Digests, found.Secrets = part.digests, part.secrets
	found.TooLarge, found.Conflicts = slices.Sorted(slices.Values(part.tooLarge)), part.sortedConflicts()
	for _, name := range part.secrets {
		if problem := secretProblems[name]; problem != "" {
			found.SecretProblems[name] = problem
		}
	}
	return found
}

// contribution is the part that one catalogue has in the merge; that of a catalogue in git is the
// sum of what was generated from it.
type contribution struct {
	digests   map[string]string
	secrets   []string
	tooLarge  []string
	conflicts []v1.CatalogueConflict
}

func contributionsOf(f *facts) map[types.UID]*contribution {
	parts := map[types.UID]*contribution{}
	part := func(uid types.UID) *contribution {
		if parts[uid] == nil {
			parts[uid] = &contribution{digests: map[string]string{}}
		}
		return parts[uid]
	}
	for name, addon := range f.merged.Addons {
		secrets := namedBy(&addon.Spec)
		for _, uid := range addon.Contributors {
			part(uid).digests[name] = addon.Digest
			part(uid).secrets = append(part(uid).secrets, secrets...)
		}
	}
	for _, refused := range f.merged.Refused {
		for _, uid := range refused.Contributors {
			part(uid).tooLarge = append(part(uid).tooLarge, refused.Error())
		}
	}
	for uid, conflicts := range f.merged.Conflicts {
		part(uid).conflicts = conflicts
	}
	for _, reading := range f.readings {
		if child, parent := parts[reading.object.UID], reading.parent(); child != nil && parent != "" {
			part(parent).add(child)
		}
	}
	return parts
}

func (c *contribution) add(child *contribution) {
	maps.Copy(c.digests, child.digests)
	c.secrets = slices.Concat(c.secrets, child.secrets)
	c.tooLarge = slices.Concat(c.tooLarge, child.tooLarge)
	c.conflicts = slices.Concat(c.conflicts, child.conflicts)
}

// sortedConflicts are in an order that does not depend on that of the parts.
func (c *contribution) sortedConflicts() []v1.CatalogueConflict {
	return slices.SortedStableFunc(slices.Values(c.conflicts), func(a, b v1.CatalogueConflict) int {
		return cmp.Compare(a.Addon, b.Addon)
	})
}
