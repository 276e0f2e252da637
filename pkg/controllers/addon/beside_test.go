package addon_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// offeredTo waits until a Cluster outside of KKP is offered so many versions.
func (w *world) offeredTo(of target.Description, versions, excluded int32) *v1.AddonCatalogue {
	w.t.Helper()
	key := cluster.AvailableOf(of.Ref)
	found := &v1.AddonCatalogue{}
	found.Namespace, found.Name = key.Namespace, key.Name
	return expect.Object(w.t, w.seed, found, func(found *v1.AddonCatalogue) error {
		if found.Status.Versions != versions || found.Status.ExcludedCount != excluded {
			return fmt.Errorf("it offers %d versions and excludes %d, want %d and %d", found.Status.Versions, found.Status.ExcludedCount,
				versions, excluded)
		}
		owners := found.OwnerReferences
		if len(owners) != 1 || owners[0].UID != of.UID || found.Labels[v1.LabelRole] != v1.RoleAvailable {
			return fmt.Errorf("it has owners %+v and labels %v", owners, found.Labels)
		}
		if found.Annotations[v1.AnnotationDigest] == "" {
			return fmt.Errorf("no digest yet")
		}
		return nil
	})
}

// TestClustersOfANamespaceAreOfferedEachTheirOwn: two Clusters outside of KKP share a namespace, and KKP has one of the name elsewhere. Red
// when they share a catalogue, when one of them has the other's versions, when an edit of one is not put back or the other is written for
// it, when its owner stays named by a version that is served no more, and when what needs a version of KKP is offered.
func TestClustersOfANamespaceAreOfferedEachTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.beside = &kit.Beside{}
	team := kit.Namespace(fmt.Sprintf("team-%d", worlds))
	expect.Create(w.t, w.seed, team)
	merged := w.merged("web", v1.CatalogueCustom, [2]string{"1.0.0", ""}, [2]string{"2.0.0", ">= 1.37"}, [2]string{"3.0.0", ""})
	merged.Spec.Addons[0].Versions[2].Constraints = &v1.Constraints{KKPVersion: ">= 2.30"}
	expect.Update(t, w.seed, merged)
	kkp := w.cluster("prod", "1.36.3")
	one := w.beside.Make(team.Name, kkp.Name)
	other := w.beside.Make(team.Name, "stage.eu", func(d *target.Description) { d.KubernetesVersion = "1.37.1" })
	w.start()
	w.expectOffer(kkp, "web: 3.0.0 1.0.0")
	mine, theirs := w.offeredTo(one, 1, 2), w.offeredTo(other, 2, 1)
	for _, excluded := range theirs.Status.Excluded {
		if excluded.Reason != v1.ExcludedKKPVersion || excluded.Message != "needs KKP >= 2.30; KKP does not manage the cluster" {
			t.Errorf("excluded is %+v", excluded)
		}
	}
	mine.Spec.Addons = nil
	mine.OwnerReferences[0].APIVersion = "cluster.x-k8s.io/v1beta1" // by a manager of before, and served no more
	expect.Update(t, w.seed, mine)
	expect.Object(t, w.seed, mine, func(found *v1.AddonCatalogue) error {
		if len(found.Spec.Addons) == 0 || found.OwnerReferences[0].APIVersion != one.Owner.APIVersion {
			return fmt.Errorf("it is not put back, of owners %+v", found.OwnerReferences)
		}
		return nil
	})
	expect.Delete(t, w.seed, mine)
	w.offeredTo(one, 1, 2)
	if after := w.offeredTo(other, 2, 1); after.ResourceVersion != theirs.ResourceVersion {
		t.Error("the neighbour's was written")
	}
}

// TestClustersOfOneTemplateAskEachForTheirOwn: two Clusters of a namespace have annotation initial-installations from one template. Red
// when one takes the other's name, when the Cluster is not named, and when a chart's release has the cluster in its name.
func TestClustersOfOneTemplateAskEachForTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.beside = &kit.Beside{}
	team := kit.Namespace(fmt.Sprintf("team-%d", worlds))
	expect.Create(w.t, w.seed, team)
	merged := w.merged("web", v1.CatalogueCustom, [2]string{"1.0.0", ""})
	merged.Spec.Addons[0].Versions[0].Template = &v1.Template{Method: v1.MethodHelm}
	merged.Spec.Addons[0].Versions[0].Source = &v1.Source{Docker: &v1.ImageSource{Image: "registry.example/chart:1"}}
	expect.Update(t, w.seed, merged)
	asks := func(d *target.Description) {
		d.Annotations[v1.AnnotationInitialInstallations] = `[{"name":"site","addonRef":{"name":"web"},"targetNamespace":"site"}]`
	}
	w.start()
	for _, one := range []target.Description{w.beside.Make(team.Name, "prod-1", asks), w.beside.Make(team.Name, "prod-2", asks)} {
		found := &v1.AddonInstallation{}
		found.Namespace, found.Name = team.Name, one.Name+".site"
		expect.Object(t, w.seed, found, func(found *v1.AddonInstallation) error {
			if found.Spec.ClusterName != one.Name || found.Spec.ReleaseName != "site" {
				return fmt.Errorf("it is for Cluster %q as release %q", found.Spec.ClusterName, found.Spec.ReleaseName)
			}
			return nil
		})
		expect.Eventually(t, expect.Patience, func() error {
			now, err := w.beside.Live(t.Context(), one.Ref)
			if err == nil && now.Annotations[v1.AnnotationInitialInstallations] != "" {
				err = fmt.Errorf("the entry of %q is still there", one.Name)
			}
			return err
		})
	}
	var all v1.AddonInstallationList
	if err := w.seed.List(t.Context(), &all, client.InNamespace(team.Name)); err != nil || len(all.Items) != 2 {
		t.Errorf("there are %d installations (%v)", len(all.Items), err)
	}
}
