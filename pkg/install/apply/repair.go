package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Applied is the last applied state: the prepared objects, and the resulting inventory.
type Applied struct {
	Objects   []*unstructured.Unstructured
	Inventory ownership.Inventory
	// Adopt adopts objects that replaced ours, except objects of an installation that NameOf knows.
	Adopt bool
	// AdoptManagers, Release, NameOf, Neighbours, Shared and LeftBy are as in RolloutOptions.
	AdoptManagers []string
	Release       *ownership.HelmMarks
	NameOf        func(id string) string
	ownership.Neighbours
	Shared ownership.Inventory
	LeftBy string
}

// Repaired is the result of a repair.
type Repaired struct {
	Inventory ownership.Inventory
	// Shared is as in Progress; its objects are not in the Inventory.
	Shared  ownership.Inventory
	Written int
	// Waiting and Refused are about objects that were not repaired, Misbehaved about objects with an untrue answer; all
	// are as in Progress.
	Waiting, Refused, Misbehaved, Taken []calls.Note
}

// Repair restores the drifted objects of these keys, with force for fields recorded as ours. Repaired is filled in
// even with an error, which is a failed call.
func Repair(ctx context.Context, target calls.Target, owner ownership.Owner, drifted []ownership.Key, applied Applied) (Repaired, error) {
	w := &writer{
		RolloutOptions: RolloutOptions{
			Adopt: applied.Adopt, AdoptManagers: applied.AdoptManagers, Release: applied.Release, NameOf: applied.NameOf,
			Neighbours: applied.Neighbours, LeftBy: applied.LeftBy,
		},
		owner: owner, target: target, shared: applied.Shared.ByKey(),
		kinds: &calls.Kinds{Mapper: target.Mapper, Declared: calls.DeclaredKinds(applied.Objects)},
	}
	items := driftedItems(drifted, applied)
	var err error
	for at := range calls.StageCount {
		if err = calls.Each(ctx, inStage(items, at), w.repair); err != nil {
			break
		}
	}
	return repaired(items, applied), err
}

func driftedItems(keys []ownership.Key, applied Applied) (items []*item) {
	have := applied.Inventory.ByKey()
	drifted, placed := make(map[ownership.Key]bool, len(keys)), map[ownership.Key]string{}
	for _, key := range keys {
		drifted[key] = true
		without := key
		without.Namespace = ""
		placed[without] = key.Namespace
	}
	for _, object := range applied.Objects {
		key := ownership.KeyOf(object)
		if namespace := placed[key]; namespace != "" && !drifted[key] { // its kind was not known when it was prepared
			object = object.DeepCopy()
			object.SetNamespace(namespace)
		}
		if drifted[ownership.KeyOf(object)] {
			items = append(items, newItem(object, have))
		}
	}
	return items
}

// repair restores one object. Force is safe: every field is recorded as ours, except replicas,
// which an autoscaler may own; those are tried without force first.
func (w *writer) repair(ctx context.Context, it *item) error {
	if isCreateOnly(it.object) || it.entry.UID == "" {
		if decided, err := w.leaveToSibling(ctx, it); err != nil || decided {
			return err
		}
		it.entry.UID = ""
		return w.write(ctx, it)
	}
	client, served, err := w.client(it)
	if err != nil || !served {
		return err
	}
	if decided, err := w.leaveToSibling(ctx, it); err != nil || decided {
		return err
	}
	hasReplicas, leaves := it.leavesReplicas()
	return w.patch(ctx, client, it, attempt{force: !hasReplicas, withoutReplicas: leaves})
}

func repaired(items []*item, applied Applied) Repaired {
	done, renewed, ours := Repaired{}, map[ownership.Key]ownership.Entry{}, map[ownership.Key]bool{}
	shared := sharedOf(items, nil).ByKey()
	for _, it := range items {
		done.Written += it.written
		done.Taken = append(done.Taken, it.taken...)
		it.report(&done.Waiting, &done.Refused, &done.Misbehaved)
		if it.done && !it.used {
			renewed[it.key] = it.entry
		}
	}
	for _, entry := range applied.Inventory {
		if now, found := renewed[entry.Key]; found {
			entry = now
		}
		ours[entry.Key] = true
		if _, yielded := shared[entry.Key]; !yielded {
			done.Inventory = append(done.Inventory, entry)
		}
	}
	for _, it := range items {
		if entry, found := renewed[it.key]; found && !ours[it.key] { // it was a sibling's
			entry.Created = entry.Created && entry.IsFoundation()
			done.Inventory = append(done.Inventory, entry)
		}
		if it.shared != nil {
			done.Shared = append(done.Shared, *it.shared)
		}
	}
	for _, entry := range applied.Shared {
		_, taken := renewed[entry.Key]
		if _, again := shared[entry.Key]; !again && !taken {
			done.Shared = append(done.Shared, entry)
		}
	}
	return done
}
