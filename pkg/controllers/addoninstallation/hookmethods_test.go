package addoninstallation_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// Hooks of an add-on that changes from go-template to a chart, and of a version that is rolled back.

// A removal during a change from go-template to a chart ends the running hook of the chart, and runs the chart's own
// hook before the removal, as during any upgrade: it can clean up the previous version's leftovers. It fails if the
// release counts as never complete (HasDeletionHooks by the action alone), and if the previous method's hook runs.
func TestRemovalAmidAChangeOfMethodRunsTheHooksOfTheNewOne(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	first := w.templated("1.0.0", map[string]string{
		"settings.yaml": templateSettings, "account.yaml": account, "d.yaml": ocmJob("farewell", "agent"),
	})
	second := w.content("2.0.0", kubermaticv1.MethodHelm, w.unique("methods"), map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: turned\nversion: 2.0.0\n", "values.yaml": "tag: two\n", "templates/settings.yaml": settings,
		"templates/a.yaml": job("prepare", "pre-install", ""), "templates/b.yaml": job("goodbye", "pre-delete", ""),
	})
	second.Values = nil
	w.offer("turned", kubermaticv1.CatalogueCustom, first, second)
	w.start()
	object := w.install("turned", "1.0.0")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	w.create(configMap(namespace, "foreign")) // so that the namespace stays
	w.want(object, "2.0.0")
	prepare := w.awaitJob(object, "prepare")
	w.delete(object)
	goodbye := w.awaitJob(object, "goodbye")
	expect.Gone(t, w.seed, prepare)
	w.expectSummary(object, "False", kubermaticv1.ReasonRemoving, "goodbye of event pre-delete")
	if !w.has(configMap(namespace, "settings"), namespace, "settings") {
		t.Error("what the former version left goes before the hook ended")
	}
	w.end(goodbye, true)
	expect.Gone(t, w.seed, object)
	if w.has(&batchv1.Job{}, namespace, "farewell") {
		t.Error("the hook of the former method ran")
	}
}

// A go-template version that is rolled back leaves no Job of its hooks next to the restored one. It fails without
// clearHooks in GiveWay.
func TestARollbackClearsTheHooksOfTheVersionThatFailed(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.clock = kit.RunningClock(t)
	atomic := func(version string, timeout time.Duration, files map[string]string) kubermaticv1.AddonVersion {
		made := w.templated(version, files)
		made.Values = raw(`{"tag":"` + version + `"}`)
		made.Template.Atomic, made.Template.Timeout = true, &metav1.Duration{Duration: timeout}
		return made
	}
	first := atomic("1.0.0", 10*time.Hour, map[string]string{"settings.yaml": templateSettings})
	second := atomic("1.1.0", time.Minute, map[string]string{"settings.yaml": templateSettings, "a.yaml": templateJob("migrate", "pre-upgrade", "")})
	w.offer("back", kubermaticv1.CatalogueCustom, first, second)
	w.start()
	object := w.install("back", "1.0.0")
	w.ready(object)
	w.want(object, "1.1.0")
	migrate := w.awaitJob(object, "migrate")
	w.end(migrate, false)
	w.hurry(100, func() {
		w.expectReady(object, kubermaticv1.ReasonRolledBack, `"1.1.0" failed`, `back to version "1.0.0"`)
	})
	w.expectNoJobs(object.Spec.TargetNamespace)
	live := configMap(object.Spec.TargetNamespace, "settings")
	if !w.has(live, live.Namespace, live.Name) || live.Data["tag"] != "1.0.0" {
		t.Errorf("the settings are %v", live.Data)
	}
}
