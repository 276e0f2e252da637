package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	// gatherUsage is how long changes are collected before a write.
	gatherUsage = time.Second
	// retryUsage is the delay before a failed write is retried.
	retryUsage = 10 * time.Second
	// usageLimit is the maximal size of the ConfigMap, whose limit is 1 MiB. Seeds share it equally.
	usageLimit = 900 << 10
)

// Ledger stores how many installations on each seed have which versions, in ConfigMap addon-usage, for the admission
// of every replica. Figures survive an outage of the seed and the end of this process.
type Ledger struct {
	namespace string
	clock     clock.WithTicker

	mutex sync.Mutex
	rows  map[string]catalogue.SeedUsage
	// seeds are the existing ones; nil until the first reconciliation.
	seeds sets.Set[string]
	wake  chan struct{}

	client client.Client
	direct client.Reader
	// written is the content of the ConfigMap; nil until it was read.
	written map[string]string
}

// NewLedger returns an empty one. The figures of an earlier leader are read before the first write.
func NewLedger(namespace string, clock clock.WithTicker, client client.Client, direct client.Reader) *Ledger {
	return &Ledger{
		namespace: namespace, clock: clock, client: client, direct: direct,
		rows: map[string]catalogue.SeedUsage{}, wake: make(chan struct{}, 1),
	}
}

// Counted records a seed's count.
func (l *Ledger) Counted(seed string, count *Count) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before, known := l.rows[seed]
	l.rows[seed] = catalogue.SeedUsage{Seed: seed, Installations: count.Installations, Others: count.Others}
	if !known || !before.LastSeen.IsZero() || before.Others != count.Others || !maps.Equal(before.Installations, count.Installations) {
		l.changed()
	}
}

// Lost marks the figures of a seed that does not answer any more.
func (l *Ledger) Lost(seed string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	row, known := l.rows[seed]
	if !known || !row.LastSeen.IsZero() {
		return
	}
	row.LastSeen = l.clock.Now()
	l.rows[seed] = row
	l.changed()
}

// Only drops the figures of all other seeds.
func (l *Ledger) Only(seeds []string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.seeds = sets.New(seeds...)
	maps.DeleteFunc(l.rows, func(seed string, _ catalogue.SeedUsage) bool { return !l.seeds.Has(seed) })
	l.changed()
}

func (l *Ledger) changed() {
	select {
	case l.wake <- struct{}{}:
	default: // it will wake up anyway
	}
}

// Start writes the ledger whenever it changes, until the context ends.
func (l *Ledger) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		pause := gatherUsage
		if err := l.write(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the usage of add-ons can't be stored", "configMap", v1.ConfigMapUsage)
			l.changed()
			pause = retryUsage
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.clock.After(pause):
		}
	}
}

// write makes the ConfigMap equal to the ledger.
func (l *Ledger) write(ctx context.Context) error {
	if l.written == nil {
		if err := l.read(ctx); err != nil {
			return err
		}
	}
	wanted := l.encode()
	if wanted == nil || maps.Equal(wanted, l.written) {
		return nil
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: v1.ConfigMapUsage}, Data: l.written}
	before := object.DeepCopy()
	object.Data = wanted
	err := l.client.Patch(ctx, object, client.MergeFrom(before))
	if apierrors.IsNotFound(err) {
		err = l.client.Create(ctx, object)
	}
	if err != nil {
		l.written = nil
		return fmt.Errorf("writing ConfigMap %q: %w", v1.ConfigMapUsage, err)
	}
	l.written = wanted
	return nil
}

// Stay counts the installations with versions that must be left, by the last count.
type Stay struct {
	Installations, Seeds int
	// Uncounted are seeds that don't answer, or have not answered yet.
	Uncounted int
}

// Having counts the installations with any of these versions.
func (l *Ledger) Having(leave catalogue.Leave) Stay {
	named := map[catalogue.UsedVersion]bool{} // two spellings are one version
	for addon, versions := range leave {
		for _, version := range versions {
			named[catalogue.UsedVersion{Addon: addon, Version: catalogue.Key(version)}] = true
		}
	}
	versions := slices.Collect(maps.Keys(named))
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var found Stay
	for seed := range l.seeds {
		row, counted := l.rows[seed]
		if !counted || !row.LastSeen.IsZero() {
			found.Uncounted++
		}
		if count := row.Of(versions); count > 0 {
			found.Installations += count
			found.Seeds++
		}
	}
	return found
}

// encode is the wanted content of the ConfigMap; nil before the first reconciliation.
func (l *Ledger) encode() map[string]string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.seeds == nil {
		return nil
	}
	wanted := make(map[string]string, len(l.rows))
	for seed, row := range l.rows {
		wanted[seed] = row.EncodeWithin(usageLimit / len(l.rows))
	}
	return wanted
}

// read adds an earlier leader's figures of seeds that have not answered yet.
func (l *Ledger) read(ctx context.Context) error {
	var kept corev1.ConfigMap
	err := l.direct.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: v1.ConfigMapUsage}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapUsage, err)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for seed, text := range kept.Data {
		usage, err := catalogue.DecodeUsage(seed, text)
		if _, known := l.rows[seed]; known || err != nil || l.seeds != nil && !l.seeds.Has(seed) {
			continue
		}
		if usage.LastSeen.IsZero() {
			usage.LastSeen = l.clock.Now()
		}
		l.rows[seed] = usage
	}
	l.written = map[string]string{}
	maps.Copy(l.written, kept.Data)
	return nil
}
