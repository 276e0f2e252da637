package remote

import (
	"context"
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whatever the product calls holds what an answer weighs until it is decoded. Red, in each case,
// when a client has not the method.
func TestAnswersAreHeldUntilTheyAreDecoded(t *testing.T) {
	t.Parallel()
	errSeen := errors.New("seen")
	isHeld := false
	made := clientOf(t, Options{Permit: func(ctx context.Context) error {
		isHeld = ctx.Value(leaseKey{}) != nil
		return errSeen
	}}, func(http.ResponseWriter, *http.Request) {})
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(kind, meta.RESTScopeNamespace)
	ofMetadata, err := made.Metadata()
	if err != nil {
		t.Fatal(err)
	}
	ofAll, err := made.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	ofSecrets, err := made.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := made.Kinds(client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	where := corev1.SchemeGroupVersion.WithResource("configmaps")
	about, whole, secrets := ofMetadata.Resource(where).Namespace("x"), ofAll.Resource(where).Namespace("x"), ofSecrets.Secrets("x")
	object, text := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "x"}}, &unstructured.Unstructured{}
	text.SetGroupVersionKind(kind)
	text.SetName("x")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	patch := client.RawPatch(types.MergePatchType, []byte("{}"))
	only := func(_ any, err error) error { return err }
	for name, call := range map[string]func(ctx context.Context) error{
		"metadata get":   func(ctx context.Context) error { return only(about.Get(ctx, "x", metav1.GetOptions{})) },
		"metadata list":  func(ctx context.Context) error { return only(about.List(ctx, metav1.ListOptions{})) },
		"dynamic get":    func(ctx context.Context) error { return only(whole.Get(ctx, "x", metav1.GetOptions{})) },
		"dynamic list":   func(ctx context.Context) error { return only(whole.List(ctx, metav1.ListOptions{})) },
		"dynamic create": func(ctx context.Context) error { return only(whole.Create(ctx, text, metav1.CreateOptions{})) },
		"dynamic apply": func(ctx context.Context) error {
			return only(whole.Apply(ctx, "x", text, metav1.ApplyOptions{FieldManager: "x"}))
		},
		"secrets get":    func(ctx context.Context) error { return only(secrets.Get(ctx, "x", metav1.GetOptions{})) },
		"secrets list":   func(ctx context.Context) error { return only(secrets.List(ctx, metav1.ListOptions{})) },
		"secrets create": func(ctx context.Context) error { return only(secrets.Create(ctx, secret, metav1.CreateOptions{})) },
		"secrets update": func(ctx context.Context) error { return only(secrets.Update(ctx, secret, metav1.UpdateOptions{})) },
		"get":            func(ctx context.Context) error { return kinds.Get(ctx, client.ObjectKeyFromObject(object), object) },
		"list":           func(ctx context.Context) error { return kinds.List(ctx, &corev1.ConfigMapList{}) },
		"create":         func(ctx context.Context) error { return kinds.Create(ctx, object) },
		"update":         func(ctx context.Context) error { return kinds.Update(ctx, object) },
		"patch":          func(ctx context.Context) error { return kinds.Patch(ctx, object, patch) },
		"status":         func(ctx context.Context) error { return kinds.Status().Patch(ctx, object, patch) },
	} {
		t.Run(name, func(t *testing.T) {
			isHeld = false
			if err := call(t.Context()); !errors.Is(err, errSeen) || !isHeld {
				t.Errorf("held: %t, after %v", isHeld, err)
			}
		})
	}
}
