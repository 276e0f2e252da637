package addonset

import (
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/addonset"
	"github.com/trellis-addons/trellis/pkg/fleet/waves"
)

// TestOneClusterDeviates fails when a Cluster's owner leaves out or pins an item that does not allow it, when annotation leave-out of the
// set does not, when another cluster or set is affected, and when the cluster counts as evidence or the status does not say who decided.
func TestOneClusterDeviates(t *testing.T) {
	from := offering(entryOf(t, "web", "1.0.0", "1.1.0"), entryOf(t, "page", "1.0.0"))
	owner := func(entry string) []addonset.Deviation {
		return addonset.ReadDeviations(`[{"item":"web",` + entry + `,"by":"team-a","why":"has its own"}]`)
	}
	const byOwner = `by "team-a" in annotation addons.kubermatic.k8c.io/deviations of the Cluster: has its own`
	for _, test := range []struct {
		why        string
		allowed    bool
		leaveOut   string
		deviations []addonset.Deviation
		applied    string
		want, says string
	}{
		{why: "nobody deviates", allowed: true, applied: "1.1.0", want: "Install page >1.0.0"},
		{why: "the owner leaves it out, and it was there", allowed: true, deviations: owner(`"optOut":true`), applied: "1.1.0",
			want: "Blocked page DependencyMissing, Remove web 1.1.0>", says: `item "web" is left out ` + byOwner},
		{why: "and it was not there", allowed: true, deviations: owner(`"optOut":true`), want: "Blocked page DependencyMissing",
			says: `item "web" is left out ` + byOwner},
		{why: "the item does not allow it", deviations: owner(`"optOut":true`), applied: "1.0.0", want: "Install page >1.0.0, Update web 1.0.0>1.1.0"},
		{why: "the owner pins it", allowed: true, deviations: owner(`"version":"1.0.0"`), applied: "1.0.0", want: "Install page >1.0.0",
			says: `item "web" is pinned to version "1.0.0" ` + byOwner},
		{why: "the item allows no pin", deviations: owner(`"version":"1.0.0"`), applied: "1.0.0",
			want: "Install page >1.0.0, Update web 1.0.0>1.1.0"},
		{why: "a pin below", allowed: true, deviations: owner(`"version":"1.0.0"`), applied: "1.1.0",
			want: "Blocked web DowngradeRefused, Install page >1.0.0", says: `is pinned to version "1.0.0"`},
		{why: "a pin to what there is not", allowed: true, deviations: owner(`"version":"9.0.0"`), applied: "1.1.0",
			want: "Blocked web VersionUnknown, Install page >1.0.0", says: `is pinned to version "9.0.0"`},
		{why: "an item of another set", allowed: true, applied: "1.1.0", want: "Install page >1.0.0",
			deviations: addonset.ReadDeviations(`[{"set":"other","item":"web","optOut":true,"by":"a","why":"a"}]`)},
		{why: "an admin leaves it out", leaveOut: "cluster-birch:web", applied: "1.1.0", want: "Blocked page DependencyMissing, Remove web 1.1.0>",
			says: `item "web" is left out by annotation addons.kubermatic.k8c.io/leave-out of the set`},
		{why: "an admin pins it, and the owner leaves it out", allowed: true, leaveOut: "birch:web=1.0.0", deviations: owner(`"optOut":true`),
			applied: "1.0.0", want: "Install page >1.0.0", says: `item "web" is pinned to version "1.0.0" by annotation`},
		{why: "an admin names another cluster, and another item", leaveOut: "amber:web,birch:other", applied: "1.1.0", want: "Install page >1.0.0"},
	} {
		t.Run(test.why, func(t *testing.T) {
			web, page := itemOf("web", "web", "1.x"), itemOf("page", "page", "")
			web.AllowOptOut, page.AllowOptOut, page.DependsOn = test.allowed, test.allowed, []v1.AddonName{"web"}
			of, in := setNamed("tools", web, page), clusterOn("v1.36.3")
			of.Annotations = map[string]string{v1.AnnotationLeaveOut: test.leaveOut}
			if test.applied != "" {
				in.live["web"] = observationOf(madeBy(t, of, from, in, test.applied))
			}
			in.deviations = test.deviations
			sets := reading(t, of)
			got := planner{newResolver(sets["tools"], from), newCompetitors(sets)}.planFor(in)
			if text := reported(&got); text != test.want {
				t.Errorf("\n got: %s\nwant: %s", text, test.want)
			}
			keeps := strings.Join(got.keeps(sets["tools"]), " ")
			if isOut := strings.Contains(test.says, "left out"); isOut != (keeps == "page") {
				t.Errorf("it keeps %q", keeps)
			}
			if said := strings.Join(got.deviations, "; "); !strings.Contains(said, test.says) || (said == "") != (test.says == "") {
				t.Errorf("\n it says: %s\nwant: %s", said, test.says)
			}
			about := got.factsOf(in, v1.RemovalDelete)
			about.Deviates = strings.Join(got.deviations, "; ")
			status := waves.ClusterStatusOf(about, waves.Course{Strategy: sets["tools"].strategy, StartedAt: noon, Now: noon})
			if isSick := status.State == v1.ClusterSick && status.Trouble.Reason == v1.ReasonDeviates; isSick != (test.says != "") {
				t.Errorf("it is %s, %+v", status.State, status.Trouble)
			}
		})
	}
}
