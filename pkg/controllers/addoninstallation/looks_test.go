package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// define creates a kind of the world's group.
func (w *world) define(kind string) {
	w.t.Helper()
	definition := &unstructured.Unstructured{}
	expect.NoError(w.t, yaml.Unmarshal([]byte(w.kindOf(kind)), &definition.Object))
	w.create(definition)
}

// TestAChartIsWrittenOnceAllOfItCanBe fails if a part of a chart is written while the user cluster lacks a kind of its
// manifest or has one of its names, if that is not reported, if the kind of a hook is required before the hook runs,
// and if the installation does not continue automatically.
func TestAChartIsWrittenOnceAllOfItCanBe(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.clock = kit.RunningClock(t)
	custom := func(kind, metadata string) string {
		return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: first%s}\nspec: {size: 3}\n", w.group(), kind, metadata)
	}
	w.publishChart("whole", "whole", nil, map[string]string{
		"settings": settings, "widget": custom("Widget", ""),
		"hook": custom("Gadget", ", annotations: {helm.sh/hook: pre-install}"),
	})
	w.start()
	object := w.install("whole", "")
	namespace := object.Spec.TargetNamespace
	w.expectReady(object, kubermaticv1.ReasonKindNotServed, "Widget."+w.group(), "install the CRD or API server of the kind", "nothing of this revision")
	if w.has(&corev1.Namespace{}, "", namespace) {
		t.Error("the namespace is there")
	}
	w.define("Widget")
	w.hurry(20, func() { w.expectReady(object, kubermaticv1.ReasonHookFailed, "Gadget."+w.group()) })
	w.define("Gadget")
	w.hurry(20, func() { w.ready(object) })

	taken := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken"}}
	w.create(taken)
	w.publishChart("whole", "whole", func(version *kubermaticv1.AddonVersion) { version.Version = "2.0.0" }, map[string]string{
		"settings": strings.Replace(settings, "{{ .Values.tag }}", "two", 1), "widget": custom("Widget", ""),
		"taken": strings.Replace(settings, "settings", "taken", 1),
	})
	w.expectReady(object, kubermaticv1.ReasonObjectExists, "ConfigMap "+namespace+"/taken", "nothing of this revision")
	configs := &corev1.ConfigMap{}
	if !w.has(configs, namespace, "settings") || configs.Data["tag"] != "one" {
		t.Errorf("settings are %v", configs.Data)
	}
	w.deleteAll(taken)
	w.hurry(20, func() { w.ready(object) })
	expect.Object(t, w.seed, configs, func(configs *corev1.ConfigMap) error {
		if configs.Data["tag"] != "two" {
			return fmt.Errorf("settings are %v", configs.Data)
		}
		return nil
	})
}

// A chart requires a kind that is not among its own objects, such as one that its operator creates. It fails if the
// chart is written before the kind is served, or not automatically afterwards; with either method.
func TestAVersionWaitsForTheKindsThatItNeeds(t *testing.T) {
	t.Parallel()
	eachMethod(t, func(t *testing.T, w *world, method kubermaticv1.Method) {
		version := w.methods("1.0.0", method, "")
		for _, kind := range []string{"Widget", "Gadget"} {
			version.Template.RequiredResourceTypes = append(version.Template.RequiredResourceTypes,
				kubermaticv1.ResourceType{Group: w.group(), Version: "v1", Kind: kind})
		}
		w.offer("needs", kubermaticv1.CatalogueCustom, version)
		w.start()
		object := w.install("needs", "")
		w.expectReady(object, kubermaticv1.ReasonKindNotServed, w.group()+"/v1 Widget, "+w.group()+"/v1 Gadget", "which this version needs")
		w.define("Widget")
		w.hurry(20, func() {
			w.expectReady(object, kubermaticv1.ReasonKindNotServed, "does not serve "+w.group()+"/v1 Gadget")
		})
		if w.has(&corev1.Namespace{}, "", object.Spec.TargetNamespace) {
			t.Error("the namespace is there")
		}
		w.define("Gadget")
		w.hurry(20, func() { w.ready(object) })
		w.settings(object)
	})
}
