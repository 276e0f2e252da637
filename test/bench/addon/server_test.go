package addon_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/world"
)

const clustersOnServer = 1000

// BenchmarkServer takes what is measured on a real API server: the size of an available catalogue in which all of 5,000
// versions fit (bar: 160 KiB), and the time from a version bump of one of 1,000 clusters to its changed catalogue (bar:
// median of five below 1 s).
func BenchmarkServer(b *testing.B) {
	seed := fleet.Shared().Cluster("seed").Config
	c := world.Client(b, seed)
	expect.Create(b, c, world.Namespace(catalogueNamespace))
	for i := range addons {
		expect.Create(b, c, mergedCatalogue(i, "", i == 0))
	}
	large := newCluster(0)
	place(b, c, large, "v1.36.3")
	made := world.Seed(b, seed, catalogueNamespace)
	made.SetUp(newController(made.Seed))
	made.Run()
	size := sizeOf(b, c, large)
	b.Logf("an available catalogue of %d versions has %d KiB, managed fields and status included", addons*versionsOfAnAddon, size/1024)
	bar.AtMost(b, "KiB/cluster", float64(size)/1024, 160)

	// With a small catalogue: 1,000 large ones are etcd's business, and the time is not theirs.
	for i := 1; i < addons; i++ {
		expect.Delete(b, c, mergedCatalogue(i, "", false))
	}
	placeMany(b, c)
	var times []time.Duration
	for i := range 5 {
		times = append(times, bump(b, c, newCluster(100+i)))
	}
	slices.Sort(times)
	b.Logf("one of %d clusters has its changed catalogue after %s of its version bump, median of %v", clustersOnServer, times[2], times)
	bar.Time(b, "ms/bump", float64(times[2].Microseconds())/1000, 1000)
}

func newCluster(number int) *kkpv1.Cluster {
	return &kkpv1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: kkpv1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%05d", number)},
	}
}

func place(b *testing.B, c client.Client, object *kkpv1.Cluster, version string) {
	b.Helper()
	expect.NoError(b, settle(b.Context(), c, object, version))
}

// settle makes a Cluster with its namespace.
func settle(ctx context.Context, c client.Client, object *kkpv1.Cluster, version string) error {
	if err := c.Create(ctx, world.Namespace("cluster-"+object.Name)); err != nil {
		return err
	}
	if err := c.Create(ctx, object); err != nil {
		return err
	}
	object.Status.NamespaceName, object.Status.Versions.ControlPlane = "cluster-"+object.Name, version
	return c.Status().Update(ctx, object)
}

func placeMany(b *testing.B, c client.Client) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(8)
	for i := 1; i < clustersOnServer; i++ {
		group.Go(func() error { return settle(ctx, c, newCluster(i), "v1.36.3") })
	}
	expect.NoError(b, group.Wait())
	expect.Eventually(b, patience, func() error {
		var list v1.AddonCatalogueList
		if err := c.List(b.Context(), &list, client.MatchingLabels{v1.LabelRole: v1.RoleAvailable}); err != nil {
			return err
		}
		written := slices.DeleteFunc(list.Items, func(item v1.AddonCatalogue) bool {
			return item.Annotations[v1.AnnotationDigest] == "" || item.Status.Versions != versionsOfAnAddon
		})
		if len(written) != clustersOnServer {
			return fmt.Errorf("%d of %d are written", len(written), clustersOnServer)
		}
		return nil
	})
}

func availableOf(of *kkpv1.Cluster) *v1.AddonCatalogue {
	return &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-" + of.Name, Name: v1.AvailableCatalogue}}
}

// sizeOf is the size of an available catalogue as the API server gives it, and keeps it but for the spaces.
func sizeOf(b *testing.B, c client.Client, of *kkpv1.Cluster) int {
	b.Helper()
	expect.Object(b, c, availableOf(of), func(object *v1.AddonCatalogue) error {
		if object.Annotations[v1.AnnotationDigest] == "" || object.Status.Versions != addons*versionsOfAnAddon {
			return fmt.Errorf("%d versions", object.Status.Versions)
		}
		return nil
	})
	config := fleet.Shared().Cluster("seed").Config
	plain, err := rest.HTTPClientFor(config)
	expect.NoError(b, err)
	url := fmt.Sprintf("%s/apis/%s/namespaces/cluster-%s/addoncatalogues/%s", config.Host, v1.GroupVersion, of.Name, v1.AvailableCatalogue)
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	expect.NoError(b, err)
	answer, err := plain.Do(request)
	expect.NoError(b, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("HTTP status %d, %v", answer.StatusCode, err)
	}
	return len(body)
}

// bump takes a cluster to a version that one version of the catalogue does not fit.
func bump(b *testing.B, c client.Client, of *kkpv1.Cluster) time.Duration {
	b.Helper()
	expect.Read(b, c, of)
	of.Status.Versions.ControlPlane = "v1.38.1"
	begin := time.Now()
	expect.UpdateStatus(b, c, of)
	expect.Object(b, c, availableOf(of), func(object *v1.AddonCatalogue) error {
		if object.Status.ExcludedCount != 1 {
			return fmt.Errorf("%d versions are left out", object.Status.ExcludedCount)
		}
		return nil
	})
	return time.Since(begin)
}
