package pullsecret

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Held is the known state of one user cluster, for one reconciliation at a time.
type Held struct {
	Copies
	records *Records
	cluster string
	version string
	// size is the size of the record as it was read or saved, in bytes.
	size int
	// unsaved says that it was changed since it was read or saved.
	unsaved bool
	// stale makes it be read again: another client wrote it, or a write failed.
	stale bool
	turn  chan struct{}
	// without are revisions, by installation, that need no copy.
	without map[string]int
}

// parse reads a record. An unreadable one counts as none: its copies then belong to others.
func (h *Held) parse(found *corev1.ConfigMap) {
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
	h.parse(found)
	return nil
}

// Release lets the next reconciliation use it.
func (h *Held) Release() { <-h.turn }

// MarkUnknown makes the next reconciliation read the record again.
func (h *Held) MarkUnknown() { h.stale = true }

// Known is the recorded use of an installation, if it is of this revision. The record does not contain that an
// installation needs no copy: that is known from the installation's own record, and kept in memory (without).
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

// Note records what an installation needs, or that it needs nothing.
func (h *Held) Note(installation string, use Use) {
	delete(h.without, installation)
	if len(use.all()) == 0 {
		h.without[installation] = use.Revision
	}
	h.unsaved = h.Need(installation, use) || h.unsaved
}

// Outgrown says whether the planned writes would make the record too large, and larger than it is.
func (h *Held) Outgrown(plan Plan) (bool, error) {
	text, err := json.Marshal(h.Copies)
	if err != nil {
		return false, fmt.Errorf("encoding the copies of the pull Secret: %w", err)
	}
	size := len(text)
	for _, at := range plan.Write {
		if h.All[at].UID == "" {
			size += entryBytes
		}
	}
	return size > MaxRecord && size > h.size, nil
}

// Save writes the record if it changed; one without copies and uses is removed.
func (h *Held) Save(ctx context.Context) error {
	if !h.unsaved {
		return nil
	}
	object, isEmpty := h.object(), len(h.All)+len(h.Uses) == 0
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
