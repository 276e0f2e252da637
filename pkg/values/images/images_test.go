package images_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/values/images"
)

const digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func rules(t *testing.T, mirrors ...string) images.Rules {
	t.Helper()
	parsed, err := images.ParseMirrors(mirrors)
	if err != nil {
		t.Fatal(err)
	}
	return images.Rules{Mirrors: parsed}
}

func TestImage(t *testing.T) {
	r := rules(t, "docker.io=mirror.example.com:5000/hub", "quay.io=mirror.example.com:5000/quay", "quay.io/cilium=other.example.com",
		"registry.example.com=registry.example.com/cache")
	for _, test := range []struct{ why, image, want string }{
		{"a short name", "nginx", "mirror.example.com:5000/hub/library/nginx"},
		{"a tag", "nginx:1.27", "mirror.example.com:5000/hub/library/nginx:1.27"},
		{"tag and digest stay", "grafana/grafana:11" + digest, "mirror.example.com:5000/hub/grafana/grafana:11" + digest},
		{"the older name of the same registry", "index.docker.io/library/nginx", "mirror.example.com:5000/hub/library/nginx"},
		{"the longest rule", "quay.io/cilium/cilium:v1", "other.example.com/cilium:v1"},
		{"not at half a word", "quay.io/cilium2/x", "mirror.example.com:5000/quay/cilium2/x"},
		{"another registry", "gcr.io/x/y:1", "gcr.io/x/y:1"},
		{"a port is part of the registry", "quay.io:443/x/y", "quay.io:443/x/y"},
		{"below the target already", "mirror.example.com:5000/hub/library/nginx", "mirror.example.com:5000/hub/library/nginx"},
		{"a target inside of what it replaces", "registry.example.com/x", "registry.example.com/cache/x"},
		{"that, once more", "registry.example.com/cache/x", "registry.example.com/cache/x"},
		{"no reference", "Not An Image", "Not An Image"},
		{"nothing", "", ""},
		{"too long", strings.Repeat("a", 2000), strings.Repeat("a", 2000)},
	} {
		got, changed := r.Image(test.image)
		if got != test.want || changed != (test.image != test.want) {
			t.Errorf("%s: %q became %q (%v), want %q", test.why, test.image, got, changed, test.want)
		}
		if again, changed := r.Image(got); again != got || changed {
			t.Errorf("%s: %q, once more, became %q", test.why, got, again)
		}
	}
}

func TestParseMirrors(t *testing.T) {
	for _, wrong := range []string{"", "docker.io", "=x.example.com", "docker.io=", "docker.io=https://x", "a b=c", "docker.io=x:y/z"} {
		var refused *images.RuleError
		if _, err := images.ParseMirrors([]string{wrong}); !errors.As(err, &refused) {
			t.Errorf("%q: got %v, want RuleError", wrong, err)
		}
	}
	if _, err := images.ParseMirrors([]string{"docker.io=a.example.com", "index.docker.io/=b.example.com"}); err == nil {
		t.Error("two rules for one registry were taken")
	}
	one, other := rules(t, "quay.io=a.example.com", "docker.io=b.example.com"), rules(t, "docker.io=b.example.com", "quay.io=a.example.com")
	if diff := cmp.Diff(string(one.Canonical()), string(other.Canonical())); diff != "" {
		t.Errorf("the order of rules counts:\n%s", diff)
	}
	other.PullSecret = "mirror"
	if string(one.Canonical()) == string(other.Canonical()) {
		t.Error("the pull secret does not count")
	}
}

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return all
}

const before = `apiVersion: v1
kind: Pod
spec:
  initContainers: [{name: a, image: "busybox:1"}]
  containers: [{name: b, image: "quay.io/x/b"}, {name: c, image: "nginx"}]
  ephemeralContainers: [{name: d, image: "debug"}]
  volumes: [{name: e, image: {reference: "data/e:1"}}, {name: f, emptyDir: {}}]
  imagePullSecrets: [{name: own}]
---
apiVersion: apps/v1
kind: Deployment
spec: {template: {spec: {containers: [{image: nginx}], imagePullSecrets: [{name: mirror}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: apps/v1
kind: StatefulSet
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: v1
kind: ReplicationController
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: v1
kind: PodTemplate
template: {spec: {containers: [{image: nginx}]}}
---
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: v1
kind: List
items:
- apiVersion: batch/v1
  kind: CronJob
  spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: nginx}]}}}}}
- just text
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: not mirrored}
spec: {template: {spec: {containers: [{image: "gcr.io/x/y"}]}}}
---
apiVersion: example.com/v1
kind: Deployment
spec: {template: {spec: {containers: [{image: nginx}]}}}
---
apiVersion: v1
kind: Pod
spec: {containers: text, initContainers: [1], volumes: {}, imagePullSecrets: text}
---
apiVersion: v1
kind: Pod
spec: text
`

func TestRewrite(t *testing.T) {
	r := rules(t, "docker.io=mirror.example.com")
	r.PullSecret = "mirror"
	got := objects(t, before)
	r.Rewrite(got)
	text := before
	for _, name := range []string{"busybox:1", "debug"} {
		text = strings.ReplaceAll(text, `"`+name+`"`, `"mirror.example.com/library/`+name+`"`)
	}
	text = strings.ReplaceAll(text, `"data/e:1"`, `"mirror.example.com/data/e:1"`)
	custom := "example.com/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{image: nginx}]}}}"
	text = strings.ReplaceAll(text, custom, "CUSTOM")
	text = strings.ReplaceAll(text, "image: nginx}]}", `image: mirror.example.com/library/nginx}], imagePullSecrets: [{name: mirror}]}`)
	text = strings.ReplaceAll(text, "image: nginx}], imagePull", `image: mirror.example.com/library/nginx}], imagePull`)
	text = strings.ReplaceAll(text, `image: "nginx"}`, `image: "mirror.example.com/library/nginx"}`)
	text = strings.ReplaceAll(text, "[{name: own}]", "[{name: own}, {name: mirror}]")
	text = strings.ReplaceAll(text, "CUSTOM", custom)
	if diff := cmp.Diff(objects(t, text), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Rewrite(got)
	if diff := cmp.Diff(objects(t, text), got); diff != "" {
		t.Errorf("once more (-want +got):\n%s", diff)
	}
	unchanged := objects(t, before)
	images.Rules{PullSecret: "mirror"}.Rewrite(unchanged)
	if diff := cmp.Diff(objects(t, before), unchanged); diff != "" {
		t.Errorf("without mirrors (-want +got):\n%s", diff)
	}
}

// Red when a kind of pod, a kind of container or an object in a list is left out, and when an image is there twice.
func TestImagesOfObjects(t *testing.T) {
	want := []string{"busybox:1", "data/e:1", "debug", "gcr.io/x/y", "nginx", "quay.io/x/b"}
	if diff := cmp.Diff(want, images.Of(objects(t, before))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for kind := range strings.SplitSeq(before, "---\n") {
		if strings.Contains(kind, "{image: nginx}") && !strings.Contains(kind, "example.com/v1") && len(images.Of(objects(t, kind))) != 1 {
			t.Errorf("no image is found in\n%s", kind)
		}
	}
}

func FuzzImage(f *testing.F) {
	for _, seed := range []string{"nginx", "a.b:5000/c/d:tag" + digest, "localhost/x", "UPPER/x", ":", "@"} {
		f.Add(seed)
	}
	mirrors, err := images.ParseMirrors([]string{"docker.io=mirror.example.com", "quay.io/x=mirror.example.com/quay"})
	if err != nil {
		f.Fatal(err)
	}
	r := images.Rules{Mirrors: mirrors}
	f.Fuzz(func(t *testing.T, text string) {
		image, changed := r.Image(text)
		if !changed && image != text {
			t.Fatalf("%q became %q and is told not to be changed", text, image)
		}
		if again, twice := r.Image(image); twice || again != image {
			t.Fatalf("%q became %q and then %q", text, image, again)
		}
		before, ok := images.Parse(text)
		if after, _ := images.Parse(image); ok && (before.Tag != after.Tag || before.Digest != after.Digest) {
			t.Fatalf("%q lost tag or digest: %q", text, image)
		}
	})
}
