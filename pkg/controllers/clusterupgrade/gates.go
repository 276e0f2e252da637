package clusterupgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// gates are the installations that upgrades of the cluster wait for.
func (r *Reconciler) gates(ctx context.Context, f *facts) *loop.Outcome {
	list := &v1.AddonInstallationList{}
	if err := r.Client.List(ctx, list, cluster.InstallationsOf(f.cluster.Ref), client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing the installations of namespace %q: %w", f.cluster.Namespace, err))
	}
	from, err := r.originsIn(ctx, f.cluster)
	if err != nil {
		return failed(err)
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
		f.observed.Gates = append(f.observed.Gates, from.gate(&one, entry))
	}
	slices.SortFunc(f.observed.Gates, func(a, b upgrade.Gate) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// gate is the state of an installation for an upgrade: for the control plane's version and, if an upgrade is pending, for the next
// versions. The set that does not move it is named only if it lacks a version: a move solves no other problem.
func (o origins) gate(live *v1.AddonInstallation, entry *catalogue.Entry) upgrade.Gate {
	of := o.of
	gate := upgrade.Gate{Name: live.Name, Bridges: true, Problem: installation.Lacks(live, of.KubernetesVersion, func(version string) bool {
		return entry.FitsKubernetes(version, catalogue.Platform{K8sVersion: of.KubernetesVersion})
	})}
	gate.Right = gate.Problem == ""
	versions := []string{of.KubernetesVersion}
	isAhead := of.Upgrade != nil && of.Upgrade.IsPending() && len(of.Upgrade.Plan) > 0
	if isAhead {
		versions = of.Upgrade.Plan
	}
	if gate.Right && !isAhead {
		return gate
	}
	made := o.at(live, versions)
	if isAhead {
		gate = o.evaluate(gate, live, made, entry)
	}
	if gate.Problem == "" || gate.Breaks {
		return gate
	}
	if version, isBrought := o.brought(live, made[0], entry); isBrought && !isAt(live, version) {
		if why := stall(made[0].by, live, of.Ref); why != "" {
			gate.Problem += "; " + why
		}
	}
	return gate
}

// evaluate evaluates an installation for the next versions of Kubernetes: whether it breaks on one of them, and whether
// it has the version that it should have before the first.
func (o origins) evaluate(gate upgrade.Gate, live *v1.AddonInstallation, after []origin, entry *catalogue.Entry) upgrade.Gate {
	plan := o.of.Upgrade.Plan
	find := func(string) *catalogue.Entry { return entry }
	for i, next := range plan {
		asked := []resolution.Request{o.asks(live, after[i])}
		if finding := resolution.CheckUpgrade(find, asked, next)[0]; finding.Outcome == resolution.OutcomeBreaks {
			gate.Breaks, gate.Problem = true, finding.Message
			return gate
		}
	}
	version, isBrought := o.brought(live, after[0], entry)
	next := catalogue.Platform{K8sVersion: plan[0], AllowPrereleases: o.preReleases}
	switch {
	case !isBrought || !entry.FitsKubernetes(version, next): // no version fits both sides
	case !isAt(live, version):
		gate.Bridges, gate.Problem = false, "moves to "+version
	case !installation.IsReady(live):
		gate.Bridges = false
	}
	return gate
}

// asks is the request for an installation of this origin, regardless of its written reference.
func (o origins) asks(live *v1.AddonInstallation, made origin) resolution.Request {
	meant := *live
	meant.Spec.AddonRef = made.ref
	return resolution.Request{
		Installation: &meant, Installed: resolution.InstalledInStatus(live), Cluster: o.of, AllowPrereleases: o.preReleases,
	}
}

// brought is the version that an installation should have. There is none if none fits, or if a set does not move it
// because its content is not fixed.
func (o origins) brought(live *v1.AddonInstallation, made origin, entry *catalogue.Entry) (version string, isBrought bool) {
	choice, refusal := o.asks(live, made).Choose(entry)
	if refusal != nil || made.by != nil && made.by.Spec.Rollout != nil && catalogue.SourceMoves(choice.Version) {
		return "", false
	}
	return choice.Version.Version, true
}

// isAt says whether an installation has a version.
func isAt(live *v1.AddonInstallation, version string) bool {
	return catalogue.Key(live.Status.Version) == catalogue.Key(version)
}
