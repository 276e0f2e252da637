package upgrade

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/long"
)

// count is of installations, half of them of either method. The bar is set on 200: make test-long PART=upgrade-last.
var count = flag.Int("installations", 40, "how many installations are in place when a release gives way to another")

const target = "bench"

// offer publishes a catalogue with an add-on of each method.
func (p *platform) offer() {
	p.t.Helper()
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '%s'}\ndata: {a: b}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '%[1]s'}\n"
	if _, err := p.sources.Commit("settings", map[string]string{"all.yaml": fmt.Sprintf(settings, "{{ .Variables.name }}")}); err != nil {
		p.t.Fatal(err)
	}
	err := p.sources.Chart(map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: settings\nversion: 1.0.0\n", "values.yaml": "name: unset\n",
		"templates/all.yaml": fmt.Sprintf(settings, "{{ .Release.Name }}"),
	})
	expect.NoError(p.t, err)
	p.ensure(p.master, p.catalogue())
}

func (p *platform) catalogue() *kubermaticv1.AddonCatalogue {
	return given.Catalogue(platformNamespace, "tools",
		given.Addon("template", given.Version("1.0.0", given.Git(p.sources.GitURL+"/settings.git", ""))),
		given.Addon("chart", given.Version("1.0.0", given.Chart(p.sources.ChartsURL, "settings", "1.0.0"))))
}

func installation(addon, name string) *kubermaticv1.AddonInstallation {
	return given.Installation(clusterNamespace, name, addon, target, given.In("1.0.0"), given.Values(fmt.Sprintf(`{"name":%q}`, name)))
}

// installAll installs, half of them by either method, and waits until all are Ready.
func (p *platform) installAll(many int) {
	p.t.Helper()
	p.ensure(p.user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: target}})
	for i := range many / 2 {
		p.ensure(p.seed, installation("template", fmt.Sprintf("template-%03d", i)), installation("chart", fmt.Sprintf("chart-%03d", i)))
	}
	p.allReady(p.seed, many)
}

// allReady waits until so many installations are there, each Ready as it is now.
func (p *platform) allReady(on client.Client, many int) {
	p.t.Helper()
	p.await(func(ctx context.Context) error {
		var found kubermaticv1.AddonInstallationList
		if err := on.List(ctx, &found); err != nil {
			return err
		}
		if len(found.Items) != many {
			return fmt.Errorf("there are %d installations, want %d", len(found.Items), many)
		}
		for i := range found.Items {
			if err := expect.Condition(&found.Items[i], kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin has a release on master and seed, with so many installations.
func (p *platform) begin(of release, many int) {
	p.t.Helper()
	for _, where := range []string{masterName, seedName} {
		p.standaloneKinds(of, where)
		p.playJobs(where)
	}
	p.install(of, masterChart, masterName)
	p.install(of, seedChart, seedName)
	p.connectSeed(of)
	p.start(of, seedChart, seedName)
	p.start(of, masterChart, masterName)
	p.connectCluster()
	p.offer()
	p.installAll(many)
	if rendered := p.rendered(seedName); rendered == 0 { // else nothing that is rendered later would be seen
		p.t.Errorf("it installed %d times and counts no rendering", many)
	}
}

// change puts a release in the place of another, as docs/guides/upgrade.md says: the seed's chart, and then the master's. It returns the
// statuses that the seed's manager left unfinished when it was stopped in the middle of its work: the next has to finish them.
func (p *platform) change(to release) (unfinished map[string]bool) {
	p.t.Helper()
	for _, at := range [][2]string{{seedChart, seedName}, {masterChart, masterName}} {
		p.install(to, at[0], at[1])
		p.stop(at[0], at[1])
		if at[0] == seedChart {
			unfinished = p.unfinished()
		}
		p.start(to, at[0], at[1])
	}
	return unfinished
}

// unfinished are the calls that would finish the installations that are not Ready.
func (p *platform) unfinished() map[string]bool {
	p.t.Helper()
	var found kubermaticv1.AddonInstallationList
	expect.List(p.t, p.seed, &found)
	calls := map[string]bool{}
	for i := range found.Items {
		if expect.Condition(&found.Items[i], kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady) != nil {
			calls["patch addoninstallations/status "+clusterNamespace+"/"+found.Items[i].Name] = true
		}
	}
	return calls
}

// versions of what is installed in the user cluster.
func (p *platform) versions() map[string]string {
	p.t.Helper()
	var found corev1.ConfigMapList
	expect.List(p.t, p.user, &found, client.InNamespace(target))
	versions := map[string]string{}
	for i := range found.Items {
		versions[found.Items[i].Name] = string(found.Items[i].UID) + " " + found.Items[i].ResourceVersion
	}
	return versions
}

// An upgrade from the former release's charts to this one's, with installations in place, a rollback of the charts, and the upgrade again.
// Red when the new managers render, write to the user cluster or write a status (but one that was left unfinished), and when those of
// before, after the rollback, render or write to the user cluster.
func TestAnUpgradeTouchesNothing(t *testing.T) {
	long.Skip(t, "upgrade", "the release of an early commit is built, installed and replaced")
	t.Parallel() // most of the time somebody waits
	before, now := both(t, *previous)
	p := newPlatform(t)
	p.begin(before, *count)
	p.rested(seedName, *count, marks{})
	had := p.versions()
	for _, to := range []release{now, before, now} {
		since := p.mark(masterName, seedName, userName)
		unfinished := p.change(to)
		p.rested(seedName, *count, since)
		p.allReady(p.seed, *count)
		p.expectNothingRendered(seedName)
		expectNone(t, to, "the user cluster", p.writesTo(userName, since))
		seed := p.writesTo(seedName, since).where(func(call string) bool { return isNoEvent(call) && !unfinished[call] })
		if to == before { // managers of before say Ready anew when they start; that is theirs
			seed = seed.where(func(call string) bool { return !strings.Contains(call, " addoninstallations/status ") })
		}
		expectNone(t, to, "the seed", seed)
		expectNone(t, to, "the master", p.writesTo(masterName, since).where(func(call string) bool {
			return isNoEvent(call) && call != "patch configmaps "+platformNamespace+"/"+kubermaticv1.ConfigMapUsage
		}))
	}
	if diff := cmp.Diff(had, p.versions()); diff != "" {
		t.Errorf("objects of the user cluster were written (-before +after):\n%s", diff)
	}
}

func isNoEvent(call string) bool { return !strings.Contains(call, " events ") }

func expectNone(t *testing.T, to release, where string, made writes) {
	t.Helper()
	if len(made) > 0 {
		t.Errorf("the managers of %s wrote to %s:\n%s", to, where, made)
	}
}
