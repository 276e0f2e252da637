package sourcecheck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const (
	// sayAlive is how often the report shows that this process works if nothing else changes.
	sayAlive = 5 * time.Minute
	// messagesOf is how many faults of one catalogue have a message in the report.
	messagesOf = 10
)

func (r *Reconciler) kept(ctx context.Context) (object *corev1.ConfigMap, isNew bool, err error) {
	object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Options.Namespace, Name: v1.ConfigMapSourceChecks}}
	err = r.Reader.Get(ctx, client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapSourceChecks, err)
	}
	return object, err != nil, nil
}

// recall reads, once, the findings of an earlier process.
func (r *Reconciler) recall(ctx context.Context) error {
	if r.before != nil {
		return nil
	}
	object, _, err := r.kept(ctx)
	if err != nil {
		return err
	}
	r.before = catalogue.DecodeSourceChecks(object.Data)
	r.schedule.divide(catalogue.DecodeSourceShare(object.Data[v1.SourceShare]))
	return nil
}

// report reads the share of this seed, and writes the findings about sources.
func (r *Reconciler) report(ctx context.Context) error {
	object, isNew, err := r.kept(ctx)
	if err != nil {
		return err
	}
	now := r.Options.Clock.Now()
	r.schedule.divide(catalogue.DecodeSourceShare(object.Data[v1.SourceShare]))
	if now.Sub(r.seenAt) >= sayAlive {
		r.seen, r.seenAt = now.UTC().Format(time.RFC3339Nano), now
	}
	wanted := r.checks().Encode()
	if object.Data[v1.SourceShare] != "" {
		wanted[v1.SourceShare] = object.Data[v1.SourceShare]
	}
	if !maps.Equal(wanted, object.Data) {
		object.Data = wanted
		if isNew {
			err = r.Client.Create(ctx, object)
		} else {
			err = r.Client.Update(ctx, object)
		}
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return nil // the master wrote the share: the next reconciliation reads it
		}
		if err != nil {
			return fmt.Errorf("writing ConfigMap %q: %w", v1.ConfigMapSourceChecks, err)
		}
	}
	r.readAt, r.changed = now, false
	return nil
}

// checks are the findings about sources, with messages for the first faults of each catalogue. If not all faults fit,
// the catalogues with the most have fewer of them.
func (r *Reconciler) checks() *catalogue.SourceChecks {
	known := &catalogue.SourceChecks{
		Seen: r.seen, Good: map[string]bool{}, Unrendered: map[string]bool{}, Bad: map[string]catalogue.SourceFault{},
	}
	of, rank, bad := map[string]int{}, map[string]int{}, []*item(nil)
	for _, found := range slices.SortedFunc(maps.Values(r.schedule.items), inOrder) {
		switch {
		case found.good:
			known.Good[found.use.Key] = true
			if found.unrendered {
				known.Unrendered[found.use.Key] = true
			}
		case found.fault != nil:
			of[found.catalogue]++
			rank[found.use.Key], bad = of[found.catalogue], append(bad, found)
		}
	}
	slices.SortStableFunc(bad, func(a, b *item) int { return cmp.Compare(rank[a.use.Key], rank[b.use.Key]) })
	for _, found := range bad[:min(len(bad), catalogue.FaultsLimit)] {
		fault := *found.fault
		if rank[found.use.Key] > messagesOf {
			fault.Message = ""
		}
		known.Bad[found.use.Key] = fault
	}
	return known
}
