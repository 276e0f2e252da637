package revision

import (
	"context"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-addons/trellis/test/fleet"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "seed"}) }

// seed is a client of the real API server, with a new namespace. Its Secrets go with the test: some
// look at those of all namespaces.
func seed(t *testing.T, namespace string) client.WithWatch {
	t.Helper()
	c := fleet.InNamespace(t, "seed", namespace)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := c.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(namespace)); err != nil {
			t.Error(err)
		}
	})
	return c
}

// killedAfter is a client whose process dies after that many writes: every later one fails.
func killedAfter(c client.WithWatch, writes int) client.Client {
	count := 0
	die := func() error {
		if count++; count > writes {
			return context.Canceled
		}
		return nil
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := die(); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if err := die(); err != nil {
				return err
			}
			return c.Update(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := die(); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
	})
}

// missing is a reader of nothing.
type missing struct{ client.Reader }

func (missing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

// testSeal is the seal of the seed in tests.
var testSeal = NewSeal([]byte("key"))

// garbage answers every read with a Secret of records that nobody wrote.
type garbage struct {
	client.Reader
	reads int
}

// Get implements client.Reader.
func (g *garbage) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	g.reads++
	*object.(*corev1.Secret) = corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Type: SecretType,
		Data: map[string][]byte{keyIndex: []byte(`{"format":1}`)},
	}
	return nil
}

// allocated is how many bytes the work takes in all.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
