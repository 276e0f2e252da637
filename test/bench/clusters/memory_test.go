package clusters

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	manyClusters = 2000
	// memoryBar is for each, in bytes.
	memoryBar = 20 << 10
)

// BenchmarkMemory has 2,000 Clusters with control planes and kubeconfigs in 20 namespaces, each with its available catalogue, and compares
// the manager's heap with that of before, each time after what is garbage was collected. The bar: 20 KiB for each.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		p := newPlatform(b, 1)
		p.offer(v1.CatalogueCustom, "logs", "")
		m := p.start()
		p.settle(m)
		before := m.heap()
		var members []member
		for i := range manyClusters {
			namespace := fmt.Sprintf("team-%02d", i%20)
			if i < 20 {
				expect.Create(b, p.client, world.Namespace(namespace))
			}
			members = append(members, p.member(namespace, fmt.Sprintf("cluster-%04d", i), p.servers[0]))
		}
		begin := time.Now()
		p.add(members...)
		expect.Eventually(b, 10*time.Minute, func() error { return p.areOffered(len(members)) })
		p.settle(m)
		b.Logf("%d Clusters are made and offered their add-ons after %s", len(members), time.Since(begin).Round(time.Second))
		each := (m.heap() - before) / int64(len(members))
		b.Logf("the heap has %d MiB before, and %d bytes more for each of %d Clusters", before>>20, each, len(members))
		bar.AtMost(b, "KiB/cluster", float64(each)/1024, memoryBar>>10)
	}
}

// areOffered says how many available catalogues are missing.
func (p *platform) areOffered(want int) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(loop.Metadata(v1.GroupVersion.WithKind("AddonCatalogueList")).GroupVersionKind())
	if err := p.client.List(p.t.Context(), list, client.MatchingLabels{v1.LabelRole: v1.RoleAvailable}); err != nil {
		return err
	}
	count := 0
	for _, item := range list.Items {
		if item.Annotations[v1.AnnotationDigest] != "" {
			count++
		}
	}
	if count != want {
		return fmt.Errorf("%d of %d are written", count, want)
	}
	return nil
}
