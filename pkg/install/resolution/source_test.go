package resolution_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// sourceKinds are those of the product; their handling of Secrets needs no network.
var sourceKinds = fetch.NewKinds(fetch.Serve(git.New(nil)), fetch.Serve(image.New(nil)), fetch.Serve(helmrepo.New(nil)))

// marked are the marked Secrets.
type marked map[types.NamespacedName]*corev1.Secret

func (m marked) Secret(_ context.Context, key types.NamespacedName) (*corev1.Secret, error) {
	if found, ok := m[key]; ok {
		return found, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

// TestCredentialsOfSourcesAreOfTheRightType (AC19): A source's Secret counts only if it is marked, and has the right
// type and keys.
func TestCredentialsOfSourcesAreOfTheRightType(t *testing.T) {
	secret := func(namespace, name, use string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{v1.LabelUse: use},
			Annotations: map[string]string{v1.AnnotationHosts: "example.com, example.org:5000"},
		}, Data: data}
	}
	all := map[string][]byte{
		"username": []byte("u"), "password": []byte("p"), "bearerToken": []byte("t"), "identity": []byte("k"), "known_hosts": []byte("h"),
		".dockerconfigjson": []byte("d"), "unknown": []byte("x"),
	}
	held := marked{}
	for _, made := range []*corev1.Secret{
		secret("catalogue", "good", v1.UseSource, all),
		secret("catalogue", "values", v1.UseValues, all),
		secret("catalogue", "ca", v1.UseSource, map[string][]byte{"ca.crt": []byte("c")}),
		secret("elsewhere", "other", v1.UseSource, all),
	} {
		held[types.NamespacedName{Namespace: made.Namespace, Name: made.Name}] = made
	}
	references := resolution.References{SourceKinds: sourceKinds, Secret: held.Secret, CatalogueNamespace: "catalogue"}
	named := func(name string) *v1.LocalReference { return &v1.LocalReference{Name: name} }
	docker := func(secretName, ca string) *v1.Source {
		source := &v1.ImageSource{Image: "example.com/x:v1", Path: "y"}
		if secretName != "" {
			source.SecretRef = named(secretName)
		}
		if ca != "" {
			source.CASecretRef = named(ca)
		}
		return &v1.Source{Docker: source}
	}
	got, err := references.Source(t.Context(), docker("good", "ca"))
	if err != nil {
		t.Fatal(err)
	}
	want := fetch.Reference{
		Location: image.Location{Image: "example.com/x:v1", Path: "y"},
		Credentials: fetch.Credentials{
			Username: "u", Password: "p", BearerToken: "t", PrivateKey: []byte("k"), KnownHosts: []byte("h"), DockerConfig: []byte("d"),
			CA: []byte("c"), Hosts: []string{"example.com", "example.org:5000"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
	for why, source := range map[string]*v1.Source{
		"a Secret that is not there":   docker("gone", ""),
		"a Secret of values":           docker("values", ""),
		"a Secret of another place":    docker("other", ""),
		"a certificate that is none":   docker("", "good"),
		"a certificate not there":      docker("", "gone"),
		"a path instead of a name":     docker("../elsewhere/other", ""),
		"another namespace in a name":  docker("elsewhere/other", ""),
		"a Secret of values, as by CA": docker("", "values"),
	} {
		var missing *fetch.NotFoundError
		if _, err := references.Source(t.Context(), source); !errors.As(err, &missing) {
			t.Errorf("%s: got %v", why, err)
		}
	}
	var refused *fetch.RefusedError
	if _, err := references.Source(t.Context(), nil); !errors.As(err, &refused) {
		t.Errorf("no source: got %v", err)
	}
	var unknown *fetch.NotServedError
	if _, err := references.Source(t.Context(), &v1.Source{}); !errors.As(err, &unknown) {
		t.Errorf("a source of no known kind: got %v", err)
	}
}
