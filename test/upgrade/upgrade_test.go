package upgrade

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// installations are as many as the bar names: half of them of either method.
const installations = 200

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
	if err != nil {
		p.t.Fatal(err)
	}
	p.ensure(p.master, p.catalogue())
}

func (p *platform) catalogue() *kubermaticv1.AddonCatalogue {
	reference := &kubermaticv1.LocalReference{Name: authority}
	addon := func(name kubermaticv1.AddonName, method kubermaticv1.Method, source *kubermaticv1.Source) kubermaticv1.Addon {
		return kubermaticv1.Addon{Name: name, Versions: []kubermaticv1.AddonVersion{{
			Version: "1.0.0", Template: &kubermaticv1.Template{Method: method}, Source: source,
		}}}
	}
	return &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: "tools"},
		Spec: kubermaticv1.AddonCatalogueSpec{Addons: []kubermaticv1.Addon{
			addon("template", kubermaticv1.MethodGoTemplate, &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
				Remote: kubermaticv1.GitRemote(p.sources.GitURL + "/settings.git"), CASecretRef: reference,
			}}),
			addon("chart", kubermaticv1.MethodHelm, &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
				URL: p.sources.ChartsURL, Chart: "settings", Version: "1.0.0", CASecretRef: reference,
			}}),
		}},
	}
}

func installation(addon, name string) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: name},
		Spec: kubermaticv1.AddonInstallationSpec{
			AddonRef: kubermaticv1.AddonReference{Name: kubermaticv1.AddonName(addon), Version: "1.0.0"}, TargetNamespace: target,
			Values: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"name":%q}`, name)},
		},
	}
}

// installAll installs, half of them by either method, and waits until all are Ready.
func (p *platform) installAll(count int) {
	p.t.Helper()
	p.ensure(p.user, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: target}})
	for i := range count / 2 {
		p.ensure(p.seed, installation("template", fmt.Sprintf("template-%03d", i)), installation("chart", fmt.Sprintf("chart-%03d", i)))
	}
	p.allReady(p.seed, count)
}

// allReady waits until so many installations are there, each Ready as it is now.
func (p *platform) allReady(on client.Client, count int) {
	p.t.Helper()
	p.await(func(ctx context.Context) error {
		var found kubermaticv1.AddonInstallationList
		if err := on.List(ctx, &found); err != nil {
			return err
		}
		if len(found.Items) != count {
			return fmt.Errorf("there are %d installations, want %d", len(found.Items), count)
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
func (p *platform) begin(of release, count int) {
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
	p.installAll(count)
}

// change puts a release in the place of another, as docs/guides/upgrade.md says: the seed's chart, and then the master's.
func (p *platform) change(to release) {
	p.t.Helper()
	for _, at := range [][2]string{{seedChart, seedName}, {masterChart, masterName}} {
		p.install(to, at[0], at[1])
		p.stop(at[0], at[1])
		p.start(to, at[0], at[1])
	}
}

// uids of what is installed in the user cluster.
func (p *platform) uids() map[string]string {
	p.t.Helper()
	var found corev1.ConfigMapList
	if err := p.user.List(p.t.Context(), &found, client.InNamespace(target)); err != nil {
		p.t.Fatal(err)
	}
	uids := map[string]string{}
	for i := range found.Items {
		uids[found.Items[i].Name] = string(found.Items[i].UID) + " " + found.Items[i].ResourceVersion
	}
	return uids
}

// AC: with 200 installations in place, the charts of the former release give way to those of this one, are rolled back, and come again.
// Red when the new managers render, write to the user cluster, or write a status.
func TestAnUpgradeTouchesNothing(t *testing.T) {
	before, now := both(t)
	p := newPlatform(t)
	p.begin(before, installations)
	p.rested(seedName, installations, marks{})
	for _, to := range []release{now, before, now} {
		since := p.mark(masterName, seedName, userName)
		p.change(to)
		p.rested(seedName, installations, since)
		t.Logf("to %s:\non the master:\n%s\non the seed:\n%s\nin the user cluster:\n%s", to,
			p.writesTo(masterName, since), p.writesTo(seedName, since), p.writesTo(userName, since))
		p.expectNothingRendered(seedName)
		p.allReady(p.seed, installations)
	}
}
