package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

func installationOf(cluster sandbox.UserCluster) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(), Name: page}}
}

// hasVersion is nil once a cluster's installation has that version and is Ready; "" is no installation.
func (s *story) hasVersion(ctx context.Context, cluster sandbox.UserCluster, version string) error {
	found := installationOf(cluster)
	err := s.box.Client(cluster.Seed).Get(ctx, client.ObjectKeyFromObject(found), found)
	if apierrors.IsNotFound(err) && version == "" {
		return nil
	}
	if err != nil {
		return err
	}
	if found.Status.Version != version {
		return fmt.Errorf("%s has version %q, want %q", cluster.Name, found.Status.Version, version)
	}
	return expect.Condition(found, kubermaticv1.ConditionReady, "True", "")
}

func (s *story) expectVersions(ctx context.Context, version string, clusters ...sandbox.UserCluster) error {
	for _, cluster := range clusters {
		if err := s.hasVersion(ctx, cluster, version); err != nil {
			return err
		}
	}
	return nil
}

// awaitSet reads the set until holds returns nil.
func (s *story) awaitSet(ctx context.Context, holds func(*kubermaticv1.AddonSet) error) (*kubermaticv1.AddonSet, error) {
	set := &kubermaticv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: page}}
	return set, s.box.Await(ctx, sandbox.Master, set, func(client.Object) error { return holds(set) })
}

func (s *story) editSet(ctx context.Context, patch string) error {
	set := &kubermaticv1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: page}}
	if err := s.box.Client(sandbox.Master).Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("editing the set: %w", err)
	}
	return nil
}

// pending is in how many clusters something of that kind would be done.
func pending(set *kubermaticv1.AddonSet, change kubermaticv1.ChangeKind) (clusters int32) {
	for _, one := range set.Status.Pending {
		if one.Change == change {
			clusters += one.Clusters
		}
	}
	return clusters
}

func (s *story) awaitGone(ctx context.Context, where string, object client.Object) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := s.box.Client(where).Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("%T %q on %s does not go: %w", object, object.GetName(), where, err)
	}
	return nil
}

// brokenPage is the version that never gets healthy: nobody places its Pod.
const brokenPage = "1.2.0"

// publishPages offers the add-on in these versions, all of which give way where they fail.
func (s *story) publishPages(ctx context.Context, versions ...string) error {
	var offered []kubermaticv1.AddonVersion
	for _, version := range versions {
		if err := s.box.Sources.Chart(pageChart(version)); err != nil {
			return err
		}
		offered = append(offered, kubermaticv1.AddonVersion{
			Version: version,
			Template: &kubermaticv1.Template{
				Method: kubermaticv1.MethodHelm, Atomic: true, Timeout: &metav1.Duration{Duration: patienceWith(version)},
			},
			Source: &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
				URL: s.box.Sources.ChartsURL, Chart: page, Version: version,
				CASecretRef: &kubermaticv1.LocalReference{Name: sandbox.CASecret},
			}},
		})
	}
	master := s.box.Client(sandbox.Master)
	found := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: page}}
	err := master.Get(ctx, client.ObjectKeyFromObject(found), found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the catalogue of the set's add-on: %w", err)
	}
	found.Spec.Addons = []kubermaticv1.Addon{{Name: page, Versions: offered}}
	if apierrors.IsNotFound(err) {
		return master.Create(ctx, found)
	}
	return master.Update(ctx, found)
}

// patienceWith is how long a version may take until it is healthy: one that never is need not be waited for.
func patienceWith(version string) time.Duration {
	if version == brokenPage {
		return time.Second
	}
	return 5 * time.Second
}

func pageChart(version string) map[string]string {
	files := map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: page\nversion: " + version + "\n",
		"templates/page.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\ndata: {version: " + version + "}\n",
	}
	if version == brokenPage {
		files["templates/idle.yaml"] = "apiVersion: v1\nkind: Pod\nmetadata: {name: idle}\n" +
			"spec: {schedulerName: nobody, containers: [{name: idle, image: registry.example/idle}]}\n"
	}
	return files
}
