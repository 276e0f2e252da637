package addoninstallation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// findsSecrets is how a chart reads the secrets of its cluster.
const findsSecrets = `(lookup "addons.kubermatic.k8c.io/v1" "ClusterSecrets" "" "cluster")`

// A user who may edit installations, but not Secrets, sets a value that a Core chart renders with tpl, with a text that
// asks for the kubeconfig. Then the Core catalogue's chart names secrets that its version does not request. It fails if
// values with marks are accepted (checkMarks taken out of layers) and tpl shows everything (the guard taken out of the
// renderer); and if secretsAskedFor is taken out of Render of pkg/install/rendering.
func TestUserValuesOfCoreChartsNeverMeetSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers = bothMethods()
	w.start()
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata:\n  version: {{ .Values.version | quote }}\n" +
		"  extra: {{ tpl .Values.extra . | quote }}\n"
	files := webChart("1.0.0")
	files["values.yaml"], files["templates/settings.yaml"] = "extra: none\n", settings
	asking := w.content("1.0.0", kubermaticv1.MethodHelm, "asking", files)
	asking.Template.ClusterSecrets = true
	w.offer("tplcore", kubermaticv1.CatalogueCore, asking)
	object := given.Installation(w.namespace, "tplcore", "tplcore", "tplcore", given.NewNamespace, given.Core)
	w.create(object)
	w.expectInstalled(object, "1.0.0", "")

	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"version":"loot","extra":"{{ .Values.kkp.Cluster.Kubeconfig }} {{ .Values.kkp.Credentials | toJson }}"}`)}
	})
	expect.HasCondition(t, w.seed, object, expect.Is(kubermaticv1.ConditionValuesResolved, "False", kubermaticv1.ReasonValuesInvalid))
	w.expectReady(object, kubermaticv1.ReasonValuesInvalid, `spec.values: the text at "extra" contains template marks`)
	if have := w.installed(object); have != "1.0.0" {
		t.Errorf("the cluster has %q", have)
	}
	// It fails if the admin of the custom core list is referred to an object that is restored.
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationCoreOrigin: kubermaticv1.OriginList}
	})
	w.expectReady(object, kubermaticv1.ReasonValuesInvalid, "ConfigMap custom-core-addons", `the text at "extra" contains template marks`)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"extra":"plain"}`)}
	})
	w.expectInstalled(object, "1.0.0", "")

	// A chart that names secrets which its version does not request; then one that requests them, and reads them where
	// they no longer are.
	files["templates/settings.yaml"] = strings.Replace(settings, "tpl .Values.extra .", findsSecrets+".Kubeconfig", 1)
	w.offer("tplcore", kubermaticv1.CatalogueCore, w.content("2.0.0", kubermaticv1.MethodHelm, "naming", files))
	w.expectReady(object, kubermaticv1.ReasonRenderFailed, `version "2.0.0"`, "set template.clusterSecrets: true")
	files["templates/settings.yaml"] = strings.Replace(settings, "tpl .Values.extra .", ".Values.kkp.Cluster.Kubeconfig", 1)
	reading := w.content("3.0.0", kubermaticv1.MethodHelm, "reading", files)
	reading.Template.ClusterSecrets = true
	w.offer("tplcore", kubermaticv1.CatalogueCore, reading)
	w.expectReady(object, kubermaticv1.ReasonRenderFailed, `version "3.0.0"`, `(lookup "addons.kubermatic.k8c.io/v1" "ClusterSecrets" "" "cluster")`)
	found := &corev1.ConfigMap{}
	expect.Get(t, w.seed, client.ObjectKey{Namespace: object.Spec.TargetNamespace, Name: "settings"}, found)
	if found.Data["version"] != "1.0.0" || found.Data["extra"] != "plain" {
		t.Errorf("the cluster has %v", found.Data)
	}

	files["templates/settings.yaml"] = strings.Replace(settings, "tpl .Values.extra .", findsSecrets+".Kubeconfig | len", 1)
	finding := w.content("4.0.0", kubermaticv1.MethodHelm, "finding", files)
	finding.Template.ClusterSecrets = true
	w.offer("tplcore", kubermaticv1.CatalogueCore, finding)
	w.expectInstalled(object, "4.0.0", "")
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil || len(found.Data["extra"]) < 3 {
		t.Errorf("the chart found a kubeconfig of %q bytes: %v", found.Data["extra"], err)
	}
}
