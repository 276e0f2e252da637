package rendering

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// asHook is an object with these annotations and labels.
func asHook(t *testing.T, kind, metadata string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("{kind: "+kind+", metadata: {name: clean, "+metadata+"}}"), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion(map[string]string{"Job": "batch/v1", "Pod": "v1", "ConfigMap": "v1"}[kind])
	return object
}

// TestHooksOfTemplates: The test covers which objects of go-template are hooks. The test fails when a hook is also
// applied as an object, when a mark of Open Cluster Management counts on other kinds than there, and when an unknown
// word is ignored.
func TestHooksOfTemplates(t *testing.T) {
	const ours, annotated, labelled = v1.AnnotationHook, "addon.open-cluster-management.io/addon-pre-delete",
		"open-cluster-management.io/addon-pre-delete"
	for _, test := range []struct {
		why, kind, metadata string
		events, problem     string
	}{
		{why: "a Job without a mark", kind: "Job"},
		{why: "ours", kind: "Job", metadata: "annotations: {" + ours + ": pre-delete}", events: "pre-delete"},
		{why: "ours, twice", kind: "Pod", metadata: "annotations: {" + ours + ": 'pre-install, pre-upgrade,pre-install'}", events: "pre-install pre-upgrade"},
		{why: "their annotation", kind: "Job", metadata: "annotations: {" + annotated + ": ''}", events: "pre-delete"},
		{why: "their label", kind: "Pod", metadata: "labels: {" + labelled + ": ''}", events: "pre-delete"},
		{why: "their annotation's key as a label", kind: "Pod", metadata: "labels: {" + annotated + ": ''}", events: "pre-delete"},
		{why: "ours and theirs", kind: "Job", metadata: "labels: {" + labelled + ": ''}, annotations: {" + ours + ": pre-delete}", events: "pre-delete"},
		{why: "theirs on what does not run", kind: "ConfigMap", metadata: "annotations: {" + annotated + ": ''}"},
		{why: "ours on what does not run", kind: "ConfigMap", metadata: "annotations: {" + ours + ": pre-delete}", problem: "is allowed only on Jobs and Pods"},
		{why: "another word", kind: "Job", metadata: "annotations: {" + ours + ": post-delete}", problem: `and is "post-delete"`},
		{why: "no word", kind: "Job", metadata: "annotations: {" + ours + ": ''}", problem: `and is ""`},
		{
			why: "ours against theirs", kind: "Job", metadata: "labels: {" + labelled + ": ''}, annotations: {" + ours + ": post-install}",
			problem: "keep one of them",
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			q := request()
			mapper := meta.NewDefaultRESTMapper(nil)
			for _, kind := range []schema.GroupVersionKind{
				{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "ConfigMap"}, {Group: "batch", Version: "v1", Kind: "Job"},
			} {
				mapper.Add(kind, meta.RESTScopeNamespace)
			}
			q.Mapper = mapper
			object := asHook(t, test.kind, test.metadata)
			made, err := New(nil, images.Rules{}, nil).prepare(&q, render.Result{Objects: []*unstructured.Unstructured{object}})
			if err != nil || test.problem != "" {
				if err == nil || test.problem == "" || !strings.Contains(err.Error(), test.problem) || !strings.Contains(err.Error(), "clean") {
					t.Errorf("got %v, want %q", err, test.problem)
				}
				return
			}
			events := ""
			for _, hook := range made.Hooks {
				events += strings.Join(hook.Events, " ")
			}
			if diff := cmp.Diff(test.events, events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if have := len(made.Objects) + len(made.Hooks); have != 1 {
				t.Errorf("%d objects and hooks come of one", have)
			}
		})
	}
}

// TestMarksOfTemplatesMeanNothingInCharts fails when Trellis's annotation makes a chart's Pod a hook.
func TestMarksOfTemplatesMeanNothingInCharts(t *testing.T) {
	q := request()
	q.Choice.Version.Template.Method = v1.MethodHelm
	marked := asHook(t, "Pod", "annotations: {"+v1.AnnotationHook+": pre-delete}")
	made, err := New(nil, images.Rules{}, nil).prepare(&q, render.Result{
		Objects: []*unstructured.Unstructured{marked}, Chart: &render.Chart{},
	})
	if err != nil || len(made.Objects) != 1 || len(made.Hooks) != 0 {
		t.Errorf("got %+v, %v", made, err)
	}
}
