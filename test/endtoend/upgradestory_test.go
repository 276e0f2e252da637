package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// names is the add-on that has a set for each release of Kubernetes.
const names = "names"

// reportedGates are what the upgrade waits for: the core list has three, sets have the last.
var reportedGates = []string{"cni", "cloud", "storage", names}

// testUpgrade tells, in the order in which the API server stored it, what stood when each part of an upgrade was let go: a control plane
// whose API server is started anew as the newer release, and workers after it. Red where the control plane goes before the network and the
// set for the next release have brought what fits both sides, where workers go before every gate is made for the newer version, when what
// sets hand over is made anew or uninstalled, and when the manager may not hold an upgrade, or not let it go on.
func (m *management) testUpgrade(t *testing.T) {
	before := m.perRelease(t)
	history, err := clusterapi.Follow(context.Background(), m.box.Client(sandbox.Management), of(m.upgraded))
	expect.NoError(t, err)
	t.Cleanup(history.Stop)
	// A webhook of Cluster API asks the user cluster first, which may take some tries.
	expect.Eventually(t, expect.Patience, func() error {
		return clusterapi.SetVersion(t.Context(), m, of(m.upgraded), "v"+binaries.Newer)
	})
	m.awaitHeld(t, m.upgraded, "True", kubermaticv1.ReasonBeforeControlPlane)
	m.offerBridging(t)
	var story *golden.Story
	report := func() error {
		story = golden.NewStory("What stood when each part of an upgrade went")
		return reportUpgrade(history, story)
	}
	expect.Eventually(t, 2*expect.Patience, report)
	m.awaitHeld(t, m.upgraded, "False", kubermaticv1.ReasonNotUpgrading)
	expect.NoError(t, errors.Join(history.Complete(t.Context()), report()))
	story.Match(t, "testdata/upgrade.golden")
	if now := m.installedUIDs(t, "of release-37"); now != before {
		t.Errorf("what was handed over was made anew: %+v, before %+v", now, before)
	}
}

// milestones of an upgrade, in no order but for those of one moment.
var milestones = []struct {
	what string
	is   func(clusterapi.Progress) bool
}{
	{"it is asked for", func(p clusterapi.Progress) bool { return p.Wanted == binaries.Newer }},
	{"the control plane is let go", func(p clusterapi.Progress) bool { return !p.Hook }},
	{"the control plane goes", func(p clusterapi.Progress) bool { return p.ControlPlane == binaries.Newer }},
	{"workers are let go", func(p clusterapi.Progress) bool { return p.ControlPlane == binaries.Newer && !p.Held }},
	{"the hook is back", func(p clusterapi.Progress) bool { return p.ControlPlane == binaries.Newer && p.Hook }},
	{"the first workers go", func(p clusterapi.Progress) bool { return slices.Contains(p.Workers, binaries.Newer) }},
	{"all workers are there", func(p clusterapi.Progress) bool { return slices.Equal(p.Workers, []string{binaries.Newer}) }},
}

// reportUpgrade tells each milestone when it came first. An error: one did not yet.
func reportUpgrade(history *clusterapi.History, story *golden.Story) error {
	reported := map[string]bool{}
	err := history.Replay(func(now clusterapi.Progress) error {
		for _, one := range milestones {
			if now.Wanted == binaries.Newer && !reported[one.what] && one.is(now) {
				reported[one.what] = true
				story.Add(one.what, gatesIn(now)...)
			}
		}
		return nil
	})
	if err == nil && len(reported) < len(milestones) {
		err = fmt.Errorf("it is at %v only", reported)
	}
	return err
}

func gatesIn(now clusterapi.Progress) (lines []string) {
	for _, name := range reportedGates {
		gate, isThere := now.Gates[name]
		line := []string{name, gate.Version}
		if gate.Set == "" { // what a set pins may be older than the control plane, as long as it fits
			line = append(line, "for", gate.MadeFor)
		} else {
			line = append(line, "of", gate.Set)
		}
		if !gate.Ready || !isThere {
			line = append(line, "is not Ready")
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

// perRelease has an add-on with a slot in a set for each of two releases, and gives what stands of it.
func (m *management) perRelease(t *testing.T) string {
	t.Helper()
	master := m.box.Client(sandbox.Master)
	catalogue := catalogueOf(names, gitVersion(m.box, names, "36"))
	catalogue.Spec.Addons[0].Slot = kubermaticv1.SlotSystem
	catalogue.Spec.Addons[0].Versions = nil
	files := map[string]string{}
	for release, fits := range map[string]kubermaticv1.VersionRange{"36": "< 1.37", "37": ">= 1.36, < 1.38"} {
		files[release+"/names.yaml"] = configMapManifest(names) + "data: {of: of release-" + release + "}\n"
		version := gitVersion(m.box, names, release)
		version.Version, version.Constraints = "1."+release+".0", &kubermaticv1.Constraints{K8sVersion: fits}
		catalogue.Spec.Addons[0].Versions = append(catalogue.Spec.Addons[0].Versions, version)
	}
	commit(t, m.box, names, files)
	expect.Ensure(t, master, catalogue)
	for _, release := range []string{"36", "37"} {
		expect.Ensure(t, master, &kubermaticv1.AddonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "release-" + release},
			Spec: kubermaticv1.AddonSetSpec{
				ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{sandbox.LabelRing: m.upgraded.Ring}},
				Constraints:     &kubermaticv1.Constraints{K8sVersion: kubermaticv1.VersionRange("~1." + release)},
				Addons: []kubermaticv1.AddonSetItem{{
					Name: names, AddonRef: kubermaticv1.AddonReference{Name: names, Version: "1." + release + ".0"},
					TargetNamespace: metav1.NamespaceDefault,
				}},
			},
		})
	}
	return m.installedUIDs(t, "of release-36")
}

// installedUIDs waits until the user cluster has what a set's version brings, and tells the UIDs of it and of its installation.
func (m *management) installedUIDs(t *testing.T, content string) string {
	t.Helper()
	installed := ready(t, m, existing(m.upgraded, m.upgraded.Name+"."+names))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: names}}
	expect.Object(t, m.box.Client(m.upgraded.Name), object, func(found *corev1.ConfigMap) error {
		if found.Data["of"] != content {
			return fmt.Errorf("it says %q", found.Data)
		}
		return nil
	})
	return fmt.Sprint([]types.UID{installed.UID, object.UID})
}

// offerBridging has the network in a version that fits both sides.
func (m *management) offerBridging(t *testing.T) {
	t.Helper()
	infrastructure := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "infrastructure"}}
	expect.Read(t, m, infrastructure)
	addons := infrastructure.Spec.Addons
	network := &addons[slices.IndexFunc(addons, func(addon kubermaticv1.Addon) bool { return addon.Name == "cni" })]
	bridging := *network.Versions[0].DeepCopy()
	bridging.Version, bridging.Source.Git.Path = "1.1.0", "cni/1.1"
	bridging.Constraints = &kubermaticv1.Constraints{K8sVersion: ">= 1.36, < 1.38"}
	network.Versions = append(network.Versions, bridging)
	expect.Update(t, m, infrastructure)
}
