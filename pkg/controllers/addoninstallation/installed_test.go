package addoninstallation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/test/expect"
)

// expectSpeaksOf waits until all parts of the status agree on the installed version and the present generation:
// version, lastApplied, artifact and Healthy; and on the wanted version.
func (w *world) expectSpeaksOf(object *kubermaticv1.AddonInstallation, installed, target, healthy string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		state := &object.Status
		if state.Version != installed || state.Target != target || resolution.InstalledInStatus(object) != installed {
			return fmt.Errorf("version %q, target %q, installed %q; want %q and %q",
				state.Version, state.Target, resolution.InstalledInStatus(object), installed, target)
		}
		if state.ObservedGeneration != object.Generation {
			return fmt.Errorf("the status is of generation %d, want %d", state.ObservedGeneration, object.Generation)
		}
		last := state.LastApplied
		if last == nil || last.Addon != string(object.Spec.AddonRef.Name) || last.Version != installed || last.ArtifactDigest != state.Artifact.Digest {
			return fmt.Errorf("last applied is %+v with artifact %+v, want version %q", last, state.Artifact, installed)
		}
		if reported := meta.FindStatusCondition(state.Conditions, kubermaticv1.ConditionHealthy); reported == nil ||
			reported.Status != metav1.ConditionStatus(healthy) || reported.ObservedGeneration != object.Generation {
			return fmt.Errorf("Healthy is %+v, want %s at generation %d", reported, healthy, object.Generation)
		}
		return nil
	})
}

// TestStatusSpeaksOfWhatIsInstalled fails, in this order, if status.version is the resolved version (choose sets it),
// if artifact is the fetched one (fetch sets it), if Healthy keeps the state of the previous revision (setHealthy
// without its last case), and if a refused edit leaves Healthy at an earlier generation (maintain without assess).
func TestStatusSpeaksOfWhatIsInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	files := map[string]string{}
	for folder, selector := range map[string]string{"one": "web", "two": "other", "three": "web"} {
		files[folder+"/settings.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Variables.version }}'}\n"
		files[folder+"/web.yaml"] = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web, labels: {of: " + folder + "}}\nspec:\n  replicas: 0\n" +
			"  selector: {matchLabels: {app: " + selector + "}}\n  template:\n    metadata: {labels: {app: " + selector + "}}\n" +
			"    spec: {containers: [{name: web, image: \"example.com/web:1\"}]}\n"
	}
	all := w.content("", kubermaticv1.MethodGoTemplate, "spoken", files)
	version := func(number, folder string) kubermaticv1.AddonVersion {
		made := *all.DeepCopy()
		made.Version, made.Source.Git.Path = number, "spoken/"+folder
		made.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q}`, number)}
		return made
	}
	w.offer("spoken", kubermaticv1.CatalogueCustom, version("1.0.0", "one"), version("2.0.0", "two"), version("3.0.0", "three"))

	object := w.install("spoken", "1.0.0")
	w.expectReady(object, kubermaticv1.ReasonReady)
	w.expectSpeaksOf(object, "1.0.0", "1.0.0", "True")

	w.want(object, "2.0.0")
	w.expectReady(object, kubermaticv1.ReasonImmutableField)
	w.expectSpeaksOf(object, "1.0.0", "2.0.0", "Unknown")

	w.want(object, "3.0.0")
	w.expectReady(object, kubermaticv1.ReasonReady)
	w.expectSpeaksOf(object, "3.0.0", "3.0.0", "True")

	w.want(object, "1.0.0")
	w.expectReady(object, kubermaticv1.ReasonDowngradeRefused)
	w.expectSpeaksOf(object, "3.0.0", "3.0.0", "True")
}
