package coreaddon

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

// noteGates notes the installations that AddonsReady waits for, other than core add-ons that are not Ready: core
// add-ons and installations of sets, of add-ons with a slot, that do not fit the cluster's version of Kubernetes.
func (r *Reconciler) noteGates(ctx context.Context, f *facts) error {
	for i := range f.installations {
		one := &f.installations[i]
		if !installation.MayGate(one) || one.Spec.CoreAddon && !installation.IsReady(one) { // notReady reports those
			continue
		}
		problem, err := r.lacks(ctx, f, one)
		if err != nil {
			return err
		}
		if problem != "" {
			f.gates = append(f.gates, fmt.Sprintf("%s: %s", one.Name, problem))
		}
	}
	slices.Sort(f.gates)
	return nil
}

// lacks is the reason why AddonsReady waits for an installation; empty if it does not.
func (r *Reconciler) lacks(ctx context.Context, f *facts, one *v1.AddonInstallation) (string, error) {
	addon := string(one.Spec.AddonRef.Name)
	merged, err := r.mergedOf(ctx, addon)
	if err != nil || slotOf(merged) == "" {
		return "", err
	}
	kubernetes := cmp.Or(f.cluster.KubernetesVersion, madeFor(one)) // if the version is not known, Ready is enough
	var entry *catalogue.Entry
	if madeFor(one) != kubernetes {
		if entry, err = r.Marks.Entry(ctx, r.Client, client.ObjectKeyFromObject(merged)); err != nil {
			return "", fmt.Errorf("reading merged AddonCatalogue %q: %w", addon, err)
		}
	}
	platform := catalogue.Platform{K8sVersion: kubernetes, AllowPrereleases: r.Options.AllowPrereleases}
	return installation.Lacks(one, kubernetes, func(version string) bool {
		return entry == nil || entry.FitsKubernetes(version, platform)
	}), nil
}

// slotOf is the slot of a merged catalogue's add-on; empty without slot or catalogue.
func slotOf(merged *v1.AddonCatalogue) v1.Slot {
	if merged == nil || len(merged.Spec.Addons) == 0 {
		return ""
	}
	return merged.Spec.Addons[0].Slot
}

// madeFor is the Kubernetes version that the applied objects were made for; empty if the status has none.
func madeFor(one *v1.AddonInstallation) string {
	if one.Status.LastApplied == nil {
		return ""
	}
	return one.Status.LastApplied.K8sVersion
}

// mayGate reports whether AddonsReady may wait for an installation of a set.
func (r *Reconciler) mayGate(one *v1.AddonInstallation) bool {
	if one.Spec.CoreAddon || !installation.MayGate(one) {
		return false
	}
	merged, err := r.mergedOf(context.Background(), string(one.Spec.AddonRef.Name)) // reads a cache
	return err != nil || slotOf(merged) != ""
}

// gateChanged reports whether AddonsReady may change with an installation that is not a core add-on.
func (r *Reconciler) gateChanged(before, after *v1.AddonInstallation) bool {
	changed := installation.MayGate(before) != installation.MayGate(after) || before.Generation != after.Generation ||
		before.Status.Version != after.Status.Version || madeFor(before) != madeFor(after) || conditionChanged(before, after, v1.ConditionReady)
	return changed && (r.mayGate(before) || r.mayGate(after))
}
