package addoninstallation

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/test/given"
)

// configKinds are those that the seed of these tests allows. A core kind never gives values, even if it is listed.
var configKinds = []schema.GroupKind{
	backupTarget, values.DeploymentConfigKind, {Group: "storage.example.com", Kind: "Region"}, {Kind: "Secret"},
}

func fromObject(kind, name, path, target string) kubermaticv1.ValuesSource {
	return kubermaticv1.ValuesSource{ObjectRef: &kubermaticv1.ObjectReference{
		APIGroup: backupTarget.Group, Kind: kind, Name: name, Path: path, TargetPath: target,
	}}
}

func withSpec(version schema.GroupVersionKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(version)
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// testObjects fails if objects of the catalogue override what the installation has, if an object is read that is in
// another namespace, in none, of another kind or a Secret, if a value is in a message or in the status, and if template
// marks of an object reach templates with secrets.
func (w *valuesWorld) testObjects() {
	target := backupTarget.WithVersion("v1")
	w.create(
		withSpec(target, space, "defaults-a", map[string]any{"size": "default", "region": "default", "plan": map[string]any{"days": int64(7)}}),
		withSpec(target, space, "own", map[string]any{"plan": map[string]any{"hours": int64(3)}, "name": "hunter2", "text": "{{ hunter2 }}"}),
		withSpec(target, "cluster-b", "elsewhere", map[string]any{"name": "hunter2"}),
		withSpec(schema.GroupVersionKind{Group: target.Group, Version: "v1", Kind: "Region"}, "", "north", map[string]any{"name": "hunter2"}),
		given.Secret(space, "core", map[string][]byte{"data": []byte("hunter2")}),
	)
	entry := entryWith(`{"size":"catalogue","below":"catalogue"}`, "size: template\n",
		kubermaticv1.FormField{DisplayName: "R", InternalName: "region", Type: kubermaticv1.FormText, Default: raw(`"form"`)})
	missing := fromObject("BackupTarget", "none", "", "").ObjectRef
	missing.Optional = true
	entry.ValuesFrom = []kubermaticv1.VersionValuesSource{{ObjectRef: fromObject("BackupTarget", "defaults-$(cluster)", "", "").ObjectRef}, {ObjectRef: missing}}
	f, outcome := w.pass(entry, kubermaticv1.AddonInstallationSpec{
		ValuesFrom: []kubermaticv1.ValuesSource{fromObject("BackupTarget", "own", "spec.plan", "plan")},
	}, false)
	if outcome != nil {
		w.Fatalf("got %#v", outcome)
	}
	want := map[string]any{
		"below": "catalogue", "size": "default", "region": "form", "plan": map[string]any{"days": int64(7), "hours": int64(3)},
	}
	if diff := cmp.Diff(want, f.values.Merged); diff != "" {
		w.Errorf("values (-want +got):\n%s", diff)
	}
	if got := f.values.Origins["size"]; got != "catalogue valuesFrom[0]" {
		w.Errorf("the origin of size is %q", got)
	}
	projectConfigs(f, &loop.Outcome{})
	state := func(name string, origin kubermaticv1.ConfigOrigin, is kubermaticv1.ConfigStatus) kubermaticv1.ConfigState {
		return kubermaticv1.ConfigState{APIGroup: backupTarget.Group, Kind: "BackupTarget", Name: name, Origin: origin, State: is}
	}
	shown := []kubermaticv1.ConfigState{
		state("defaults-a", kubermaticv1.ConfigOfCatalogue, kubermaticv1.ConfigPending),
		state("none", kubermaticv1.ConfigOfCatalogue, kubermaticv1.ConfigMissing),
		state("own", kubermaticv1.ConfigOfInstallation, kubermaticv1.ConfigPending),
	}
	for i, one := range f.installation.Status.Configs {
		if has := one.Digest != ""; has != (one.State == kubermaticv1.ConfigPending) {
			w.Errorf("the digest of %s is %q", one.Name, one.Digest)
		}
		f.installation.Status.Configs[i].Digest = ""
	}
	if diff := cmp.Diff(shown, f.installation.Status.Configs); diff != "" {
		w.Errorf("status (-want +got):\n%s", diff)
	}
	w.refusedObjects(entry)
}

func (w *valuesWorld) refusedObjects(entry *kubermaticv1.AddonVersion) {
	core := fromObject("Secret", "core", "data", "")
	core.ObjectRef.APIGroup = ""
	for _, test := range []struct {
		from         kubermaticv1.ValuesSource
		secrets      bool
		reason, says string
		state        kubermaticv1.ConfigStatus
	}{
		{from: core, reason: "ValuesMissing", says: "core group", state: kubermaticv1.ConfigRefused},
		{from: fromObject("Vault", "own", "", ""), reason: "ValuesMissing", says: "--provider-kinds", state: kubermaticv1.ConfigRefused},
		{from: fromObject("BackupTarget", "elsewhere", "", ""), reason: "ValuesMissing", says: "does not exist", state: kubermaticv1.ConfigMissing},
		{from: fromObject("BackupTarget", "own", "spec.none", ""), reason: "ValuesMissing", says: "has nothing at", state: kubermaticv1.ConfigMissing},
		{from: fromObject("Region", "north", "", ""), reason: "ValuesMissing", says: "without namespaces", state: kubermaticv1.ConfigRefused},
		{from: fromObject("BackupTarget", "own", "metadata", ""), reason: "ValuesMissing", says: "does not begin with", state: kubermaticv1.ConfigRefused},
		{from: fromObject("BackupTarget", "own", "spec.name", ""), reason: "ValuesInvalid", says: "not a map", state: kubermaticv1.ConfigRefused},
		{from: fromObject("BackupTarget", "own", "", ""), secrets: true, reason: "ValuesInvalid", says: `the text at "text"`, state: kubermaticv1.ConfigPending},
	} {
		asking := entry.DeepCopy()
		asking.Template.ClusterSecrets = test.secrets
		f, outcome := w.pass(asking, kubermaticv1.AddonInstallationSpec{ValuesFrom: []kubermaticv1.ValuesSource{test.from}}, true)
		if !outcome.Is(loop.Stalled) || outcome.Reason != test.reason || !strings.Contains(outcome.Message, test.says) ||
			!strings.HasPrefix(outcome.Message, "spec.valuesFrom[0]: ") || strings.Contains(outcome.Message, "hunter2") {
			w.Errorf("%s: got %#v", test.says, outcome)
		}
		projectConfigs(f, outcome)
		if all := f.installation.Status.Configs; len(all) == 0 || all[len(all)-1].State != test.state {
			w.Errorf("%s: the status has %+v", test.says, all)
		}
	}
}
