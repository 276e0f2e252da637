package addonset

import (
	"slices"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/waves"
)

// comesWith says whether a set is about a cluster once its pending upgrade is through its next step,
// and not before.
func comesWith(of *set, in *place, from *offers) bool {
	if len(in.ahead) == 0 || of.k8s == nil || presenceOf(of, in, from) != waves.Absent {
		return false
	}
	after := *in
	after.version = in.ahead[0]
	return presenceOf(of, &after, from) == waves.Present
}

// isEarly says whether a set has a name before the cluster's Kubernetes is the one that it is for.
// While the control plane waits, it takes what fits both sides; while it rolls, it keeps what it has.
func (p planner) isEarly(of *set, name string, in *place) bool {
	return comesWith(of, in, p.offers) && p.mayBeEarly(of, of.byName[name], in)
}

// mayBeEarly says whether a set may have an item early: by a version that fits both sides, and where
// nothing has to be removed for it.
func (p planner) mayBeEarly(of *set, wanted *item, in *place) bool {
	live := in.live[in.ref.NameOf(string(wanted.Name))]
	switch {
	case live == nil:
		if !in.waits {
			return false
		}
	case !in.waits && !live.isOf(of.name):
		return false
	case live.report.IsGoing || p.rivals.sets[live.set] == nil || !goesOver(live, wanted, in.ref):
		return false
	}
	name := string(wanted.Name)
	sharing := p.rivals.byItem[name]
	now := slices.IndexFunc(sharing, func(one *set) bool { return p.isPresent(one, in, waves.Unknown) })
	if now >= 0 && !isAlike(sharing[now].byName[name], wanted) {
		return false
	}
	return p.fitsBoth(of, wanted, in, live.installed())
}

// isAlike says whether what is made of one item can go over to another.
func isAlike(one, other *item) bool {
	return one.AddonRef.Name == other.AddonRef.Name && one.TargetNamespace == other.TargetNamespace && one.ReleaseName == other.ReleaseName
}

// fitsBoth says whether the version that a set would choose for an item fits before and after the
// next step of an upgrade.
func (p planner) fitsBoth(of *set, wanted *item, in *place, installed string) bool {
	entry := p.offers.entries[wanted.addon()]
	if entry == nil {
		return false
	}
	selected, refusal := p.selects(entry, wanted.AddonRef.Version, installed, p.platform(in, in.ahead),
		catalogue.SelectOptions{AllowDowngrade: wanted.allows(v1.PermissionDowngrade), BySet: true})
	if refusal != nil || of.staged && catalogue.SourceMoves(selected.Version) {
		return false
	}
	return entry.FitsKubernetes(selected.Version.Version, p.after(in))
}

// platform of a cluster, which prefers what fits next versions.
func (r *resolver) platform(in *place, next []string) catalogue.Platform {
	return catalogue.Platform{
		KKPVersion: cluster.KKPVersionFor(in.ref, r.offers.kkp), K8sVersion: in.version, Next: next, AllowPrereleases: r.offers.preReleases,
	}
}

// after is the platform of a cluster after the next step of its upgrade.
func (r *resolver) after(in *place) catalogue.Platform {
	platform := r.platform(in, nil)
	platform.K8sVersion = in.ahead[0]
	return platform
}

// wantEarly plans what a set has before it is about a cluster. What it had early and may no longer is
// another's, or stays until the upgrade is over: it is never removed in the middle of one.
func (p planner) wantEarly(result *plan, in *place) {
	taken := map[string]*item{}
	for i := range p.set.items {
		of := &p.set.items[i]
		// The set is about nothing here yet: it has a name early, or not at all.
		if name := string(of.Name); p.holder(name, in, waves.Absent) == p.set {
			taken[name] = of
			p.want(result, of, in)
		}
	}
	for _, live := range p.owned(in, taken) {
		item := in.itemOf(live.Name, p.rivals)
		if p.set.byName[item] != nil && p.holder(item, in, waves.Absent) == nil {
			result.mine = append(result.mine, &live.report)
			continue
		}
		p.letGo(result, live, in)
	}
	result.isEarly = len(taken) > 0 || len(result.mine) > 0
}
