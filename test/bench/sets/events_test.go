package sets_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/standins"
	"github.com/trellis-addons/trellis/test/world"
)

const (
	// eventBar is how much more an event may cost among ten times as many clusters.
	eventBar = 1.5
	// events that are measured.
	events = 1000
)

// BenchmarkEventAmongTenThousandClusters is what one status event costs the controller's process, against one among a tenth of the
// clusters: all clusters are behind, and one does not answer any more, or does again. The counts of the set's status change with each.
func BenchmarkEventAmongTenThousandClusters(b *testing.B) {
	for b.Loop() {
		l := newLarge(b)
		var each []use
		for _, clusters := range []int{*many / 10, *many} {
			l.grow(b, clusters)
			each = append(each, l.events(b))
		}
		spent, bytes := float64(each[1].time)/float64(each[0].time), each[1].bytes/each[0].bytes
		b.ReportMetric(spent, "times-cpu")
		b.ReportMetric(bytes, "times-bytes")
		b.Logf("an event costs %.2f times the processor time and %.2f times the bytes among %d clusters (bar: %.1f)", spent, bytes, *many, eventBar)
		if spent > eventBar || bytes > eventBar {
			b.Error("the bar is missed")
		}
	}
}

// passes tells of reads of the set's copy, with which every pass over the set begins.
type passes struct {
	client.Client
	begin chan struct{}
}

// Get implements client.Reader.
func (p passes) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isSet := object.(*v1.AddonSet); isSet {
		select {
		case p.begin <- struct{}{}:
		default:
		}
	}
	return p.Client.Get(ctx, key, object, options...)
}

// events gives what one costs. What it takes to make it is measured without the controller, and taken off.
func (l *largeSeed) events(b *testing.B) use {
	b.Helper()
	told, clients := passes{begin: make(chan struct{}, 1)}, kubernetes.NewForConfigOrDie(l.config)
	for i := range toggled(l.clusters) {
		made := world.Namespace(standins.NamespaceOf(toggledName(i, l.clusters)))
		if err := l.copies.Client.Create(b.Context(), made); err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatal(err)
		}
	}
	running := l.start(b, func(made client.Client) client.Client {
		told.Client = made
		return told
	})
	l.copies.Put(b, setName, l.spec())
	l.settled(b, running, func(counts *v1.ClusterCounts) bool { return int(counts.Current+counts.Moving) == l.clusters })
	l.edit(b, running)
	before := running.statuses.Load()
	with := measured(b, func() {
		for number := range events {
			select {
			case <-told.begin:
			default:
			}
			l.toggle(b, clients.Discovery().RESTClient(), number)
			select {
			case <-told.begin:
			case <-time.After(patience):
				b.Fatalf("event %d woke no pass over the set", number)
			}
		}
	})
	statuses := running.statuses.Load() - before
	running.Stop()
	alone := measured(b, func() {
		for number := range events {
			l.toggle(b, clients.Discovery().RESTClient(), number)
		}
	})
	l.forget(b)
	each := use{time: (with.time - alone.time) / events, bytes: (with.bytes - alone.bytes) / events}
	b.Logf("%d clusters: an event costs %s and %.0f bytes, with %d writes of the status for %d; to make one costs %s and %.0f bytes",
		l.clusters, each.time, each.bytes, statuses, events, alone.time/events, alone.bytes/events)
	return each
}

// toggled is how many clusters have events.
func toggled(clusters int) int { return min(events, clusters) / 2 }

// toggledName is one of them; they lie all over the seed.
func toggledName(number, clusters int) string {
	return standins.Name(1 + number%toggled(clusters)*7919%(clusters-1))
}

// toggle makes one event: each of the clusters answers no more, one after the other, and then each answers again.
func (l *largeSeed) toggle(b *testing.B, with rest.Interface, number int) {
	b.Helper()
	state, reason := "Unknown", v1.ReasonClusterUnreachable
	if number/toggled(l.clusters)%2 == 1 {
		state, reason = "True", v1.ReasonReady
	}
	body := fmt.Appendf(nil, `{"status":{"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"played",`+
		`"lastTransitionTime":%q,"observedGeneration":1}]}}`, state, reason, time.Now().UTC().Format(time.RFC3339))
	err := with.Patch(types.MergePatchType).
		AbsPath("/apis", v1.GroupVersion.Group, v1.GroupVersion.Version, "namespaces", standins.NamespaceOf(toggledName(number, l.clusters)),
			"addoninstallations", addonOf(0), "status").Body(body).Do(b.Context()).Error()
	if err != nil {
		b.Fatal(err)
	}
}
