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
	from := r.originsIn(ctx, f.cluster)
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
		gate, err := r.gate(ctx, from, &one, entry)
		if err != nil {
			return failed(err)
		}
		f.seen.Gates = append(f.seen.Gates, gate)
	}
	slices.SortFunc(f.seen.Gates, func(a, b upgrade.Gate) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// gate says how an installation stands for an upgrade: for what the control plane has and, where one
// is pending, for what it is to get.
func (r *Reconciler) gate(ctx context.Context, from origins, live *v1.AddonInstallation, entry *catalogue.Entry) (upgrade.Gate, error) {
	of := from.of
	gate := upgrade.Gate{Name: live.Name, Bridges: true, Problem: installation.Lacks(live, of.KubernetesVersion, func(version string) bool {
		return entry.FitsKubernetes(version, catalogue.Platform{K8sVersion: of.KubernetesVersion})
	})}
	gate.Right = gate.Problem == ""
	ahead := []string{}
	if of.Upgrade != nil && of.Upgrade.IsPending() {
		ahead = of.Upgrade.Plan
	}
	if gate.Right && len(ahead) == 0 {
		return gate, nil
	}
	versions := ahead
	if len(ahead) == 0 {
		versions = []string{of.KubernetesVersion}
	}
	made, err := from.at(ctx, live, versions)
	if err != nil {
		return gate, err
	}
	if len(ahead) > 0 {
		r.judge(&gate, of, live, made, entry)
	}
	if why := stall(made[0].by, live, of.Ref); why != "" && gate.Problem != "" && !gate.Breaks {
		gate.Problem += "; " + why
	}
	return gate, nil
}

// judge an installation by the versions of Kubernetes that are to come: whether it breaks on one of
// them, and whether it is at what it is to have before the first.
func (r *Reconciler) judge(
	gate *upgrade.Gate, of target.Description, live *v1.AddonInstallation, after []origin, entry *catalogue.Entry,
) {
	meant := live.DeepCopy()
	asked := resolution.Request{
		Installation: meant, Installed: resolution.InstalledInStatus(live), Cluster: of, AllowPrereleases: r.Options.AllowPrereleases,
	}
	find := func(string) *catalogue.Entry { return entry }
	for i, next := range of.Upgrade.Plan {
		meant.Spec.AddonRef = after[i].ref
		if finding := resolution.CheckUpgrade(find, []resolution.Request{asked}, next)[0]; finding.Outcome == resolution.OutcomeBreaks {
			gate.Breaks, gate.Problem = true, finding.Message
			return
		}
	}
	meant.Spec.AddonRef = after[0].ref
	choice, refusal := asked.Choose(entry)
	next := catalogue.Platform{K8sVersion: of.Upgrade.Plan[0], AllowPrereleases: r.Options.AllowPrereleases}
	switch {
	case refusal != nil || !entry.FitsKubernetes(choice.Version.Version, next): // no version fits both sides
	case cannotStage(after[0].by, choice.Version): // nor does the set move it there
	case catalogue.Key(live.Status.Version) != catalogue.Key(choice.Version.Version):
		gate.Bridges, gate.Problem = false, "goes to "+choice.Version.Version
	case !installation.IsReady(live):
		gate.Bridges = false
	}
}

// cannotStage says whether a set leaves a version alone, since its content may change by itself.
func cannotStage(by *v1.AddonSet, version *v1.AddonVersion) bool {
	return by != nil && by.Spec.Rollout != nil && catalogue.SourceMoves(version)
}
