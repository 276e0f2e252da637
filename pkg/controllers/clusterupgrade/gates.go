package clusterupgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/installation"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/upgrade"
)

// gates are the installations that upgrades of the cluster wait for.
func (r *Reconciler) gates(ctx context.Context, f *facts) loop.Outcome {
	list := &v1.AddonInstallationList{}
	if err := r.Client.List(ctx, list, cluster.InstallationsOf(f.cluster.Ref), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.cluster.Namespace, err))
	}
	for _, one := range cluster.OnlyOf(f.cluster.Ref, list.Items) {
		if !installation.MayGate(&one) {
			continue
		}
		entry, err := r.Marks.Entry(ctx, r.Client, client.ObjectKey{
			Namespace: r.Options.CatalogueNamespace, Name: string(one.Spec.AddonRef.Name),
		})
		if err != nil {
			return failed(fmt.Errorf("reading merged AddonCatalogue %q: %w", one.Spec.AddonRef.Name, err))
		}
		if entry == nil || entry.Addon.Slot == "" {
			continue
		}
		item, err := r.item(ctx, &one, f.cluster.Ref)
		if err != nil {
			return failed(err)
		}
		after, err := r.itemsAfter(ctx, &one, item, f.cluster)
		if err != nil {
			return failed(err)
		}
		f.seen.Gates = append(f.seen.Gates, r.gate(f.cluster, &one, after, entry))
	}
	slices.SortFunc(f.seen.Gates, func(a, b upgrade.Gate) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// item is what an installation is made from, before it was pinned: a pin says what is meant now, and
// not what is after an upgrade.
func (r *Reconciler) item(ctx context.Context, one *v1.AddonInstallation, of target.Ref) (v1.AddonReference, error) {
	item := v1.AddonReference{Name: one.Spec.AddonRef.Name}
	if one.Spec.AddonRef.Digest == "" {
		item.Version = one.Spec.AddonRef.Version
		return item, nil
	}
	if one.Labels[v1.LabelSet] == "" {
		return item, nil
	}
	found := &v1.AddonSet{}
	key := client.ObjectKey{Namespace: r.Options.CatalogueNamespace, Name: one.Labels[v1.LabelSet]}
	if err := r.Client.Get(ctx, key, found); client.IgnoreNotFound(err) != nil {
		return item, fmt.Errorf("reading the copy of AddonSet %q: %w", key.Name, err)
	}
	if !r.Marks.BelievesSet(found) {
		return item, nil
	}
	for _, has := range found.Spec.Addons {
		if of.NameOf(string(has.Name)) == one.Name {
			item.Version = has.AddonRef.Version
		}
	}
	return item, nil
}

// gate says how an installation stands for an upgrade. After are what it is made from after each of its
// steps.
func (r *Reconciler) gate(
	of target.Description, live *v1.AddonInstallation, after []v1.AddonReference, entry *catalogue.Entry,
) upgrade.Gate {
	meant := live.DeepCopy()
	asked := resolution.Request{
		Installation: meant, Installed: resolution.InstalledInStatus(live), Cluster: of, AllowPrereleases: r.Options.AllowPrereleases,
	}
	gate := upgrade.Gate{Name: live.Name, Bridges: true, Problem: installation.Lacks(live, of.KubernetesVersion, func(version string) bool {
		return entry.FitsKubernetes(version, catalogue.Platform{K8sVersion: of.KubernetesVersion})
	})}
	gate.Right = gate.Problem == ""
	if of.Upgrade == nil || !of.Upgrade.IsPending() {
		return gate
	}
	find := func(string) *catalogue.Entry { return entry }
	for i, next := range of.Upgrade.Plan {
		meant.Spec.AddonRef = after[i]
		if finding := resolution.CheckUpgrade(find, []resolution.Request{asked}, next)[0]; finding.Outcome == resolution.OutcomeBreaks {
			gate.Breaks, gate.Problem = true, finding.Message
			return gate
		}
	}
	meant.Spec.AddonRef = after[0]
	choice, refusal := asked.Choose(entry)
	next := catalogue.Platform{K8sVersion: of.Upgrade.Plan[0], AllowPrereleases: r.Options.AllowPrereleases}
	if refusal != nil || !entry.FitsKubernetes(choice.Version.Version, next) {
		return gate // no version fits both sides
	}
	switch isThere := catalogue.Key(live.Status.Version) == catalogue.Key(choice.Version.Version); {
	case !isThere:
		gate.Bridges, gate.Problem = false, "goes to "+choice.Version.Version
	case !installation.IsReady(live):
		gate.Bridges = false
	}
	return gate
}
