package revision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/base/listcache"
	"github.com/trellis-addons/trellis/pkg/base/turns"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Kept is the number of revisions that Trim keeps.
const Kept = 5

// Writer writes Secrets. Records need no more of a client.
type Writer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error
	Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error
}

// Client reads and writes Secrets.
type Client interface {
	client.Reader
	Writer
}

// Records are the release records of a seed.
type Records struct {
	client    Writer
	reader    client.Reader
	seal      Seal
	sealing   *Sealing
	revisions *listcache.Lists
	// budget is Budget, or less in tests.
	budget int
	// turns has one turn at a time for each Cluster.
	turns turns.Turns
}

// NewRecords returns the records of a seed. The reader must read past caches: a record that is a second old would be
// wrong. Only LoadFirst uses a list that may be ten seconds old.
func NewRecords(c Writer, reader client.Reader, seal Seal) *Records {
	return &Records{client: c, reader: reader, seal: seal, revisions: listcache.New(time.Now), budget: Budget, turns: turns.Turns{Each: 1}}
}

// Load returns the newest complete record of an installation, nil if there is none. Errors: NewerRecordError,
// DamagedError, TooManyError, or the API server's.
func (r *Records) Load(ctx context.Context, namespace string, owner ownership.Owner) (*Record, error) {
	if err := r.ready(ctx, namespace); err != nil {
		return nil, err
	}
	items, err := r.list(ctx, namespace, recordsOf(owner))
	if err != nil {
		return nil, err
	}
	return r.newest(ctx, namespace, owner, headsOf(items, owner))
}

// LoadFirst is Load for an installation that is not in memory yet. It lists revisions for the whole
// namespace, at most every ten seconds, except for installations written since.
func (r *Records) LoadFirst(ctx context.Context, namespace string, owner ownership.Owner) (*Record, error) {
	if err := r.ready(ctx, namespace); err != nil {
		return nil, err
	}
	list := func() (map[string][]int, bool, error) {
		items, err := r.list(ctx, namespace)
		return revisionsOf(items), false, err
	}
	revisions, sure, err := r.revisions.Find(ctx, namespace, owner.LongID(), list)
	if err != nil {
		return nil, err
	}
	if !sure {
		return r.Load(ctx, namespace, owner)
	}
	heads := make([]named, len(revisions))
	for i, revision := range revisions {
		heads[i] = named{id: owner.LongID(), revision: revision}
	}
	return r.newest(ctx, namespace, owner, heads)
}

func (r *Records) newest(ctx context.Context, namespace string, owner ownership.Owner, heads []named) (*Record, error) {
	var newest, damaged *DamagedError
	for _, head := range heads[:min(len(heads), triedHeads)] {
		record, err := r.load(ctx, namespace, owner, head.revision)
		switch {
		case err == nil && record != nil:
			if newest != nil {
				record.Skipped, record.Damage = heads[0].revision, newest.Error()
			}
			return record, nil
		case err != nil && !errors.As(err, &damaged):
			return nil, err
		}
		newest = cmp.Or(newest, damaged)
	}
	if damaged != nil {
		return nil, damaged
	}
	return nil, nil
}

// LoadRevision returns one revision of an installation, nil if it does not exist any more.
func (r *Records) LoadRevision(ctx context.Context, namespace string, owner ownership.Owner, revision int) (*Record, error) {
	if err := r.ready(ctx, namespace); err != nil {
		return nil, err
	}
	return r.load(ctx, namespace, owner, revision)
}

func (r *Records) load(ctx context.Context, namespace string, owner ownership.Owner, revision int) (*Record, error) {
	head, err := r.head(ctx, namespace, headName(owner, revision))
	if err != nil || head == nil {
		return nil, err
	}
	return r.read(ctx, head, owner, revision)
}

func (r *Records) head(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	var head corev1.Secret
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &head)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading release record %q: %w", name, err)
	}
	return &head, nil
}

// SaveIntent writes a record before the first remote write. It may replace an intent of its number that was not loaded; ConflictError:
// the revision exists in another state; BudgetError: the Cluster has too many bytes of records.
func (r *Records) SaveIntent(ctx context.Context, namespace string, record *Record) error {
	record.State = StateIntent
	return r.save(ctx, namespace, record)
}

func (r *Records) replaceIntent(ctx context.Context, namespace string, record *Record) error {
	head, err := r.head(ctx, namespace, headName(record.Owner(), record.Revision))
	if err != nil || head == nil {
		return err
	}
	about, err := r.seal.open(head)
	if err != nil {
		return err
	}
	if !about.is(record.Owner(), record.Revision) || about.State != StateIntent {
		return &ConflictError{Secret: head.Name}
	}
	record.stored = stored{resourceVersion: head.ResourceVersion, parts: about.Parts}
	return nil
}

// SaveApplied writes a record in StateApplied.
func (r *Records) SaveApplied(ctx context.Context, namespace string, record *Record) error {
	record.State = StateApplied
	return r.save(ctx, namespace, record)
}

func (r *Records) save(ctx context.Context, namespace string, record *Record) error {
	if record.stored.light {
		return &LightError{Secret: headName(record.Owner(), record.Revision)}
	}
	if record.Time.IsZero() {
		record.Time = metav1.Now()
	}
	if err := record.bound(); err != nil {
		return err
	}
	defer r.revisions.Changed(namespace, record.Owner().LongID())
	return r.write(ctx, namespace, record)
}

// write writes new parts, then the head, then removes old parts: if the process is killed, one record is whole.
func (r *Records) write(ctx context.Context, namespace string, record *Record) error {
	record.Format = Format
	packed, err := pack(record)
	if err != nil {
		return err
	}
	chunks := split(packed)
	isUnknown := record.State == StateIntent && record.stored.resourceVersion == ""
	end, err := r.reserveSpace(ctx, namespace, record, len(packed))
	if err != nil {
		return err
	}
	defer end()
	if isUnknown && len(chunks) > 0 { // parts of a stored intent are not overwritten
		if err := r.replaceIntent(ctx, namespace, record); err != nil {
			return err
		}
	}
	numbers := freeNumbers(record.stored.parts, len(chunks))
	for i, number := range numbers {
		if err := r.writePart(ctx, partSecret(namespace, record, number, chunks[i])); err != nil {
			return err
		}
	}
	head := r.headSecret(namespace, record, packed, numbers)
	err = r.writeHead(ctx, head)
	if _, taken := errors.AsType[*ConflictError](err); taken && isUnknown && record.stored.resourceVersion == "" {
		err = r.overwrite(ctx, namespace, record, head)
	}
	if err != nil {
		return err
	}
	hadParts := len(record.stored.parts) > 0
	record.stored = stored{resourceVersion: head.ResourceVersion, parts: numbers}
	if !hadParts && len(numbers) == 0 {
		return nil
	}
	return r.removeOldParts(ctx, namespace, record)
}

// removeOldParts removes parts that the head does not refer to, also those of killed writers.
func (r *Records) removeOldParts(ctx context.Context, namespace string, record *Record) error {
	return r.remove(ctx, namespace, record.Owner(), func(name named) bool {
		return !name.isHead() && name.revision == record.Revision && !slices.Contains(record.stored.parts, name.part)
	})
}

func (r *Records) overwrite(ctx context.Context, namespace string, record *Record, head *corev1.Secret) error {
	if err := r.replaceIntent(ctx, namespace, record); err != nil {
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

// writePart overwrites the part of a killed writer, but no Secret of another type.
func (r *Records) writePart(ctx context.Context, part *corev1.Secret) error {
	err := r.client.Create(ctx, part)
	if apierrors.IsAlreadyExists(err) {
		there, failed := r.head(ctx, part.Namespace, part.Name)
		if failed == nil && there != nil && there.Type != SecretType {
			return &DamagedError{part.Name, "has the wrong type, so no part of a record can be written to it: delete it"}
		}
		err = r.client.Update(ctx, part)
	}
	if err != nil {
		return fmt.Errorf("writing part %q of a release record: %w", part.Name, err)
	}
	return nil
}

// Trim removes all but the newest five revisions and those to keep.
func (r *Records) Trim(ctx context.Context, namespace string, owner ownership.Owner, keep ...int) error {
	items, err := r.list(ctx, namespace, recordsOf(owner))
	heads := headsOf(items, owner)
	if err != nil || len(heads) <= Kept {
		return err
	}
	return r.remove(ctx, namespace, owner, func(name named) bool {
		return name.revision <= heads[Kept].revision && !slices.Contains(keep, name.revision)
	})
}

// Reown gives an owner's records to the Cluster, which was restored with another UID for the same user cluster. They
// are sealed again under their names, the newest first. Unreadable ones are left.
func (r *Records) Reown(ctx context.Context, namespace string, owner ownership.Owner, now metav1.OwnerReference) error {
	if err := r.ready(ctx, namespace); err != nil {
		return err
	}
	items, err := r.list(ctx, namespace, recordsOf(owner))
	if err != nil {
		return err
	}
	for _, head := range headsOf(items, owner) {
		record, err := r.load(ctx, namespace, owner, head.revision)
		switch {
		case isUnreadable(err) || err == nil && record == nil:
			continue
		case err == nil && record.ClusterUID == now.UID:
			err = r.removeOldParts(ctx, namespace, record)
		case err == nil:
			record.BelongTo(now)
			record.Origin = owner.ClusterUID
			err = r.save(ctx, namespace, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Forget removes every record of an installation, as the last step of its removal.
func (r *Records) Forget(ctx context.Context, namespace string, owner ownership.Owner) error {
	return r.remove(ctx, namespace, owner, func(named) bool { return true })
}
