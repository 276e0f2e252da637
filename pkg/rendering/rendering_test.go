package rendering

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/images"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// request is one for manifests, on a cluster that serves Pods.
func request() Request {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	return Request{
		Installation: &v1.AddonInstallation{}, Mapper: mapper,
		Choice: resolution.Choice{Version: &v1.AddonVersion{Template: &v1.Template{Method: v1.MethodGoTemplate}}},
	}
}

func configMap(name, text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "n"},
		"data": map[string]any{"text": text},
	}}
}

// Red when what is prepared for the user cluster still names the registry.
func TestPrepareRewritesImages(t *testing.T) {
	mirrors, err := images.ParseMirrors([]string{"docker.io=mirror.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "nginx:1"}}},
	}}
	q := request()
	r := New(nil, images.Rules{Mirrors: mirrors, PullSecret: "mirror"}, nil)
	made, err := r.prepare(&q, render.Result{Objects: []*unstructured.Unstructured{pod}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"containers":       []any{map[string]any{"name": "web", "image": "mirror.example.com/library/nginx:1"}},
		"imagePullSecrets": []any{map[string]any{"name": "mirror"}},
	}
	if diff := cmp.Diff(want, made.Objects[0].Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// recorded has a record and nothing else.
type recorded struct {
	Installed
	record *revision.Record
}

func (r recorded) Record() *revision.Record { return r.record }

// Red when an upgrade of the managers renders what is on record, when it tries once more what failed, or when a deprecation
// renders anything.
func TestInputsOfEarlierReleasesAreRead(t *testing.T) {
	r, key := New(nil, images.Rules{}, []byte("key")), []byte("key")
	q := request()
	q.Choice.Origin = catalogue.Origin{Digest: "entry", Content: "content"}
	q.Installed = recorded{}
	inputsOf := func(record *revision.Record, entry string) Inputs {
		asked := q
		asked.Choice.Origin.Digest, asked.Installed = entry, recorded{record: record}
		found, err := r.Inputs(asked)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	now := inputsOf(nil, "entry")
	before := resolution.Inputs{Installation: q.Installation, Choice: q.Choice, Images: images.Rules{}.Canonical(), ByEntry: true}
	hash, err := before.Hash(key)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := before.Wanted(key)
	if err != nil {
		t.Fatal(err)
	}
	earlier := &revision.Record{Inputs: hash, Wanted: wanted}
	for _, test := range []struct {
		why    string
		record *revision.Record
		entry  string
		want   Inputs
	}{
		{"nothing is on record", nil, "entry", now},
		{"they are on record as they are now", &revision.Record{Inputs: now.Hash, Wanted: now.Wanted}, "entry", now},
		{"deprecated since", &revision.Record{Inputs: now.Hash, Wanted: now.Wanted}, "deprecated", now},
		{"by an earlier release", earlier, "entry", Inputs{hash, wanted}},
		{"by an earlier release, deprecated since", earlier, "deprecated", now},
		{"a failure that an earlier release gave up", &revision.Record{Inputs: "good", Rollback: &revision.Rollback{Inputs: hash}}, "entry",
			Inputs{hash, now.Wanted}},
		{"another cluster, the same wish", &revision.Record{Inputs: "other", Wanted: wanted}, "entry", Inputs{now.Hash, wanted}},
	} {
		if diff := cmp.Diff(test.want, inputsOf(test.record, test.entry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

// Red when who may share a renderer goes by the namespace, which may have several clusters.
func TestClustersDoNotShareARenderer(t *testing.T) {
	if Tenant("one", false) == Tenant("other", false) {
		t.Error("two clusters of one namespace share a renderer")
	}
}

func TestCoreAddonsRenderByThemselves(t *testing.T) {
	if Tenant("one", true) == Tenant("one", false) {
		t.Error("an add-on that sees the cluster's secrets shares a renderer with others")
	}
}
