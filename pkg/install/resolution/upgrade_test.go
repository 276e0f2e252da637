package resolution_test

import (
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/test/given"
)

// asking is an installation with a requested and an installed version.
func asking(wanted, installed string) resolution.Request {
	return resolution.Request{Installed: installed, Installation: given.Installation("", "mine", "prometheus", "", given.In(wanted))}
}

func TestCheckUpgrade(t *testing.T) {
	t.Parallel()
	const from, to = "v1.36.3", "v1.37.1-gke.100"
	bound := []offered{
		{"1.0.0", "< 1.37", ""}, {"1.1.0", "< 1.37", ""}, {"1.2.0", "< 1.38", ""}, {"2.0.0", ">= 1.37", ""}, {"2.1.0", ">= 1.38", ""},
	}
	none := []offered{{"1.0.0", "< 1.37", ""}}
	lower := []offered{{"1.0.0", "", ""}, {"1.1.0", "< 1.37", ""}, {"2.0.0", ">= 1.37", ""}}
	held := func(version string) resolution.Request {
		request := asking("", version)
		request.Installation.Spec.Paused = true
		return request
	}
	pinned := func(version string) resolution.Request { return asking(version, version) }
	core := asking("", "1.1.0")
	core.Installation.Spec.CoreAddon = true
	for _, test := range []struct {
		why       string
		versions  []offered
		kind      v1.CatalogueType
		installed resolution.Request
		outcome   resolution.Outcome
		version   string
		reason    string
		fitting   string
		fitsNow   bool
		brokenNow bool
	}{
		{why: "a pin that still fits", versions: bound, installed: pinned("1.2.0"), outcome: resolution.OutcomeKeeps, version: "1.2.0"},
		{why: "a pin that does not; another fits both", versions: bound, installed: pinned("v1.1.0"),
			outcome: resolution.OutcomeBreaks, reason: v1.ExcludedK8sVersion, fitting: "1.2.0", fitsNow: true},
		{why: "a pin that does not, and nothing does", versions: none, installed: pinned("1.0.0"),
			outcome: resolution.OutcomeBreaks, reason: v1.ExcludedK8sVersion},
		{why: "what fits both but is lower is no way out", versions: lower, installed: pinned("1.1.0"),
			outcome: resolution.OutcomeBreaks, reason: v1.ExcludedK8sVersion, fitting: "2.0.0"},
		{why: "a range moves up by itself", versions: bound, installed: asking(">= 1", "1.2.0"),
			outcome: resolution.OutcomeMoves, version: "2.0.0"},
		{why: "absent moves too", versions: bound, installed: asking("", "1.1.0"),
			outcome: resolution.OutcomeMoves, version: "2.0.0"},
		{why: "a range that holds nothing that fits", versions: bound,
			installed: asking("~1.1", "1.1.0"),
			outcome:   resolution.OutcomeBreaks, reason: v1.ExcludedK8sVersion, fitting: "1.2.0", fitsNow: true},
		{why: "a paused one stays where it is", versions: bound, installed: held("1.2.0"),
			outcome: resolution.OutcomeKeeps, version: "1.2.0"},
		{why: "a paused one breaks although it names no version", versions: bound, installed: held("1.0.0"),
			outcome: resolution.OutcomeBreaks, reason: v1.ExcludedK8sVersion, fitting: "1.2.0", fitsNow: true},
		{why: "already broken", versions: bound, installed: pinned("2.1.0"), outcome: resolution.OutcomeBreaks,
			reason: v1.ExcludedK8sVersion, fitting: "2.0.0", brokenNow: true},
		{why: "removed from the catalogue", versions: bound, installed: pinned("0.9.0"), outcome: resolution.OutcomeUnknown,
			reason: v1.ReasonWithdrawn, fitting: "1.2.0", fitsNow: true},
		{why: "a refused downgrade leaves what fits", versions: bound,
			installed: asking("1.0.0", "1.2.0"), outcome: resolution.OutcomeBreaks,
			reason: v1.ExcludedK8sVersion, fitting: "1.2.0", fitsNow: true},
		{why: "a mistyped pin leaves what fits", versions: bound,
			installed: asking("7.0.0", "1.2.0"), outcome: resolution.OutcomeKeeps, version: "1.2.0"},
		{why: "a mistyped pin does not save what does not fit", versions: bound,
			installed: asking("7.0.0", "1.0.0"), outcome: resolution.OutcomeBreaks,
			reason: v1.ExcludedK8sVersion, fitting: "1.2.0", fitsNow: true},
		{why: "nothing installed yet", versions: bound, installed: asking("2.x", ""),
			outcome: resolution.OutcomeMoves, version: "2.0.0"},
		{why: "core is refused before and after", versions: bound, kind: v1.CatalogueCore, installed: pinned("1.2.0"),
			outcome: resolution.OutcomeBreaks, reason: v1.ExcludedCore, brokenNow: true},
		{why: "a core installation", versions: bound, kind: v1.CatalogueCore,
			installed: core,
			outcome:   resolution.OutcomeMoves, version: "2.0.0"},
	} {
		entry := entryOf(t, test.kind, test.versions...)
		find := func(string) *catalogue.Entry { return entry }
		test.installed.Cluster.KubernetesVersion = from
		got := resolution.CheckUpgrade(find, []resolution.Request{test.installed}, to)[0]
		if got.Outcome != test.outcome || got.Reason != test.reason || got.FitsNow != test.fitsNow || got.BrokenNow != test.brokenNow {
			t.Errorf("%s: got %+v, want outcome %s, reason %q, fitsNow %t, brokenNow %t",
				test.why, got, test.outcome, test.reason, test.fitsNow, test.brokenNow)
		}
		expectOrigin(t, test.why+", version", got.Version, test.version)
		expectOrigin(t, test.why+", fitting", got.Fitting, test.fitting)
		if (got.Message == "") != (got.Reason == "") {
			t.Errorf("%s: reason %q and message %q", test.why, got.Reason, got.Message)
		}
	}
}

func expectOrigin(t *testing.T, why string, got *catalogue.VersionOrigin, version string) {
	t.Helper()
	if version == "" {
		if got != nil {
			t.Errorf("%s: got %v, want none", why, *got)
		}
		return
	}
	if got == nil || *got != (catalogue.VersionOrigin{Version: version, Catalogue: "custom"}) {
		t.Errorf("%s: got %v, want %q of catalogue custom", why, got, version)
	}
}

func TestCheckUpgradeWithoutTheAddon(t *testing.T) {
	t.Parallel()
	none := func(string) *catalogue.Entry { return nil }
	gone := asking("", "1.0.0")
	gone.Installation.Spec.AddonRef.Name = "gone"
	gone.Installation.Finalizers = []string{v1.FinalizerCleanupInstallation, "tenant.example/never"}
	got := resolution.CheckUpgrade(none, []resolution.Request{gone}, "1.37.0")
	if len(got) != 1 || got[0].Outcome != resolution.OutcomeUnknown || got[0].Reason != v1.ReasonAddonUnknown ||
		strings.Join(got[0].HeldBy, " ") != "tenant.example/never" ||
		got[0].Installed == nil || got[0].Installed.Version != "1.0.0" || !strings.Contains(got[0].Message, "gone") {
		t.Errorf("got %+v", got)
	}
}
