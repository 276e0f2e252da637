package pullsecret

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

const (
	// recordPrefix begins the name of the ConfigMap of a Cluster; what follows is its Key.
	recordPrefix = "addon-pull-"
	// keyCopies holds Copies as JSON.
	keyCopies = "copies.json"
	// managedBy is the value of label managed-by of these ConfigMaps.
	managedBy = "pull-secret"
	// listed records are read at once.
	listed = 50
	// MaxRecord is how large a record may grow, in bytes; a ConfigMap may have twice that. Few copies
	// take 700 bytes.
	MaxRecord, entryBytes = 512 << 10, 700
)

func encoded(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

// Options say what is copied.
type Options struct {
	// Namespace is the platform's on the seed, Name the Secret's; empty: there is none.
	Namespace, Name string
	// Key keys digests of the content.
	Key []byte
	// Read gives a marked Secret whole.
	Read func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error)
	// Away is how long the original has to be away before its copies go.
	Away time.Duration
	// Needs are the namespaces whose pods, among these objects, name the Secret, and those labelled.
	Needs func(objects []*unstructured.Unstructured, name string) []string
}

// Records has the copies of all user clusters of a seed. What was read is kept for the life of the
// process, since one process writes at a time.
type Records struct {
	Options
	client Writer
	reader client.Reader

	mutex  sync.Mutex
	listed bool
	// awaySince is when the original was first not found, or without its mark; zero: it is there.
	awaySince time.Time
	// isUselessTold says that the log has that the original is of no use.
	isUselessTold bool
	// held by the Key of the Cluster.
	held map[string]*Held
}

// Writer writes records.
type Writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
}

// NewRecords writes by a client whose calls don't end with a pass, since what was copied has to be
// saved, and reads past caches by a reader.
func NewRecords(c Writer, reader client.Reader, options Options) *Records {
	return &Records{Options: options, client: c, reader: reader, held: map[string]*Held{}}
}

// Held is what is known of one user cluster, for one pass at a time.
type Held struct {
	Copies
	records *Records
	cluster string
	version string
	// size is that of the record as it was read or saved, in bytes.
	size int
	// unsaved says that it was changed since it was read or saved.
	unsaved bool
	// stale has it read again: somebody else wrote it, or a write failed.
	stale bool
	turn  chan struct{}
	// without are revisions, by installation, that need no copy.
	without map[string]int
}

// Hold gives the copies of a Cluster's user cluster to a pass, until it calls Release; nil where
// there is neither a Secret to copy nor a copy. It waits for another pass over the same cluster.
func (r *Records) Hold(ctx context.Context, cluster target.Ref, origin types.UID) (*Held, error) {
	held, err := r.of(ctx, cluster.Key())
	if err != nil || held == nil {
		return nil, err
	}
	select {
	case held.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if held.stale {
		if err := held.read(ctx); err != nil {
			held.Release()
			return nil, err
		}
	}
	if held.Origin != origin { // what is on record is in another user cluster
		held.Copies, held.without = Copies{Origin: origin}, map[string]int{}
	}
	return held, nil
}

func (r *Records) of(ctx context.Context, cluster string) (*Held, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err := r.list(ctx); err != nil {
		return nil, err
	}
	if r.held[cluster] == nil {
		if r.Name == "" {
			return nil, nil
		}
		r.held[cluster] = r.newHeld(cluster)
	}
	return r.held[cluster], nil
}

func (r *Records) newHeld(cluster string) *Held {
	return &Held{records: r, cluster: cluster, turn: make(chan struct{}, 1), without: map[string]int{}}
}

// list reads all records, once.
func (r *Records) list(ctx context.Context) error {
	if r.listed {
		return nil
	}
	for next, more := "", true; more; {
		var found corev1.ConfigMapList
		err := r.reader.List(ctx, &found, client.InNamespace(r.Namespace), client.MatchingLabels{v1.LabelManagedBy: managedBy},
			client.Limit(listed), client.Continue(next))
		if err != nil {
			return fmt.Errorf("listing the copies of pull Secrets: %w", err)
		}
		for i := range found.Items {
			if cluster, is := strings.CutPrefix(found.Items[i].Name, recordPrefix); is {
				held := r.newHeld(cluster)
				held.take(&found.Items[i])
				r.held[cluster] = held
			}
		}
		next = found.Continue
		more = next != ""
	}
	r.listed = true
	return nil
}

// take takes a record over. One that can't be read is as none: its copies are somebody else's then.
func (h *Held) take(found *corev1.ConfigMap) {
	h.Copies, h.version, h.stale, h.unsaved = Copies{}, found.ResourceVersion, false, false
	h.size = len(found.Data[keyCopies])
	if err := json.Unmarshal([]byte(found.Data[keyCopies]), &h.Copies); err != nil {
		h.Copies = Copies{}
	}
}

func (h *Held) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: h.records.Namespace, Name: recordPrefix + h.cluster, ResourceVersion: h.version,
		Labels: map[string]string{v1.LabelManagedBy: managedBy},
	}}
}

func (h *Held) read(ctx context.Context) error {
	found := &corev1.ConfigMap{}
	if err := h.records.reader.Get(ctx, client.ObjectKeyFromObject(h.object()), found); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading which copies of the pull Secret cluster %q has: %w", h.cluster, err)
	}
	h.take(found)
	return nil
}

// Release lets the next pass have them.
func (h *Held) Release() { <-h.turn }

// Doubt has the record read again by the next pass.
func (h *Held) Doubt() { h.stale = true }

// IsIdle says whether there is nothing to copy, and no copy.
func (h *Held) IsIdle() bool { return h.records.Name == "" && len(h.Copies.Copies) == 0 }

// Known is the use that is on record of an installation, if it is that of a revision. That
// an installation needs no copy stands in its own record, and is kept in memory (without).
func (h *Held) Known(installation string, revision int) (use Use, known bool) {
	use, had := h.Uses[installation]
	if had && use.Revision == revision {
		return use, true
	}
	without, has := h.without[installation]
	return Use{Revision: revision}, has && without == revision && !had
}

// Change says that the copies were changed.
func (h *Held) Change() { h.unsaved = true }

// Note notes what an installation needs, or that it needs nothing.
func (h *Held) Note(installation string, use Use) {
	delete(h.without, installation)
	if len(use.all()) == 0 {
		h.without[installation] = use.Revision
	}
	h.unsaved = h.Need(installation, use) || h.unsaved
}

// Outgrown says whether the record would become too large by what is to be written, and larger than
// it is.
func (h *Held) Outgrown(plan Plan) (bool, error) {
	text, err := json.Marshal(h.Copies)
	if err != nil {
		return false, fmt.Errorf("encoding the copies of the pull Secret: %w", err)
	}
	size := len(text)
	for _, at := range plan.Write {
		if h.Copies.Copies[at].UID == "" {
			size += entryBytes
		}
	}
	return size > MaxRecord && size > h.size, nil
}

// Save writes the record where it was changed; one without copies and uses is removed.
func (h *Held) Save(ctx context.Context) error {
	if !h.unsaved {
		return nil
	}
	object, isEmpty := h.object(), len(h.Copies.Copies)+len(h.Uses) == 0
	if isEmpty && h.version == "" {
		h.unsaved = false
		return nil
	}
	text, err := json.Marshal(h.Copies)
	if err != nil {
		return fmt.Errorf("encoding the copies of the pull Secret: %w", err)
	}
	object.Data = map[string]string{keyCopies: string(text)}
	switch {
	case isEmpty:
		err = client.IgnoreNotFound(h.records.client.Delete(ctx, object, client.Preconditions{ResourceVersion: &h.version}))
		object.ResourceVersion = ""
	case h.version == "":
		err = h.records.client.Create(ctx, object)
	default:
		err = h.records.client.Update(ctx, object)
	}
	if err != nil {
		h.stale = true
		return fmt.Errorf("recording which copies of the pull Secret cluster %q has: %w", h.cluster, err)
	}
	h.version, h.size, h.unsaved = object.ResourceVersion, len(text), false
	return nil
}

// Forget removes the record of a Cluster that is gone.
func (r *Records) Forget(ctx context.Context, cluster target.Ref) error {
	r.mutex.Lock()
	delete(r.held, cluster.Key())
	r.mutex.Unlock()
	object := (&Held{records: r, cluster: cluster.Key()}).object()
	if err := r.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the record of copies in cluster %q, which is gone: %w", cluster.Key(), err)
	}
	return nil
}
