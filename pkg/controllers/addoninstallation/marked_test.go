package addoninstallation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
)

// sourceKinds are those of the product; their handling of Secrets needs no network.
var sourceKinds = fetch.NewKinds(fetch.Serve(git.New(nil)), fetch.Serve(image.New(nil)), fetch.Serve(helmrepo.New(nil)))

// trim is the part of an object that the cache keeps; it may be trimmed more than once.
func trim[O any](t *testing.T, object O) O {
	t.Helper()
	var kept any = object
	for range 2 {
		var err error
		if kept, err = TrimMarked("catalogue", sourceKinds.SecretKeys())(kept); err != nil {
			t.Fatal(err)
		}
	}
	return kept.(O)
}

func markedMeta(namespace, use string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: "a", ResourceVersion: "7", Finalizers: []string{"example.com/x"},
		Labels:        map[string]string{kubermaticv1.LabelUse: use, "other": strings.Repeat("x", 63)},
		Annotations:   map[string]string{kubermaticv1.AnnotationHosts: "example.com", "other": strings.Repeat("x", 100<<10)},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}
}

// TestMarkedObjectsAreKeptSmall: 150 marked objects of a MiB each use almost no memory, with one key or thousands. It
// fails if the cache keeps unused, or too large, content.
func TestMarkedObjectsAreKeptSmall(t *testing.T) {
	one := map[string][]byte{"values.yaml": make([]byte, 1<<20)}
	many, text := map[string][]byte{}, map[string]string{}
	for i := range 10_000 {
		many[fmt.Sprint(i)], text[fmt.Sprint(i)] = make([]byte, 100), ""
	}
	for why, object := range map[string]any{
		"one key":             &corev1.Secret{ObjectMeta: markedMeta("cluster-a", "values"), Data: one},
		"many keys":           &corev1.Secret{ObjectMeta: markedMeta("cluster-a", "values"), Data: many},
		"many empty texts":    &corev1.ConfigMap{ObjectMeta: markedMeta("cluster-a", "values"), Data: text},
		"bytes of ConfigMaps": &corev1.ConfigMap{ObjectMeta: markedMeta("cluster-a", "values"), BinaryData: one},
		"a source elsewhere":  &corev1.Secret{ObjectMeta: markedMeta("cluster-a", "source"), Data: map[string][]byte{"ca.crt": make([]byte, 200<<10)}},
		"a source":            &corev1.Secret{ObjectMeta: markedMeta("catalogue", "source"), Data: one},
		"a large source":      &corev1.Secret{ObjectMeta: markedMeta("catalogue", "source"), Data: map[string][]byte{"ca.crt": make([]byte, 1<<20)}},
	} {
		encoded, err := trim(t, object).(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil || len(encoded) > 512 {
			t.Errorf("%s: %d bytes are kept, %v", why, len(encoded), err)
		}
	}
}

// TestWhatIsSmallIsKeptWhole: omitted content is marked.
func TestWhatIsSmallIsKeptWhole(t *testing.T) {
	small := map[string][]byte{"values.yaml": []byte("a: b"), "other": []byte("c: d")}
	kept := trim(t, &corev1.Secret{ObjectMeta: markedMeta("cluster-a", "values"), Data: small})
	want := &corev1.Secret{Data: map[string][]byte{"values.yaml": []byte("a: b"), "other": []byte("c: d")}, ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster-a", Name: "a", ResourceVersion: "7", Labels: map[string]string{kubermaticv1.LabelUse: "values"},
		Annotations: map[string]string{kubermaticv1.AnnotationHosts: "example.com"},
	}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	source := trim(t, &corev1.Secret{ObjectMeta: markedMeta("catalogue", "source"), Data: map[string][]byte{
		"ca.crt": make([]byte, 200<<10), "password": []byte("p"), "unknown": []byte("x"),
	}})
	if len(source.Data) != 2 || len(source.Data["ca.crt"]) != 200<<10 || source.Annotations[annotationLeftOut] != "" {
		t.Errorf("a source Secret keeps %d keys, annotations %v", len(source.Data), source.Annotations)
	}
	large := trim(t, &corev1.ConfigMap{ObjectMeta: markedMeta("cluster-a", "values"), Data: map[string]string{"a": strings.Repeat("x", 9<<10)}})
	if large.Data != nil || large.Annotations[annotationLeftOut] == "" {
		t.Errorf("a large ConfigMap: annotations %v", large.Annotations)
	}
}
