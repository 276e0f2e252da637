package fleet

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// writes counts the requests that are no reads.
type writes struct {
	http.RoundTripper
	count *atomic.Int64
}

func (w writes) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		w.count.Add(1)
	}
	return w.RoundTripper.RoundTrip(request)
}

// Red when a definition that is there is written again, and when one that was edited, or deleted, is left so.
func TestCRDsAreInstalledOnce(t *testing.T) {
	config := rest.CopyConfig(ForTest(t, ClusterOptions{Name: "seed"}).Cluster("seed").Config)
	with, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	crds, count := with.ApiextensionsV1().CustomResourceDefinitions(), &atomic.Int64{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return writes{next, count} })
	install := func(why string, want int64) {
		t.Helper()
		count.Store(0)
		if err := InstallCRDs(t.Context(), config, CRDs(t)...); err != nil {
			t.Fatal(err)
		}
		if got := count.Load(); got != want {
			t.Errorf("%s: %d writes, want %d", why, got, want)
		}
	}
	const name = "addonsets.kubermatic.k8c.io"
	install("the first time", 5)
	install("once more", 0)
	crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	crd.Spec.Names.ShortNames = append(crd.Spec.Names.ShortNames, "edited")
	if _, err := crds.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	install("after an edit", 1)
	if crd, err := crds.Get(t.Context(), name, metav1.GetOptions{}); err != nil || slices.Contains(crd.Spec.Names.ShortNames, "edited") {
		t.Errorf("the edit is there still, %v", err)
	}
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the definition to go", func(ctx context.Context) (bool, error) {
		_, err := crds.Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
	install("after a deletion", 1)
}
