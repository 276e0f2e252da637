package upgrade

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	few = 4
	// calmFor is how long nothing may be written, and mostTries how often what is refused may be tried meanwhile: two a second are a circle.
	calmFor   = 3 * time.Second
	mostTries = 3
	// setTarget is the namespace of what the set installs.
	setTarget = "by-set"
)

// TestManagersOfTwoReleases has a newer master beside an older seed, both newer, an older master beside a newer seed, and both older
// again, over objects with fields and of kinds that the older ones don't know. What both know goes on, the rest waits and says for what;
// nobody takes a field away that he does not know, nothing that stays asked for is written or removed in the user cluster, and nobody
// turns in a circle.
func TestManagersOfTwoReleases(t *testing.T) {
	long.Skip(t, "upgrade-beside", "two releases run beside each other for minutes")
	t.Parallel() // most of the time somebody waits
	before, now := both(t, older)
	p := newPlatform(t)
	p.begin(before, few)
	p.ensure(p.user, kit.Namespace(setTarget))

	t.Log("a newer master, an older seed")
	p.replace(now, masterChart, masterName)
	p.publish("1.1.0")
	p.move("template-000", "1.1.0")
	p.ensure(p.master, p.later(), set())
	p.outdated()
	p.publish("1.2.0")
	p.move("template-000", "1.2.0")
	p.expectCalm(masterName, seedName)

	t.Log("both newer")
	since := p.mark(userName)
	p.replace(now, seedChart, seedName)
	p.apply(p.seed, now.rights)
	p.roll()
	p.expectOnly(since, setTarget)

	t.Log("an older master, a newer seed")
	since = p.mark(userName)
	newer := p.newer()
	p.replace(before, masterChart, masterName)
	p.publish("1.3.0")
	p.move("template-001", "1.3.0")
	p.expectCalm(masterName, seedName)

	t.Log("both older, over what the newer ones left")
	p.replace(before, seedChart, seedName)
	p.publish("1.4.0")
	p.move("template-001", "1.4.0")
	p.expectCalm(masterName, seedName)
	p.expectOnly(since, "template-001")
	p.expectKept(newer)

	t.Log("both newer again")
	since = p.mark(userName)
	p.change(now)
	p.roll()
	p.expectCalm(masterName, seedName)
	p.expectOnly(since)
	p.expectKept(newer)
	p.expectSlot()
}

// replace puts the chart and the manager of a release in the place of those that are there.
func (p *platform) replace(by release, chart, where string) {
	p.t.Helper()
	p.install(by, chart, where)
	p.stop(chart, where)
	p.start(by, chart, where)
}

// publish adds a version of add-on template, with the same content.
func (p *platform) publish(version string) {
	p.t.Helper()
	found := p.catalogue()
	p.edit(p.master, found, func() {
		versions := &found.Spec.Addons[0].Versions
		next := (*versions)[0].DeepCopy()
		next.Version = version
		*versions = append(*versions, *next)
	})
}

// move an installation to another version, and wait until it is there.
func (p *platform) move(name, version string) {
	p.t.Helper()
	found := installation("template", name)
	p.edit(p.seed, found, func() { found.Spec.AddonRef.Version = version })
	expect.Object(p.t, p.seed, found, func(found *kubermaticv1.AddonInstallation) error {
		if found.Status.Version != version {
			return fmt.Errorf("version %q is installed: %+v", found.Status.Version, found.Status.Conditions)
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// edit reads an object and writes what was changed of it, as a merge patch: fields that the test itself does not know stay.
func (p *platform) edit(with client.Client, object client.Object, change func()) {
	p.t.Helper()
	expect.Read(p.t, with, object)
	before := object.DeepCopyObject().(client.Object)
	change()
	expect.Patch(p.t, with, object, client.MergeFrom(before))
}

// later is a catalogue with a field that the former release does not know.
func (p *platform) later() *kubermaticv1.AddonCatalogue {
	made := p.catalogue()
	made.Name, made.Spec.Addons = "later", made.Spec.Addons[:1]
	made.Spec.Addons[0].Name, made.Spec.Addons[0].Slot = "later", kubermaticv1.SlotSystem
	return made
}

// set is of a kind that the former release does not know.
func set() *kubermaticv1.AddonSet {
	made := installation("chart", "by-set")
	return &kubermaticv1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: "everywhere"},
		Spec: kubermaticv1.AddonSetSpec{ClusterSelector: &metav1.LabelSelector{}, Addons: []kubermaticv1.AddonSetItem{{
			Name: "by-set", AddonRef: made.Spec.AddonRef, TargetNamespace: setTarget, Values: made.Spec.Values,
		}}, Rollout: &kubermaticv1.Rollout{Pace: kubermaticv1.Pace{Soak: &metav1.Duration{}}}},
	}
}

// outdated waits until the master says that the seed takes neither the newer catalogue nor the set, and that the other one is there.
func (p *platform) outdated() {
	p.t.Helper()
	expect.Object(p.t, p.master, p.later(), func(found *kubermaticv1.AddonCatalogue) error {
		if len(found.Status.Seeds) != 1 || !strings.Contains(found.Status.Seeds[0].Message, "SeedOutdated") {
			return fmt.Errorf("the rows of seeds are %+v", found.Status.Seeds)
		}
		return nil
	})
	expect.Object(p.t, p.master, set(), func(found *kubermaticv1.AddonSet) error {
		if len(found.Status.Seeds) != 1 || !strings.Contains(found.Status.Seeds[0].Message, "the seed ") {
			return fmt.Errorf("the rows of seeds are %+v, the conditions %+v", found.Status.Seeds, found.Status.Conditions)
		}
		p.t.Logf("the set says of the seed: %s", found.Status.Seeds[0].Message)
		return nil
	})
	expect.HasCondition(p.t, p.master, p.catalogue(), expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonDistributed))
}

// roll waits until catalogue and set are everywhere.
func (p *platform) roll() {
	p.t.Helper()
	expect.HasCondition(p.t, p.master, p.later(), expect.Is(kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonDistributed))
	expect.Object(p.t, p.master, set(), func(found *kubermaticv1.AddonSet) error {
		if counts := found.Status.Counts; counts == nil || counts.Current != 1 {
			return fmt.Errorf("the set says %+v", found.Status)
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonComplete)
	})
	p.allReady(p.seed, few+1)
}

// expectSlot waits until the seed has the newer field again, which an older master left out.
func (p *platform) expectSlot() {
	p.t.Helper()
	merged := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: catalogueNamespace, Name: "later"}}
	expect.Object(p.t, p.seed, merged, func(found *kubermaticv1.AddonCatalogue) error {
		if found.Spec.Addons[0].Slot != kubermaticv1.SlotSystem {
			return fmt.Errorf("the add-on has slot %q", found.Spec.Addons[0].Slot)
		}
		return nil
	})
}

// newer gives objects fields that the former release does not know, and what their specs are then.
func (p *platform) newer() map[string]any {
	p.t.Helper()
	found := installation("chart", "chart-000")
	p.edit(p.seed, found, func() {
		found.Spec.DependsOn, found.Spec.ValuesTemplate = []kubermaticv1.InstallationName{"template-000"}, "a: b"
	})
	p.allReady(p.seed, few+1)
	return p.specs()
}

// specs of what has newer fields, or is of a newer kind.
func (p *platform) specs() map[string]any {
	p.t.Helper()
	specs := map[string]any{}
	for _, of := range []struct {
		with                  client.Client
		kind, namespace, name string
	}{
		{p.seed, "AddonInstallation", clusterNamespace, "chart-000"},
		{p.seed, "AddonInstallation", clusterNamespace, setTarget},
		{p.master, "AddonCatalogue", platformNamespace, "later"},
		{p.master, "AddonSet", platformNamespace, "everywhere"},
		{p.seed, "AddonSet", catalogueNamespace, "everywhere"},
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kubermaticv1.GroupVersion.WithKind(of.kind))
		expect.Get(p.t, of.with, client.ObjectKey{Namespace: of.namespace, Name: of.name}, object)
		specs[of.kind+" "+of.namespace+"/"+of.name] = object.Object["spec"]
	}
	return specs
}

// expectOnly holds that objects of these installations only were written in the user cluster.
func (p *platform) expectOnly(since marks, names ...string) {
	p.t.Helper()
	made := p.writesTo(userName, since).where(func(call string) bool {
		for _, name := range names {
			if strings.Contains(call, name) {
				return false
			}
		}
		return true
	})
	if len(made) > 0 {
		p.t.Errorf("in the user cluster there were written:\n%s", made)
	}
}

// expectCalm holds that nobody writes in a circle: the time comes in which nothing is written but events, and what is refused is tried a
// few times at most.
func (p *platform) expectCalm(clusters ...string) {
	p.t.Helper()
	since, begun := p.mark(clusters...), time.Now()
	p.await(func(context.Context) error {
		for _, where := range clusters {
			made, refused := p.writesTo(where, since).where(isNoEvent), p.refusedBy(where, since)
			if refused > mostTries || made.sum() > refused {
				after := time.Since(begun)
				since, begun = p.mark(clusters...), time.Now()
				return fmt.Errorf("in %s there were %d writes to %s, %d refused:\n%s", after, made.sum(), where, refused, made)
			}
		}
		if calm := time.Since(begun); calm < calmFor {
			return fmt.Errorf("it is calm for %s", calm)
		}
		return nil
	})
}

// expectKept holds that newer fields are as they were.
func (p *platform) expectKept(newer map[string]any) {
	p.t.Helper()
	if diff := cmp.Diff(newer, p.specs()); diff != "" {
		p.t.Errorf("what an older manager does not know was changed (-before +after):\n%s", diff)
	}
}
