package distributor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// How often the book is written down: changes are gathered for a moment, and a failure is tried again later.
const (
	gatherUsage = time.Second
	retryUsage  = 10 * time.Second
)

// usageLimit is the size of the ConfigMap, which seeds share equally: none takes the place of another. etcd takes objects of
// 1.5 MiB, ConfigMaps have 1 MiB at most.
const usageLimit = 900 << 10

// usageBook keeps how many installations on each seed have which versions, in ConfigMap addon-usage. Every replica's
// admission reads it there, and the figures of a seed outlive the seed's end and ours.
type usageBook struct {
	namespace string
	clock     clock.WithTicker

	mutex sync.Mutex
	rows  map[string]catalogue.SeedUsage
	// seeds are those that exist; nil until the first pass.
	seeds map[string]bool
	wake  chan struct{}

	client client.Client
	direct client.Reader
	// written is what the ConfigMap has; nil until it was read.
	written map[string]string
}

func newUsageBook(namespace string, clock clock.WithTicker) *usageBook {
	return &usageBook{
		namespace: namespace, clock: clock, rows: map[string]catalogue.SeedUsage{}, wake: make(chan struct{}, 1),
	}
}

// counted takes down what a seed answered.
func (b *usageBook) counted(seed string, installations map[catalogue.UsedVersion]int, others int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	before, known := b.rows[seed]
	b.rows[seed] = catalogue.SeedUsage{Seed: seed, Installations: installations, Others: others}
	if !known || !before.LastSeen.IsZero() || before.Others != others || !maps.Equal(before.Installations, installations) {
		b.awake()
	}
}

// lost marks the figures of a seed that does not answer any more.
func (b *usageBook) lost(seed string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	row, known := b.rows[seed]
	if !known || !row.LastSeen.IsZero() {
		return
	}
	row.LastSeen = b.clock.Now()
	b.rows[seed] = row
	b.awake()
}

// only drops the figures of Seeds that went.
func (b *usageBook) only(targets []target) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.seeds = map[string]bool{}
	for _, to := range targets {
		b.seeds[to.name] = true
	}
	maps.DeleteFunc(b.rows, func(seed string, _ catalogue.SeedUsage) bool { return !b.seeds[seed] })
	b.awake()
}

func (b *usageBook) awake() {
	select {
	case b.wake <- struct{}{}:
	default: // It will wake up anyway.
	}
}

// Start writes the book down whenever it changes, until the context ends.
func (b *usageBook) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.wake:
		}
		pause := gatherUsage
		if err := b.write(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "the usage of add-ons can't be written down", "configMap", v1.ConfigMapUsage)
			b.awake()
			pause = retryUsage
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.clock.After(pause):
		}
	}
}

// write brings the ConfigMap to what the book says; equal content is no write.
func (b *usageBook) write(ctx context.Context) error {
	if b.written == nil {
		if err := b.read(ctx); err != nil {
			return err
		}
	}
	wanted := b.encode()
	if wanted == nil || maps.Equal(wanted, b.written) {
		return nil
	}
	changes := map[string]any{}
	for seed := range b.written {
		if _, stays := wanted[seed]; !stays {
			changes[seed] = nil
		}
	}
	for seed, text := range wanted {
		if b.written[seed] != text {
			changes[seed] = text
		}
	}
	patch, err := json.Marshal(map[string]any{"data": changes})
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1.ConfigMapUsage}}
	err = b.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		object.Data = wanted
		err = b.client.Create(ctx, object)
	}
	if err != nil {
		b.written = nil
		return fmt.Errorf("writing ConfigMap %q: %w", v1.ConfigMapUsage, err)
	}
	b.written = wanted
	return nil
}

// encode gives what the ConfigMap should have; nil before the first pass, since the Seeds are not known until then.
func (b *usageBook) encode() map[string]string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.seeds == nil {
		return nil
	}
	wanted := make(map[string]string, len(b.rows))
	for seed, row := range b.rows {
		wanted[seed] = row.EncodeWithin(usageLimit / len(b.rows))
	}
	return wanted
}

// read takes over what an earlier leader knew of seeds that have not answered us yet.
func (b *usageBook) read(ctx context.Context) error {
	var kept corev1.ConfigMap
	err := b.direct.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: v1.ConfigMapUsage}, &kept)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapUsage, err)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for seed, text := range kept.Data {
		usage, err := catalogue.DecodeUsage(seed, text)
		if _, known := b.rows[seed]; known || err != nil || b.seeds != nil && !b.seeds[seed] {
			continue
		}
		if usage.LastSeen.IsZero() {
			usage.LastSeen = b.clock.Now()
		}
		b.rows[seed] = usage
	}
	b.written = map[string]string{}
	maps.Copy(b.written, kept.Data)
	return nil
}
