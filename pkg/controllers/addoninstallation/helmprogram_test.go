package addoninstallation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Our releases, as the real helm program handles them.

// helmProgram is the helm program, in one namespace of the user cluster.
type helmProgram struct {
	t                           *testing.T
	program, kubeconfig, folder string
	namespace                   string
}

func newHelmProgram(t *testing.T, namespace string) helmProgram {
	t.Helper()
	cache, err := binaries.Cache()
	expect.NoError(t, err)
	h := helmProgram{t: t, folder: t.TempDir(), namespace: namespace}
	if h.program, err = binaries.Find(cache, "helm", ""); err != nil {
		t.Fatal(err)
	}
	h.kubeconfig = filepath.Join(h.folder, "kubeconfig")
	expect.NoError(t, os.WriteFile(h.kubeconfig, fleet.Shared().Cluster("both").Kubeconfig, 0o600))
	return h
}

func (h helmProgram) run(arguments ...string) string {
	h.t.Helper()
	command := exec.CommandContext(h.t.Context(), h.program, append(arguments, "--namespace", h.namespace, "--kubeconfig", h.kubeconfig)...)
	command.Env = append(os.Environ(), "HOME="+h.folder)
	output, err := command.CombinedOutput()
	if err != nil {
		h.t.Fatalf("helm %q: %v\n%s", arguments, err, output)
	}
	return string(output)
}

// history is "revision status: description" of each revision.
func (h helmProgram) history(name string) []string {
	h.t.Helper()
	var rows []struct {
		Revision            int
		Status, Description string
	}
	expect.NoError(h.t, json.Unmarshal([]byte(h.run("history", name, "-o", "json")), &rows))
	var lines []string
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("%d %s: %s", row.Revision, row.Status, row.Description))
	}
	return lines
}

// hookMap is a hook that succeeds by existing.
func hookMap(name, events string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: \"" + events + "\"}}\n"
}

// The helm program uses a release of ours. It fails if hooks are not in the copy, if their last runs are not, if a
// pending or failed revision is not shown as helm shows it, and if helm can't upgrade or uninstall manually. Manual
// changes are reverted.
func TestHelmProgramOnHooks(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("seen", "seen", nil, map[string]string{
		"settings": settings, "a": job("prepare", "pre-install", ""), "b": hookMap("told", "post-install,post-upgrade,pre-delete"),
		"c": hookMap("checked", "test"),
	})
	stop := w.startUntil()
	t.Cleanup(stop)
	object := w.install("seen", "")
	h := newHelmProgram(t, object.Spec.TargetNamespace)
	prepare := w.awaitJob(object, "prepare")
	w.expectSummary(object, "False", kubermaticv1.ReasonHookRunning, "prepare")
	if diff := cmp.Diff([]string{"1 pending-install: Initial install underway"}, h.history("seen")); diff != "" {
		t.Errorf("while a hook runs (-want +got):\n%s", diff)
	}
	w.end(prepare, false)
	w.expectSummary(object, "False", kubermaticv1.ReasonHookFailed, "prepare")
	if got := h.history("seen"); len(got) != 1 || !strings.HasPrefix(got[0], `1 failed: Release "seen" failed: hook "seen/templates/a.yaml" of`) {
		t.Errorf("after a failure: %q", got)
	}
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.end(w.awaitJob(object, "prepare", prepare.UID), true)
	w.ready(object)
	if diff := cmp.Diff([]string{"1 deployed: Install complete"}, h.history("seen")); diff != "" {
		t.Errorf("installed (-want +got):\n%s", diff)
	}
	hooks := h.run("get", "hooks", "seen")
	for _, want := range []string{"# Source: seen/templates/a.yaml", "name: prepare", "name: told", "name: checked", "mirror.example.com/work:one"} {
		if !strings.Contains(hooks, want) {
			t.Errorf("helm get hooks has no %q:\n%s", want, hooks)
		}
	}
	if status := h.run("status", "seen", "-o", "json"); !strings.Contains(status, `"phase":"Succeeded"`) {
		t.Errorf("helm status tells of no hook that succeeded:\n%s", status)
	}
	stop() // a comparison would revert the manual changes
	h.run("test", "seen", "--filter", "name=checked")

	folder := filepath.Join(h.folder, "seen")
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: seen\nversion: 1.0.1\n", "values.yaml": "tag: by-hand\n", "templates/settings.yaml": settings,
	} {
		expect.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	h.run("upgrade", "seen", folder)
	if diff := cmp.Diff([]string{"1 superseded: Install complete", "2 deployed: Upgrade complete"}, h.history("seen")); diff != "" {
		t.Errorf("upgraded by hand (-want +got):\n%s", diff)
	}
	h.run("uninstall", "seen")
	if w.has(&corev1.ConfigMap{}, object.Spec.TargetNamespace, "settings") {
		t.Fatal("helm uninstall by hand left the settings")
	}
	w.start()
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "once more")
	expect.Object(t, w.seed, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "settings"}},
		func(settings *corev1.ConfigMap) error {
			if settings.Data["tag"] != "one" {
				return fmt.Errorf("tag %q", settings.Data["tag"])
			}
			return nil
		})
	expect.Eventually(t, expect.Patience, func() error {
		if status := w.releaseStatus(object.Spec.TargetNamespace, "sh.helm.release.v1.seen.v1"); status != "deployed" {
			return fmt.Errorf("the release is %q", status)
		}
		return nil
	})
}

// Another chart continues the revisions of its release. Another release name begins a new release, and the old one's
// Secrets are deleted once it exists. It fails if the first restarts the count, or if the old release stays or is
// deleted first.
func TestChangeOfChartAndReleaseName(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	templates := map[string]string{"settings": settings, "a": hookMap("first", "pre-install"), "b": hookMap("later", "pre-upgrade")}
	w.publishChart("changed", "apples", nil, templates)
	w.start()
	object := w.install("changed", "")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	w.publishChart("changed", "pears", nil, templates)
	w.expectRelease(object, "changed", 2)
	h := newHelmProgram(t, namespace)
	if diff := cmp.Diff([]string{"1 superseded: Install complete", "2 deployed: Upgrade complete"}, h.history("changed")); diff != "" {
		t.Errorf("another chart (-want +got):\n%s", diff)
	}
	if !w.has(&corev1.ConfigMap{}, namespace, "later") {
		t.Error("the upgrade's hook did not run")
	}
	w.publishChart("changed", "pears", func(version *kubermaticv1.AddonVersion) {
		version.Template.Helm = &kubermaticv1.HelmOptions{ReleaseName: "renamed"}
	}, templates)
	w.expectRelease(object, "renamed", 1)
	if diff := cmp.Diff([]string{"1 deployed: Install complete"}, h.history("renamed")); diff != "" {
		t.Errorf("another release name (-want +got):\n%s", diff)
	}
	expect.Eventually(t, expect.Patience, func() error {
		if listed := h.run("list", "--all", "-q"); listed != "renamed\n" {
			return fmt.Errorf("helm list shows %q", listed)
		}
		return nil
	})
}

func (w *world) expectRelease(object *kubermaticv1.AddonInstallation, name string, revision int32) {
	w.t.Helper()
	want := kubermaticv1.HelmReleaseState{Name: name, Revision: revision, Status: "deployed"}
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Release == nil || *object.Status.Release != want {
			return fmt.Errorf("the release is %v, want %v", object.Status.Release, want)
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", "")
	})
}
