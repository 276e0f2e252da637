package gitcatalogue

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// mostUsed is how many removed versions a condition names; it counts all of them.
const mostUsed = 3

// used says, for an admin's approval, which of the removed versions installations have, by the distributor's last
// count. If something can't be read, that is reported and delays nothing.
func (r *Reconciler) used(ctx context.Context, f *facts) string {
	const unknown = "it is not known whether installations use the removed versions: "
	var all v1.AddonCatalogueList
	if err := r.cached.List(ctx, &all, client.InNamespace(f.object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return unknown + "the catalogues can't be listed"
	}
	var kept [2]corev1.ConfigMap
	for i, name := range []string{v1.ConfigMapUsage, v1.ConfigMapOwners} {
		err := r.direct.Get(ctx, client.ObjectKey{Namespace: f.object.Namespace, Name: name}, &kept[i])
		if client.IgnoreNotFound(err) != nil {
			return unknown + fmt.Sprintf("ConfigMap %q can't be read", name)
		}
	}
	owners, _ := catalogue.DecodeOwners(kept[1].Data)
	var usages []catalogue.SeedUsage
	for seed, encoded := range kept[0].Data {
		if usage, err := catalogue.DecodeUsage(seed, encoded); err == nil {
			usages = append(usages, usage)
		}
	}
	if len(usages) == 0 {
		return unknown + "no seed was counted yet"
	}
	return usedText(planWithdrawn(f, owners, all.Items), usages)
}

// planWithdrawn are the versions that no catalogue has after the plan.
func planWithdrawn(f *facts, owners catalogue.Owners, all []v1.AddonCatalogue) []catalogue.UsedVersion {
	before := v1.AddonCatalogueSpec{Type: f.object.Spec.Type}
	var remaining []catalogue.Offering
	for _, generated := range f.have {
		before.Addons = append(before.Addons, generated.Spec.Addons...)
	}
	for i := range f.plan.children {
		remaining = append(remaining, catalogue.Offering{Author: f.object.Name, Spec: &f.plan.children[i].spec})
	}
	for i := range all {
		other := &all[i]
		role := other.Labels[v1.LabelRole]
		counts := other.DeletionTimestamp == nil && (role == "" || role == v1.RoleGenerated)
		if counts && f.have[other.Name] == nil {
			remaining = append(remaining, catalogue.Offering{Author: catalogue.Author(other), Spec: &other.Spec})
		}
	}
	return catalogue.Withdrawn(owners, catalogue.Offering{Author: f.object.Name, Spec: &before}, remaining...)
}

// usedText names the versions that most installations have.
func usedText(gone []catalogue.UsedVersion, usages []catalogue.SeedUsage) string {
	type count struct {
		of            catalogue.UsedVersion
		installations int
	}
	var counts []count
	sum := 0
	for _, version := range gone {
		number := 0
		for _, usage := range usages {
			number += usage.Installations[version]
		}
		if number > 0 {
			counts, sum = append(counts, count{version, number}), sum+number
		}
	}
	seeds := text.Count(len(usages), "counted seed")
	if sum == 0 {
		return fmt.Sprintf("no installation on %s uses the removed versions", seeds)
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.installations, a.installations),
			cmp.Compare(a.of.Addon, b.of.Addon), catalogue.Compare(a.of.Version, b.of.Version))
	})
	var named []string
	for _, one := range counts {
		named = append(named, fmt.Sprintf("%d of %s %s", one.installations, one.of.Addon, cmp.Or(one.of.Version, "(no version chosen yet)")))
	}
	have := "use"
	if sum == 1 {
		have = "uses"
	}
	return fmt.Sprintf("%s on %s %s the removed versions (%s); nothing is uninstalled",
		text.Count(sum, "installation"), seeds, have, text.Names(named, mostUsed))
}
