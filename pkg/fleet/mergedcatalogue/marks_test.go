package mergedcatalogue_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/test/given"
)

// keyReader answers with the Secret of the key, or says that there is none.
type keyReader struct {
	client.Reader
	key []byte
}

func (r keyReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.key == nil || key != (client.ObjectKey{Namespace: "kubermatic", Name: v1.SecretCatalogueKey}) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	into.(*corev1.Secret).Data = map[string][]byte{v1.MarkKeyField: r.key}
	return nil
}

// object is a merged catalogue of one version; a key marks it.
func object(t testing.TB, key []byte, versions int) *v1.AddonCatalogue {
	t.Helper()
	made := given.Merged("addon-catalogue", "", given.Addon("web"))
	made.UID, made.ResourceVersion = "web", "1"
	for i := range versions {
		made.Spec.Addons[0].Versions = append(made.Spec.Addons[0].Versions, v1.AddonVersion{Version: fmt.Sprintf("1.0.%d", i)})
	}
	if key != nil {
		content, err := catalogue.ContentDigest(made)
		if err != nil {
			t.Fatal(err)
		}
		made.Annotations[v1.AnnotationMark] = catalogue.Mark(key, made, content)
	}
	return made
}

// TestWhatIsBelieved goes through the life of a seed: a master that brings no key, a key, another
// one, and none again.
func TestWhatIsBelieved(t *testing.T) {
	t.Parallel()
	key, other := bytes.Repeat([]byte{1}, catalogue.MarkKeySize), bytes.Repeat([]byte{2}, catalogue.MarkKeySize)
	marks := mergedcatalogue.New(logr.Discard())
	woken := 0
	marks.OnChange(func() { woken++ })
	unlabelled := object(t, key, 1)
	unlabelled.Labels = nil
	for _, step := range []struct {
		why           string
		key           []byte
		bare, marked  bool
		markedByOther bool
		woken         int
	}{
		{why: "no key yet: the role", bare: true, marked: true, markedByOther: true},
		{why: "a key: its marks", key: key, marked: true, woken: 1},
		{why: "the same key again", key: key, marked: true, woken: 1},
		{why: "another key", key: other, markedByOther: true, woken: 2},
	} {
		if err := marks.Read(t.Context(), keyReader{key: step.key}, "kubermatic"); err != nil {
			t.Fatal(err)
		}
		for _, look := range []struct {
			what string
			of   *v1.AddonCatalogue
			want bool
		}{
			{"without the label", unlabelled, false}, {"without a mark", object(t, nil, 1), step.bare},
			{"marked", changed(object(t, key, 1), "2"), step.marked}, {"marked by another key", changed(object(t, other, 1), "3"), step.markedByOther},
		} {
			if got := marks.Believes(look.of); got != look.want {
				t.Errorf("%s: one %s is believed: %t, want %t", step.why, look.what, got, look.want)
			}
		}
		if woken != step.woken {
			t.Errorf("%s: readers were woken %d times, want %d", step.why, woken, step.woken)
		}
	}
	if err := marks.Read(t.Context(), keyReader{key: []byte("short")}, "kubermatic"); err != nil || !marks.Believes(object(t, nil, 1)) {
		t.Errorf("a Secret without a key counts as one: %v", err)
	}
}

func changed(object *v1.AddonCatalogue, version string) *v1.AddonCatalogue {
	object.UID, object.ResourceVersion = types.UID("web-"+version), version
	return object
}

// TestAMarkIsCheckedOncePerChange counts allocations: the second look at an object of 128 versions
// costs none.
func TestAMarkIsCheckedOncePerChange(t *testing.T) {
	key := bytes.Repeat([]byte{1}, catalogue.MarkKeySize)
	marks := mergedcatalogue.New(logr.Discard())
	if err := marks.Read(t.Context(), keyReader{key: key}, "kubermatic"); err != nil {
		t.Fatal(err)
	}
	large := object(t, key, 128)
	if !marks.Believes(large) {
		t.Fatal("it is not believed")
	}
	if allocations := testing.AllocsPerRun(10, func() { marks.Believes(large) }); allocations > 0 {
		t.Errorf("a look at what was looked at before makes %v allocations", allocations)
	}
	forged := changed(object(t, key, 128), "2")
	forged.Spec.Addons[0].Versions[0].Version = "99.0.0"
	for range 2 {
		if marks.Believes(forged) {
			t.Error("what was edited is believed")
		}
	}
}
