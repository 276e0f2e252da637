package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/apply"
)

// Kept is the number of revisions that Trim keeps.
const Kept = 5

// Records are the release records of a seed.
type Records struct {
	client client.Client
	reader client.Reader
	// revisions that installations of which nothing is known yet may have.
	revisions roll
}

// NewRecords keeps records by a client; what is read is read by reader, which must see past caches: a record that is a
// second old would be taken for the truth. Only which revisions there are may be ten seconds old, at first sight (LoadFirst).
func NewRecords(c client.Client, reader client.Reader) *Records {
	return &Records{client: c, reader: reader, revisions: roll{now: time.Now}}
}

// Load returns the newest complete record of an installation, nil where there is none. Errors: NewerFormatError,
// DamagedError, or the API server's.
func (r *Records) Load(ctx context.Context, namespace string, owner apply.Owner) (*Record, error) {
	heads, err := r.heads(ctx, namespace, owner)
	if err != nil {
		return nil, err
	}
	return r.newest(ctx, namespace, owner, heads)
}

// LoadFirst is Load for an installation that this process knows nothing of yet: which revisions there are is asked for all
// installations of the namespace together, and believed for ten seconds of those that were not written since.
func (r *Records) LoadFirst(ctx context.Context, namespace string, owner apply.Owner) (*Record, error) {
	heads, sure, err := r.revisions.look(ctx, namespace, owner.ID(), func() (map[string][]int, bool, error) {
		items, err := r.list(ctx, namespace)
		return headsOf(items), false, err
	})
	if err != nil {
		return nil, err
	}
	if !sure {
		return r.Load(ctx, namespace, owner)
	}
	return r.newest(ctx, namespace, owner, heads)
}

// newest is the first of these revisions that can be read.
func (r *Records) newest(ctx context.Context, namespace string, owner apply.Owner, heads []int) (*Record, error) {
	var damaged *DamagedError
	for _, revision := range heads {
		record, err := r.LoadRevision(ctx, namespace, owner, revision)
		switch {
		case err == nil && record != nil:
			if damaged != nil {
				record.Skipped = heads[0]
			}
			return record, nil
		case err != nil && !errors.As(err, &damaged):
			return nil, err
		}
	}
	if damaged != nil {
		return nil, damaged
	}
	return nil, nil
}

// LoadRevision returns one revision of an installation, nil where it is not kept.
func (r *Records) LoadRevision(ctx context.Context, namespace string, owner apply.Owner, revision int) (*Record, error) {
	var head corev1.Secret
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: headName(owner, revision)}, &head)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading release record %q: %w", headName(owner, revision), err)
	}
	return r.read(ctx, &head)
}

// SaveIntent writes a record in StateIntent, before the first remote write of its revision. A record that was not loaded
// is a new revision, or takes the place of an intent of the same number that was never carried out; ConflictError says
// that the revision exists in another state.
func (r *Records) SaveIntent(ctx context.Context, namespace string, record *Record) error {
	record.State = StateIntent
	return r.save(ctx, namespace, record)
}

// takePlace has a new record be written over the intent of its number, if there is one.
func (r *Records) takePlace(ctx context.Context, namespace string, record *Record) error {
	var head corev1.Secret
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: headName(record.Owner(), record.Revision)}, &head)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading release record %q: %w", headName(record.Owner(), record.Revision), err)
	}
	about, err := indexOf(&head)
	if err != nil {
		return err
	}
	if head.Labels[LabelState] == string(StateIntent) {
		record.stored = stored{resourceVersion: head.ResourceVersion, parts: about.Parts}
	}
	return nil
}

// SaveApplied writes a record in StateApplied.
func (r *Records) SaveApplied(ctx context.Context, namespace string, record *Record) error {
	record.State = StateApplied
	return r.save(ctx, namespace, record)
}

// save writes the parts under names that the stored head does not refer to, then the head, then removes the parts of
// before: a reader sees the old record or the new one, wherever the writer is killed.
func (r *Records) save(ctx context.Context, namespace string, record *Record) error {
	if record.stored.light {
		return &LightError{Secret: headName(record.Owner(), record.Revision)}
	}
	defer r.revisions.touch(namespace, record.Owner().ID())
	record.Format = Format
	if record.Time.IsZero() {
		record.Time = metav1.Now()
	}
	packed, err := pack(record)
	if err != nil {
		return err
	}
	chunks := split(packed)
	unsure := record.State == StateIntent && record.stored.resourceVersion == ""
	if unsure && len(chunks) > 0 { // the parts of an intent that stands are not written over
		if err := r.takePlace(ctx, namespace, record); err != nil {
			return err
		}
	}
	numbers := freeNumbers(record.stored.parts, len(chunks))
	for i, number := range numbers {
		if err := r.writePart(ctx, partSecret(namespace, record, number, chunks[i])); err != nil {
			return err
		}
	}
	head := headSecret(namespace, record, packed, numbers)
	err = r.writeHead(ctx, head)
	var taken *ConflictError
	if unsure && record.stored.resourceVersion == "" && errors.As(err, &taken) {
		err = r.overwrite(ctx, namespace, record, head)
	}
	if err != nil {
		return err
	}
	before := record.stored.parts
	record.stored = stored{resourceVersion: head.ResourceVersion, parts: numbers}
	return r.removeParts(ctx, namespace, record, before)
}

// overwrite writes the head of a new revision over the intent of its number, if that is what stands there.
func (r *Records) overwrite(ctx context.Context, namespace string, record *Record, head *corev1.Secret) error {
	if err := r.takePlace(ctx, namespace, record); err != nil {
		return err
	}
	head.ResourceVersion = record.stored.resourceVersion
	return r.writeHead(ctx, head)
}

func (r *Records) writeHead(ctx context.Context, head *corev1.Secret) error {
	write := func() error { return r.client.Update(ctx, head) }
	if head.ResourceVersion == "" {
		write = func() error { return r.client.Create(ctx, head) }
	}
	err := write()
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return &ConflictError{Secret: head.Name}
	}
	if err != nil {
		return fmt.Errorf("writing release record %q: %w", head.Name, err)
	}
	return nil
}

// writePart overwrites what a writer that was killed may have left under the name.
func (r *Records) writePart(ctx context.Context, part *corev1.Secret) error {
	err := r.client.Create(ctx, part)
	if apierrors.IsAlreadyExists(err) {
		err = r.client.Update(ctx, part)
	}
	if err != nil {
		return fmt.Errorf("writing part %q of a release record: %w", part.Name, err)
	}
	return nil
}

func (r *Records) removeParts(ctx context.Context, namespace string, record *Record, numbers []int) error {
	for _, number := range numbers {
		part := partSecret(namespace, record, number, nil)
		if err := client.IgnoreNotFound(r.client.Delete(ctx, part)); err != nil {
			return fmt.Errorf("removing part %q of a release record: %w", part.Name, err)
		}
	}
	return nil
}

// Trim removes all but the newest five revisions and those to keep.
func (r *Records) Trim(ctx context.Context, namespace string, owner apply.Owner, keep ...int) error {
	heads, err := r.heads(ctx, namespace, owner)
	if err != nil || len(heads) <= Kept {
		return err
	}
	return r.remove(ctx, namespace, owner, func(revision int) bool {
		return revision <= heads[Kept] && !slices.Contains(keep, revision)
	})
}

// Forget removes every record of an installation, which is the last act of its removal.
func (r *Records) Forget(ctx context.Context, namespace string, owner apply.Owner) error {
	return r.remove(ctx, namespace, owner, func(int) bool { return true })
}
