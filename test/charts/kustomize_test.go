package charts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

var (
	// baseApplied is how the bases' README says that one is applied.
	baseApplied = regexp.MustCompile(`(?m)^ *kubectl (apply .*-k) deploy/kustomize/trellis-seed\b`)
	// baseDeleted is how it says that one goes without its kinds.
	baseDeleted = regexp.MustCompile("`kubectl (delete -f) objects.yaml`")
)

// TestBasesAreWhatTheChartsAre: both kustomize bases are applied by the README's command to one API server, twice, and then their charts
// over them, as a dry run in kubectl's name; the manager's pod of what is there is made, as a dry run too; and the bases are deleted as
// the README says. Red when a base lacks an object of its chart, or a field, or has one besides, when to apply a base again changes
// something, when the pod is refused, and when kinds go with the base or anything else stays.
func TestBasesAreWhatTheChartsAre(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "deploy", "kustomize")
	apply, remove := asReadmeSays(t, folder, baseApplied), asReadmeSays(t, folder, baseDeleted)
	c := kit.Client(t, fleet.Shared().Cluster(upgraded).Config)
	withoutCRDs(t, c)
	defer withoutCRDs(t, c)

	charts := []string{"trellis-seed", "trellis-master"}
	var all []*unstructured.Unstructured
	for _, chart := range charts {
		wanted := asABase(t, chart)
		told := strings.Fields(runProgram(t, "kubectl", append(apply, filepath.Join(folder, chart), "--output=name")...))
		if diff := cmp.Diff(names(wanted), slices.Sorted(slices.Values(told))); diff != "" {
			t.Errorf("%s: objects of the chart and of the base (-want +got):\n%s", chart, diff)
		}
		runProgram(t, "kubectl", "wait", "--for=condition=Established", "crd", "--all") // until then its status changes
		all = append(all, wanted...)
	}
	found := versions(t, c, all)
	for _, chart := range charts {
		runProgram(t, "kubectl", append(apply, filepath.Join(folder, chart))...)
	}
	if diff := cmp.Diff(found, versions(t, c, all)); diff != "" {
		t.Errorf("to apply the bases again changes (-first +second):\n%s", diff)
	}
	for _, object := range all {
		expectUnchangedByChart(t, c, object)
	}
	for _, chart := range charts {
		var manager appsv1.Deployment
		expect.Get(t, c, client.ObjectKey{Namespace: namespace, Name: chart}, &manager)
		if err := dryRunPod(t.Context(), c, manager); err != nil {
			t.Errorf("%s: the manager's pod is refused: %v", chart, err)
		}
		// Nothing of it has a finalizer.
		runProgram(t, "kubectl", append(remove, filepath.Join(folder, chart, "objects.yaml"), "--wait=false")...)
	}
	expectKindsAlone(t, c, all)
}

// asReadmeSays are the arguments of a command in the README of the bases.
func asReadmeSays(t *testing.T, folder string, command *regexp.Regexp) []string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := command.FindSubmatch(readme)
	if found == nil {
		t.Fatalf("the README of the bases has no command as %s", command)
	}
	return slices.Clip(strings.Fields(string(found[1])))
}

// asABase are the objects of a chart as it is, less those that Helm alone runs, with kustomize in the place of Helm.
func asABase(t *testing.T, chart string) []*unstructured.Unstructured {
	t.Helper()
	crds, objects := render(t, rendering{chart: chart, why: "as a base"})
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetAnnotations()["helm.sh/hook"] != ""
	})
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		const manager = `"app.kubernetes.io/managed-by":`
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), manager+`"Helm"`, manager+`"kustomize"`)), object); err != nil {
			t.Fatal(err)
		}
	}
	return append(crds, objects...)
}

// names of objects as kubectl tells them, in their order.
func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, object := range objects {
		kind := object.GroupVersionKind()
		all = append(all, strings.TrimSuffix(strings.ToLower(kind.Kind)+"."+kind.Group, ".")+"/"+object.GetName())
	}
	return slices.Sorted(slices.Values(all))
}

// versions are the resourceVersions of objects.
func versions(t *testing.T, c client.Client, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range objects {
		if found := reading(t, c, object); found != nil {
			all[object.GetKind()+" "+object.GetName()] = found.GetResourceVersion()
		}
	}
	return all
}

// reading is an object as the API server has it; nil: it has none.
func reading(t *testing.T, c client.Client, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err := c.Get(t.Context(), client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// expectUnchangedByChart holds that an object of a chart, applied by kubectl, would change nothing: neither what is there, nor who owns
// which fields.
func expectUnchangedByChart(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	found, applied := reading(t, c, object), object.DeepCopy()
	if found == nil {
		t.Errorf("there is no %s %q", object.GetKind(), object.GetName())
		return
	}
	options := []client.ApplyOption{client.FieldOwner("kubectl"), client.ForceOwnership, client.DryRunAll}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), options...); err != nil {
		t.Errorf("applying %s %q: %v", object.GetKind(), object.GetName(), err)
		return
	}
	if diff := cmp.Diff(applied.Object, found.Object); diff != "" {
		t.Errorf("%s %q (-chart +base):\n%s", object.GetKind(), object.GetName(), diff)
	}
}

// expectKindsAlone holds that of these objects the CRDs are left, and no others.
func expectKindsAlone(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		isKind := object.GetKind() == "CustomResourceDefinition"
		if isLeft := reading(t, c, object) != nil; isLeft != isKind {
			t.Errorf("%s %q is left: %t", object.GetKind(), object.GetName(), isLeft)
		}
	}
}
