package copies

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
)

// Keeper knows and writes the copies of one seed. All methods but Changed are for one goroutine.
type Keeper struct {
	client    client.Client
	seed      string
	namespace string

	// key is the seed's key of marks.
	key []byte
	// listed says that the names on the seed are known, and from is the list's resourceVersion; empty: any.
	listed bool
	from   string
	// found are the copies by name, as last read; others are those that no wanted set has.
	found  map[string]*found
	others map[string]bool
	// gone are the UIDs of sets whose copy was ordered to be deleted, and then not found.
	gone map[types.UID]bool
	// believed has, by name, the content of a copy when it was last marked: that stays if other clients change it.
	believed map[string]believed
	// stored has the digests of contents that the seed stores in place of the sent ones.
	stored map[string]string

	mutex sync.Mutex
	// stale has, by name, the last seen resourceVersion of a changed copy; empty: it must be read at any version.
	stale map[string]string
}

// believed are the parts of a copy that may stay, and the digest of the spec that they belong to, as it was sent.
type believed struct{ gate, removal, confirmed, leaveOut, digest string }

// found is a copy as it was last read.
type found struct {
	uid             types.UID
	resourceVersion string
	generation      int64
	deleting        bool
	labels          map[string]string
	annotations     map[string]string
	// marked says that it has our mark: its gates are ours.
	marked bool
	// content is the digest of the stored spec; addons and core are its dependencies.
	content string
	addons  []string
	core    bool
	status  v1.AddonSetStatus
}

// NewKeeper returns a Keeper without copies. The client is for the seed.
func NewKeeper(with client.Client, seed, namespace string) *Keeper {
	return &Keeper{
		client: with, seed: seed, namespace: namespace, found: map[string]*found{}, others: map[string]bool{}, gone: map[types.UID]bool{},
		believed: map[string]believed{}, stored: map[string]string{}, stale: map[string]string{},
	}
}

// listLimit is how many sets a page has.
const listLimit = 500

// staleAtMost is above the maximal size of a list.
const staleAtMost = 4_096

// readTotals bound the copies that are read at a time: 100 sets of 512 KiB.
var readTotals = remote.Totals{Calls: 1_000, Bytes: 128 << 20}

// listTotals bound a list, above the 100 sets of a platform and those that are no longer wanted.
var listTotals = remote.Totals{Calls: 10, Items: 2_000, Bytes: 64 << 20}

// Evaluate sets the key by which marks are checked from now on.
func (k *Keeper) Evaluate(key []byte) {
	if !bytes.Equal(k.key, key) {
		clear(k.found) // their marks must be checked again
	}
	k.key = key
}

// List requests the names of all copies. Copies that changed since they were read are read by the next Read.
func (k *Keeper) List(ctx context.Context) error {
	k.Unlist()
	ctx = remote.Within(ctx, "the list of AddonSets", listTotals)
	present := map[string]bool{}
	for next, more := "", true; more; more = next != "" {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(v1.GroupVersion.WithKind("AddonSetList"))
		err := k.client.List(ctx, &list, client.InNamespace(k.namespace), client.Limit(listLimit), client.Continue(next))
		if err != nil {
			return fmt.Errorf("listing copies of AddonSets: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			present[name] = true
			k.markStale(name, list.Items[i].ResourceVersion)
		}
		next, k.from = list.Continue, list.ResourceVersion
	}
	for name := range k.found {
		if !present[name] {
			delete(k.found, name)
		}
	}
	k.others = present
	k.listed = true
	return nil
}

// Listed says whether the last List succeeded.
func (k *Keeper) Listed() bool { return k.listed }

// Changed notes that a copy changed on the seed, to that resourceVersion. It may be called at any time.
func (k *Keeper) Changed(name, resourceVersion string) { k.markStale(name, resourceVersion) }

func (k *Keeper) markStale(name, resourceVersion string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if _, marked := k.stale[name]; marked || len(k.stale) < staleAtMost {
		k.stale[name] = resourceVersion
	}
}

// takeStale are the names that must be read, sorted: our own writes were read from their answers.
func (k *Keeper) takeStale() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	maps.DeleteFunc(k.stale, func(name, resourceVersion string) bool {
		have := k.found[name]
		return have != nil && resourceVersion != "" && have.resourceVersion == resourceVersion
	})
	names := slices.Sorted(maps.Keys(k.stale))
	clear(k.stale)
	return names
}

// Read reads the changed copies of the wanted sets. It calls failed, by name, for a copy that can't be read.
func (k *Keeper) Read(ctx context.Context, wanted map[string]*Set, failed func(name string, err error)) {
	ctx = remote.Within(ctx, "the copies of AddonSets", readTotals)
	for _, name := range k.takeStale() {
		k.others[name] = true
		if wanted[name] == nil {
			delete(k.found, name) // it is read if it is wanted again
			continue
		}
		if _, err := k.read(ctx, name); err != nil {
			k.markStale(name, "")
			failed(name, err)
		}
	}
	for name := range wanted { // newly wanted ones that were not read
		if k.others[name] && k.found[name] == nil {
			if _, err := k.read(ctx, name); err != nil {
				failed(name, err)
			}
		}
	}
}

// read reads one copy; nil if there is none.
func (k *Keeper) read(ctx context.Context, name string) (*v1.AddonSet, error) {
	live := &v1.AddonSet{}
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: name}, live)
	if apierrors.IsNotFound(err) {
		delete(k.found, name)
		delete(k.others, name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of AddonSet %q: %w", name, err)
	}
	return live, k.note(live)
}

// note stores a copy as the seed returned it.
func (k *Keeper) note(live *v1.AddonSet) error {
	content, err := catalogue.SetDigest(&live.Spec)
	if err != nil {
		return fmt.Errorf("measuring the copy of AddonSet %q: %w", live.Name, err)
	}
	now := &found{
		uid: live.UID, resourceVersion: live.ResourceVersion, generation: live.Generation, deleting: live.DeletionTimestamp != nil,
		labels: bounded(live.Labels), annotations: bounded(live.Annotations), marked: catalogue.IsSetMarked(k.key, live),
		content: content, core: live.Spec.Type == v1.AddonSetCore, status: cut(k.seed, &live.Status),
	}
	if now.marked {
		k.believed[live.Name] = believed{
			gate: now.annotations[v1.AnnotationGate], removal: now.annotations[v1.AnnotationRemovalApproved],
			confirmed: now.annotations[v1.AnnotationConfirmDeletion], leaveOut: now.annotations[v1.AnnotationLeaveOut],
			digest: now.annotations[v1.AnnotationDigest],
		}
	}
	const itemsAtMost = 64
	for i := range live.Spec.Addons[:min(len(live.Spec.Addons), itemsAtMost)] {
		now.addons = append(now.addons, string(live.Spec.Addons[i].AddonRef.Name))
	}
	k.found[live.Name], k.others[live.Name] = now, true
	return nil
}

// bounded keeps the labels or annotations that may be ours. If some are dropped, it adds an entry that no object has,
// so that the copy does not count as right.
func bounded(all map[string]string) map[string]string {
	const most, longest = 16, 1024
	kept := make(map[string]string, min(len(all), most))
	for name, value := range all {
		if len(kept) >= most || len(name) > longest || len(value) > longest {
			kept[""] = ""
			continue
		}
		kept[name] = value
	}
	return kept
}

// Unwanted says whether the seed has copies of sets that the master does not know, which may need any Secret.
func (k *Keeper) Unwanted(wanted map[string]*Set) bool {
	for name := range k.others {
		if wanted[name] == nil {
			return true
		}
	}
	return false
}

// AllMarked says whether every copy of a wanted set has a mark of the present key.
func (k *Keeper) AllMarked(wanted map[string]*Set) bool {
	prefix := catalogue.MarkKeyID(k.key) + ":"
	for name, have := range k.found {
		if wanted[name] != nil && !strings.HasPrefix(have.annotations[v1.AnnotationMark], prefix) {
			return false
		}
	}
	return true
}

// Rows returns the rows of the wanted sets. Argument digests has the digests of the merged catalogues that the seed
// should have.
func (k *Keeper) Rows(wanted map[string]*Set, orders map[string]Order, digests, failed map[string]string) map[string]Row {
	rows := make(map[string]Row, len(wanted))
	for name, set := range wanted {
		row := Row{UID: set.UID, Run: set.Run, Failure: failed[name]}
		order := orders[name]
		have := k.found[name]
		switch {
		case have != nil:
			row.There, row.Status, row.RemovalApproved = true, have.status, k.believed[name].removal
			row.Confirmed = have.marked && have.annotations[v1.AnnotationConfirmDeletion] == name
			row.Synced = k.isRight(name, set, have) && have.status.ObservedGeneration == have.generation &&
				have.status.Catalogues == have.dependencies(digests) && hasGroups(set.Spec, have.status.Groups)
		case order.UID == set.UID && order.Delete:
			row.Gone = k.gone[set.UID]
		}
		rows[name] = row
	}
	return rows
}

// isRight says whether a copy is that of the present set.
func (k *Keeper) isRight(name string, set *Set, have *found) bool {
	return set.Spec != nil && !have.deleting && have.content == k.contentOf(name, set.Digest)
}

// contentOf is the digest of the content that the seed stores for a digest.
func (k *Keeper) contentOf(name, digest string) string {
	if other := k.stored[name+" "+digest]; other != "" {
		return other
	}
	return digest
}

// dependencies is the digest of the merged catalogues that a copy depends on.
func (f *found) dependencies(digests map[string]string) string {
	if f.core {
		return catalogue.DependencyDigest(digests)
	}
	named := make(map[string]string, len(f.addons))
	for _, name := range f.addons {
		named[name] = digests[name]
	}
	return catalogue.DependencyDigest(named)
}
