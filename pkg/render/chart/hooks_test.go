package chart_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/manifest"
)

func hook(name, annotations string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\n"
}

// TestHooks fails when events, weights or policies are not read as Helm reads them (upper case, blanks, repetitions,
// unknown words), when a hook is among the objects, or when disableHooks leaves one in.
func TestHooks(t *testing.T) {
	content := folder(
		"templates/a.yaml", configMap+"c\n---\n"+hook("first", `helm.sh/hook: "pre-install, PRE-upgrade,pre-install", helm.sh/hook-weight: "-5"`),
		"templates/b.yaml", hook("second", `helm.sh/hook: post-delete, helm.sh/hook-delete-policy: "hook-failed , before-hook-creation,keep"`)+
			"---\n"+hook("helm2", `helm.sh/hook: "pre-install,crd-install"`),
		"templates/c.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account, annotations: {helm.sh/hook: pre-rollback, "+
			"helm.sh/hook-weight: heavy, helm.sh/hook-output-log-policy: hook-failed}}\n",
		"templates/tests/t.yaml", hook("test", `helm.sh/hook: test-success`),
	)
	result := mustRender(t, content, nil)
	want := []render.Hook{ // ServiceAccounts come before Jobs
		{Path: "demo/templates/c.yaml", Events: []string{"pre-rollback"}, LogPolicies: []string{"hook-failed"}},
		{Path: "demo/templates/a.yaml", Events: []string{"pre-install", "pre-upgrade"}, Weight: -5},
		{Path: "demo/templates/b.yaml", Events: []string{"post-delete"}, DeletePolicies: []string{"before-hook-creation", "hook-failed"}},
		{Path: "demo/templates/tests/t.yaml", Events: []string{"test"}},
	}
	if diff := cmp.Diff(want, result.Chart.Hooks, cmpopts.IgnoreFields(render.Hook{}, "Object")); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	var objects []*unstructured.Unstructured
	for _, one := range result.Chart.Hooks {
		objects = append(objects, one.Object)
	}
	if diff := cmp.Diff([]string{"ServiceAccount/account", "Job/first", "Job/second", "Job/test"}, names(render.Result{Objects: objects})); diff != "" {
		t.Errorf("their objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap/c"}, names(result)); diff != "" || strings.Contains(result.Chart.Manifest, "Job") {
		t.Errorf("objects (-want +got):\n%s\nmanifest:\n%s", diff, result.Chart.Manifest)
	}
	without := input(content, nil)
	without.Release.DisableHooks = true
	left, err := chart.New().Render(context.Background(), without)
	if err != nil {
		t.Fatal(err)
	}
	result.Chart.Hooks = nil
	if diff := cmp.Diff(result, left); diff != "" {
		t.Errorf("without hooks (-want +got):\n%s", diff)
	}
}

// TestMarksOfOpenClusterManagement fails when a Job or Pod that Open Cluster Management would run before the deletion is
// an object of the release, and so runs at the installation; when it stays in the manifest; when disableHooks applies it;
// or when the mark counts on another kind.
func TestMarksOfOpenClusterManagement(t *testing.T) {
	const mark = "addon.open-cluster-management.io/addon-pre-delete"
	pod := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %\n  labels: {&: ''}\n"
	labelled := func(name, key string) string { return strings.NewReplacer("%", name, "&", key).Replace(pod) }
	content := folder(
		"templates/a.yaml", configMap+"c\n---\n"+hook("annotated", mark+`: ""`)+"---\n"+labelled("labelled", mark),
		"templates/b.yaml", labelled("older", "open-cluster-management.io/addon-pre-delete")+"---\n"+
			hook("helms", `helm.sh/hook: post-install, `+mark+`: ""`)+"---\n"+hook("plain", `helm.sh/resource-policy: keep`),
		"templates/c.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account, annotations: {"+mark+`: ""}}`+"\n",
	)
	result := mustRender(t, content, nil)
	var got []string
	for _, one := range result.Chart.Hooks {
		events, policies := strings.Join(one.Events, " "), strings.Join(one.DeletePolicies, " ")
		got = append(got, strings.Join([]string{one.Path, one.Object.GetName(), events, policies}, ", "))
	}
	want := []string{ // Helm's own hooks keep their events
		"demo/templates/b.yaml, helms, post-install, ",
		"demo/templates/a.yaml, labelled, pre-delete, before-hook-creation hook-succeeded",
		"demo/templates/b.yaml, older, pre-delete, before-hook-creation hook-succeeded",
		"demo/templates/a.yaml, annotated, pre-delete, before-hook-creation hook-succeeded",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	objects := []string{"ServiceAccount/account", "ConfigMap/c", "Job/plain"}
	if diff := cmp.Diff(objects, names(result)); diff != "" || strings.Count(result.Chart.Manifest, "# Source") != len(objects) {
		t.Errorf("objects (-want +got):\n%s\nmanifest:\n%s", diff, result.Chart.Manifest)
	}
	without := input(content, nil)
	without.Release.DisableHooks = true
	left, err := chart.New().Render(context.Background(), without)
	if err != nil {
		t.Fatal(err)
	}
	result.Chart.Hooks = nil
	if diff := cmp.Diff(result, left); diff != "" {
		t.Errorf("without hooks (-want +got):\n%s", diff)
	}
	list := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: batch/v1, kind: Job, " +
		"metadata: {name: b, annotations: {" + mark + ": ''}}}\n"
	var wrong *render.TemplateError
	if _, err := renderChart(folder("templates/a.yaml", list), nil); !errors.As(err, &wrong) || wrong.File != "demo/templates/a.yaml" {
		t.Errorf("got %v, want a TemplateError that names the file", err)
	}
}

// TestHooksCountInTheLimits fails when hooks are counted separately from objects: the one past the limit is a hook.
func TestHooksCountInTheLimits(t *testing.T) {
	many := strings.Repeat(configMap+"a\n---\n", manifest.MaxObjects)
	content := folder("templates/a.yaml", many)
	if _, err := renderChart(content, nil); err != nil {
		t.Fatalf("as many objects as are taken: %v", err)
	}
	content = folder("templates/a.yaml", many+hook("one", "helm.sh/hook: test"))
	var limit *render.LimitError
	if _, err := renderChart(content, nil); !errors.As(err, &limit) || limit.What != "objects" {
		t.Errorf("got %v, want a LimitError about objects", err)
	}
}

// TestHooksAreOneObject fails when a hook that is a list is accepted: its parts would not be waited for.
func TestHooksAreOneObject(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-install}}\nitems:\n" +
		"- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"
	var wrong *render.TemplateError
	content := folder("templates/a.yaml", configMap+"c\n---\n"+list)
	if _, err := renderChart(content, nil); !errors.As(err, &wrong) || wrong.File != "demo/templates/a.yaml" {
		t.Errorf("got %v, want a TemplateError that names the file", err)
	}
}
