package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimecluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/serve/webhook"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

// listing counts lists, and no watches.
type listing struct {
	next  http.RoundTripper
	lists atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (l *listing) RoundTrip(request *http.Request) (*http.Response, error) {
	isList := slices.Contains([]string{"addoncatalogues", "addonsets", "seeds"}, path.Base(request.URL.Path))
	if isList && request.Method == http.MethodGet && request.URL.Query().Get("watch") == "" {
		l.lists.Add(1)
	}
	return l.next.RoundTrip(request)
}

// cached reads an API server as the webhooks of the master do, once its cache has the kinds that the controllers watch.
func cached(t *testing.T, counted *listing) client.Reader {
	t.Helper()
	config := rest.CopyConfig(fleet.Shared().Cluster("cluster").Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	made, err := runtimecluster.New(config, func(options *runtimecluster.Options) { options.Scheme = wiring.Scheme() })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for _, kind := range []client.Object{&v1.AddonCatalogue{}, &v1.AddonSet{}, &kkpv1.Seed{}} {
		if _, err := made.GetCache().GetInformer(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
	}
	return webhook.Master(made.GetClient(), made.GetAPIReader())
}

// AC91: An author's requests have the API server list nothing, and are answered as before. Red when the webhooks list past the cache.
func TestRequestsListNothingOfTheMaster(t *testing.T) {
	const place = "platform-flood"
	c := connect(t)
	book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: v1.ConfigMapUsage}, Data: map[string]string{
		"north": catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{{Addon: "web", Version: "1.0.0"}: 3}}.Encode(),
	}}
	tools, other := authored("tools", "1.0.0", "1.1.0"), authored("other", "1.1.0")
	tools.Namespace, other.Namespace = place, place
	create(t, c, namespace(place), &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "north"}}, tools, other, book,
		setOf(place, "first", ""))

	counted := &listing{}
	reader := cached(t, counted)
	catalogues, sets := &webhook.Catalogues{Master: reader, Namespace: place}, &webhook.Sets{Master: reader, Namespace: place}
	after := tools.DeepCopy()
	after.Spec.Addons[0].Versions = after.Spec.Addons[0].Versions[1:]
	edit, second := question(t, tools, after), question(t, nil, setOf(place, "second", ""))
	expect.Eventually(t, expect.Patience, func() error { // the cache has what was made just now
		var all v1.AddonCatalogueList
		if err := reader.List(t.Context(), &all, client.InNamespace(place)); err != nil {
			return err
		}
		if len(all.Items) != 2 {
			return fmt.Errorf("it has %d catalogues", len(all.Items))
		}
		return nil
	})
	before := counted.lists.Load()
	var edits, seconds [50]admission.Response
	var all sync.WaitGroup
	for i := range edits {
		all.Go(func() { edits[i] = catalogues.Handle(t.Context(), edit) })
		all.Go(func() { seconds[i] = sets.Handle(t.Context(), second) })
	}
	all.Wait()
	for i := range edits {
		expectAdmitted(t, edits[i], `seed "north": 3 installations`)
		expectAdmitted(t, seconds[i], `set "first" is of type Core too`)
	}
	if lists := counted.lists.Load() - before; lists > 0 {
		t.Errorf("100 requests had the API server list %d times", lists)
	}
}
