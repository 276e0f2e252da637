package installing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	// bombers are the installations of the tenant whose rules are bombs, and bombed the namespace of its cluster.
	bombers = 20
	bombed  = "cluster-bombed"
	// extra is how many of the others' installations a round measures, and healthRounds how many rounds each side has.
	extra, healthRounds = 40, 4
)

// pattern reads all of a text; bombRules is how often a version may do so.
const (
	pattern   = `!self.data.text.matches("(a|aa)+(a|aa)+(a|aa)+b")`
	bombRules = 16
)

// BenchmarkHealthBombs prints a bar: beside a tenant whose installations have rules that read nearly 1 MiB, and who asks for looks at them
// without end, others are installed as fast at their p99 as beside one who does the same over a few bytes, within 10 %.
func BenchmarkHealthBombs(b *testing.B) {
	w := newWorld(b, fleet.ClusterOptions{Name: "bombed"})
	server := w.fleet.Cluster("bombed")
	about := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: targetNamespace, Name: "about"}, Data: map[string]string{"text": "a"},
	}
	tenant := kit.Client(b, server.Config)
	expect.Create(b, tenant, kit.Namespace(targetNamespace), about)
	kit.UserCluster(b, w.seed, "bombed", server.Kubeconfig)
	rules := make([]kubermaticv1.HealthRule, bombRules)
	for i := range rules {
		rules[i] = kubermaticv1.HealthRule{
			APIVersion: "v1", Kind: "ConfigMap", Name: about.Name, Namespace: about.Namespace, Healthy: pattern,
		}
	}
	for addon, content := range map[string]string{
		"four": addonTemplate, "bomb": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Variables.name }}\"}\n",
	} {
		if _, err := w.sources.Commit(addon, map[string]string{"addon.yaml": content}); err != nil {
			b.Fatal(err)
		}
	}
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, w.gitSource("four"))
	w.offer(b, "bomb", &kubermaticv1.Template{
		Method: kubermaticv1.MethodGoTemplate, Health: &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthByRules, Rules: rules},
	}, w.gitSource("bomb"))
	w.startManager(b)
	watching := w.watch(b)
	for b.Loop() {
		for _, name := range names("bomb", bombers) {
			one := installation("bomb", name)
			one.Namespace = bombed
			expect.Create(b, w.seed, one)
		}
		w.others(b, watching, names("warm", warmUp))
		var harmless, dangerous []time.Duration
		for round := range healthRounds {
			about.Data["text"] = "a"
			for _, side := range []*[]time.Duration{&harmless, &dangerous} {
				expect.Update(b, tenant, about)
				looks := w.askForLooks(b)
				*side = append(*side, w.others(b, watching, names(fmt.Sprintf("side-%d-%d", round, len(about.Data["text"])), extra))...)
				b.Logf("%d looks asked for over %d bytes", looks(), len(about.Data["text"]))
				about.Data["text"] = strings.Repeat("a", 900<<10)
			}
		}
		p99, against := percentile(dangerous, 99), percentile(harmless, 99)
		b.Logf("%d installed beside bombs: p50 %s, p99 %s; beside the same rules over a few bytes: p50 %s, p99 %s",
			len(dangerous), percentile(dangerous, 50), p99, percentile(harmless, 50), against)
		bar.AtMost(b, "p99-ratio", p99.Seconds()/against.Seconds(), 1.1)
	}
}

// others installs one after the other, and tells how long each took to be Ready.
func (w *world) others(b *testing.B, watching *watcher, names []string) (took []time.Duration) {
	b.Helper()
	for _, name := range names {
		begun := time.Now()
		came := w.install(b, watching, "four", []string{name})
		took = append(took, came.ready.Sub(begun))
	}
	return took
}

// askForLooks has the tenant ask for a look at each of its installations as often as it can, until the end that it gives is called; that
// tells how often it did.
func (w *world) askForLooks(b *testing.B) (end func() int) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		for ; ctx.Err() == nil; asked++ {
			one := installation("bomb", fmt.Sprintf("bomb-%03d", asked%bombers))
			one.Namespace = bombed
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, kubermaticv1.AnnotationReconcileAt, time.Now().UnixNano())
			if err := w.seed.Patch(ctx, one, client.RawPatch("application/merge-patch+json", patch)); err != nil && ctx.Err() == nil {
				b.Error(err)
				return
			}
		}
	})
	return func() int {
		stop()
		asking.Wait()
		return asked
	}
}

func percentile(of []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[(len(sorted)-1)*percent/100]
}
