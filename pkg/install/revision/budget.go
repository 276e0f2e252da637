package revision

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// Budget is how many bytes the records of one Cluster may take in the seed's etcd. The largest real charts need about 3 MiB
	// for five revisions.
	Budget = 64 << 20
	// smallRecord is the size up to which a record is never refused.
	smallRecord = 16 << 10
	// LabelBytes is the number of bytes of a record in a Secret, in steps of smallRecord.
	LabelBytes = v1.Prefix + "record-bytes"
)

// BudgetError says that a new revision would exceed the budget of its Cluster. Nothing was written.
type BudgetError struct {
	Installation     string
	Size, Have, Most int
}

func (e *BudgetError) Error() string {
	return fmt.Sprintf("the release record of installation %q takes %d KiB, and the records of its cluster take %d of %d KiB: make the "+
		"add-on or its values smaller, or remove installations of this cluster", e.Installation, e.Size>>10, e.Have>>10, e.Most>>10)
}

// makeSpace removes the oldest revisions of the installation if a new one would exceed the budget, but neither the
// newest two, of which one may be damaged, or an intent, nor the one that a rollback would restore. Core add-ons and
// rollbacks count, and are not refused: users of a cluster must not be able to block them.
func (r *Records) makeSpace(ctx context.Context, namespace string, record *Record, size int) error {
	items, err := r.list(ctx, namespace)
	if err != nil {
		return err
	}
	owner, have := record.Owner(), 0 // without the record that the new one replaces
	sizes := map[int]int{}
	for i := range items {
		bytes := bytesOf(&items[i], record.ClusterUID)
		name, ok := parseName(items[i].Name)
		isOwn := ok && name.isOf(owner)
		if isOwn {
			sizes[name.revision] += bytes
		}
		if !isOwn || name.revision != record.Revision {
			have += bytes
		}
	}
	old := headsOf(items, owner)
	goes := map[int]bool{}
	for _, head := range slices.Backward(old[min(2, len(old)):]) {
		if have+size > r.budget && head.revision != record.LastGood {
			goes[head.revision], have = true, have-sizes[head.revision]
		}
	}
	if have+size > r.budget {
		return &BudgetError{Installation: record.Installation, Size: size, Have: have, Most: r.budget}
	}
	if len(goes) == 0 {
		return nil
	}
	return r.remove(ctx, namespace, owner, func(name named) bool { return goes[name.revision] })
}

// reserveSpace frees budget for a new record that the budget applies to, in the turn of its Cluster, which lasts until
// end: records that are written at the same time would not be counted. Only the leader writes records.
func (r *Records) reserveSpace(ctx context.Context, namespace string, record *Record, size int) (end func(), err error) {
	isNew := record.State == StateIntent && record.stored.resourceVersion == ""
	if size <= smallRecord || !isNew || record.Core || record.Rollback != nil {
		return func() {}, nil
	}
	if end, err = r.turns.Take(ctx, string(record.ClusterUID)); err != nil {
		return nil, fmt.Errorf("waiting for other records of the cluster: %w", err)
	}
	if err := r.makeSpace(ctx, namespace, record, size); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// bytesOf is a Secret's part of a Cluster's budget. Parts without the label, which any client may remove, count as full.
func bytesOf(item *metav1.PartialObjectMetadata, cluster types.UID) int {
	isOwned := slices.ContainsFunc(item.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.UID == cluster })
	if !isOwned {
		return 0
	}
	if bytes, err := strconv.Atoi(item.Labels[LabelBytes]); err == nil && bytes > 0 {
		return min(bytes, partSize)
	}
	if name, ok := parseName(item.Name); ok && !name.isHead() {
		return partSize
	}
	return 0
}
