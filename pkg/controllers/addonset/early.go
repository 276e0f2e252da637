package addonset

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// comesWith reports whether a set is for a cluster only after the next step of its pending upgrade.
func comesWith(of *set, in *place, from *offers) bool {
	if len(in.ahead) == 0 || of.k8s == nil || presenceOf(of, in, from) != waves.Absent {
		return false
	}
	after := *in
	after.version = in.ahead[0]
	return presenceOf(of, &after, from) == waves.Present
}

// isEarly reports whether a set has a name before the cluster reaches the Kubernetes version that the set is for.
// While the control plane waits, the set installs versions that fit both sides; during the upgrade it keeps its
// installations.
func (p planner) isEarly(of *set, name string, in *place) bool {
	return comesWith(of, in, p.offers) && p.mayBeEarly(of, of.byName[name], in)
}

// mayBeEarly reports whether a set may have an item early: with a version that fits both sides, and without a
// removal.
func (p planner) mayBeEarly(of *set, wanted *item, in *place) bool {
	live := in.live[in.ref.NameOf(string(wanted.Name))]
	switch {
	case of.deviationOf(wanted, in).OptOut:
		return false
	case live == nil:
		if !in.waits {
			return false
		}
	case !in.waits && !live.isOf(of.name):
		return false
	case live.report.IsGoing || p.competitors.sets[live.set] == nil || !goesOver(live, wanted, in.ref):
		return false
	}
	name := string(wanted.Name)
	sharing := p.competitors.byItem[name]
	now := slices.IndexFunc(sharing, func(one *set) bool { return p.isPresent(one, in, waves.Unknown) })
	if now >= 0 && !isAlike(sharing[now].byName[name], wanted) {
		return false
	}
	return p.fitsBoth(of, wanted, in, live.installed())
}

// isAlike reports whether the installation of one item can be passed to another item.
func isAlike(one, other *item) bool {
	return one.AddonRef.Name == other.AddonRef.Name && one.TargetNamespace == other.TargetNamespace && one.ReleaseName == other.ReleaseName
}

// fitsBoth reports whether the version that a set would choose for an item fits before and after the next step of an
// upgrade.
func (p planner) fitsBoth(of *set, wanted *item, in *place, installed string) bool {
	entry := p.offers.entries[wanted.addon()]
	if entry == nil {
		return false
	}
	selected, refusal := p.selects(entry, of.wanted(wanted, in), installed, p.platform(in, in.ahead),
		catalogue.SelectOptions{AllowDowngrade: wanted.allows(v1.PermissionDowngrade), BySet: true})
	if refusal != nil || of.staged && catalogue.SourceMoves(selected.Version) {
		return false
	}
	return entry.FitsKubernetes(selected.Version.Version, p.after(in))
}

// platform is the platform of a cluster. A selection prefers versions that also fit the next ones.
func (r *resolver) platform(in *place, next []string) catalogue.Platform {
	return catalogue.Platform{
		KKPVersion: resolution.KKPVersionFor(in.ref, r.offers.kkp), K8sVersion: in.version, Next: next, AllowPrereleases: r.offers.preReleases,
	}
}

// after is the platform of a cluster after the next step of its upgrade.
func (r *resolver) after(in *place) catalogue.Platform {
	platform := r.platform(in, nil)
	platform.K8sVersion = in.ahead[0]
	return platform
}

// wantEarly plans the items that a set has before it is for a cluster. An early item that it may no longer have
// belongs to another set, or stays until the upgrade ends: it is never removed during an upgrade.
func (p planner) wantEarly(result *plan, in *place) {
	taken := map[string]*item{}
	for i := range p.set.items {
		of := &p.set.items[i]
		// The set is not for this cluster yet: it has a name early, or does not have it.
		if name := string(of.Name); p.holder(name, in, waves.Absent) == p.set {
			taken[name] = of
			p.want(result, of, in)
		}
	}
	for _, live := range p.owned(in, taken) {
		item := in.itemOf(live.Name, p.competitors)
		if p.set.byName[item] != nil && p.holder(item, in, waves.Absent) == nil {
			result.mine = append(result.mine, &live.report)
			continue
		}
		p.release(result, live, in)
	}
	result.isEarly = len(taken) > 0 || len(result.mine) > 0
}
