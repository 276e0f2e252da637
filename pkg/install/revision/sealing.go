package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// sealedField of the inputs key's Secret says that its key sealed all records: others are not accepted. A new Secret
	// lacks it.
	sealedField = "records"
	sealedText  = "sealed"

	sealInterval = 10 * time.Second
	sealPatience = 10 * time.Minute
	sealWorkers  = 4
)

// decoding lets one unsealed record be decoded at a time.
var decoding = semaphore.NewWeighted(1)

// Sealing seals records again after their key was lost or replaced. Each process seals a namespace once, before it is
// used; when all are sealed, that is recorded.
type Sealing struct {
	records   *Records
	secret    client.ObjectKey
	inputsKey []byte

	over    atomic.Bool
	flights singleflight.Group
	sealed  sync.Map
}

// SealAgain has all records sealed with the present key, unless the Secret of the inputs key says that they are. The
// manager that leads must start the result. Call it before the records are used.
func (r *Records) SealAgain(namespace string, inputsKey []byte) *Sealing {
	r.sealing = &Sealing{records: r, secret: client.ObjectKey{Namespace: namespace, Name: InputsKeySecret}, inputsKey: inputsKey}
	return r.sealing
}

// ChangedKeyError says that the inputs key changed: this process must be restarted.
type ChangedKeyError struct{ Secret string }

func (e *ChangedKeyError) Error() string {
	return fmt.Sprintf("secret %q has a different key than when this process started", e.Secret)
}

// NeedLeaderElection says yes: two processes must not write the same records.
func (s *Sealing) NeedLeaderElection() bool { return true }

// Start seals the records of all namespaces, records that, and ends.
func (s *Sealing) Start(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, sealInterval, true, func(ctx context.Context) (bool, error) {
		err := s.sealAll(ctx)
		if _, changed := errors.AsType[*ChangedKeyError](err); changed {
			return false, err
		}
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "sealing release records; trying again")
		}
		return err == nil, nil
	})
}

func (s *Sealing) sealAll(ctx context.Context) error {
	if over, err := s.isDone(ctx); over || err != nil {
		return err
	}
	namespaces := map[string]bool{}
	err := s.records.each(ctx, metav1.NamespaceAll, func(item *metav1.PartialObjectMetadata) error {
		namespaces[item.Namespace] = true
		return nil
	})
	if err != nil {
		return err
	}
	var group errgroup.Group // an error in one namespace does not stop the others
	group.SetLimit(sealWorkers)
	for namespace := range namespaces {
		group.Go(func() error { return tolerated(ctx, namespace, s.ready(ctx, namespace)) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.markDone(ctx)
}

// tolerated logs errors that a tenant could cause permanently, and returns others. Nothing can be written to a
// namespace that is being deleted, and one with too many Secrets is not read at all.
func tolerated(ctx context.Context, namespace string, err error) error {
	if _, many := errors.AsType[*TooManyError](err); many || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		log.FromContext(ctx).Error(err, "release records can't be sealed, and are ignored", "namespace", namespace)
		return nil
	}
	return err
}

func (s *Sealing) isDone(ctx context.Context) (bool, error) {
	if s.over.Load() {
		return true, nil
	}
	secret, err := s.keySecret(ctx)
	if err != nil {
		return false, err
	}
	if string(secret.Data[sealedField]) == sealedText {
		s.over.Store(true)
	}
	return s.over.Load(), nil
}

func (s *Sealing) keySecret(ctx context.Context) (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := s.records.reader.Get(ctx, s.secret, &secret); err != nil {
		return nil, fmt.Errorf("getting the inputs key %q: %w", s.secret, err)
	}
	if !bytes.Equal(secret.Data[inputsKeyField], s.inputsKey) {
		return nil, &ChangedKeyError{Secret: s.secret.String()}
	}
	return &secret, nil
}

func (s *Sealing) markDone(ctx context.Context) error {
	secret, err := s.keySecret(ctx)
	if err != nil {
		return err
	}
	secret.Data[sealedField] = []byte(sealedText)
	if err := s.records.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("recording in %q that all release records are sealed: %w", s.secret, err)
	}
	s.over.Store(true)
	return nil
}

// ready waits until the records of a namespace are sealed, together with other callers.
func (r *Records) ready(ctx context.Context, namespace string) error {
	if r.sealing == nil || r.sealing.over.Load() {
		return nil
	}
	return r.sealing.ready(ctx, namespace)
}

func (s *Sealing) ready(ctx context.Context, namespace string) error {
	if _, sealed := s.sealed.Load(namespace); sealed {
		return nil
	}
	sealing := s.flights.DoChan(namespace, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sealPatience)
		defer cancel()
		if _, sealed := s.sealed.Load(namespace); sealed {
			return nil, nil
		}
		if over, err := s.isDone(ctx); over || err != nil {
			return nil, err
		}
		err := s.records.sealNamespace(ctx, namespace)
		if err == nil {
			s.sealed.Store(namespace, true)
		}
		return nil, err
	})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case result := <-sealing:
		return result.Err
	}
}

// sealNamespace seals the readable records of a namespace. All others count as damaged.
func (r *Records) sealNamespace(ctx context.Context, namespace string) error {
	items, err := r.list(ctx, namespace)
	if err != nil {
		return err
	}
	for i := range items {
		name, ok := parseName(items[i].Name)
		if !ok || !name.isHead() {
			continue
		}
		err := r.sealHead(ctx, namespace, items[i].Name)
		if isUnreadable(err) {
			log.FromContext(ctx).Error(err, "a release record can't be sealed, and is ignored", "namespace", namespace)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isUnreadable(err error) bool {
	var damaged *DamagedError
	var newer *NewerRecordError
	var large *TooLargeError
	var grown *GrowthError
	return errors.As(err, &damaged) || errors.As(err, &newer) || errors.As(err, &large) || errors.As(err, &grown)
}

// sealHead seals a record that does not have the present key's seal, under its name.
func (r *Records) sealHead(ctx context.Context, namespace, name string) error {
	head, err := r.head(ctx, namespace, name)
	if err != nil || head == nil || r.seal.isOn(head) {
		return err
	}
	record, err := r.readUnsealed(ctx, head)
	if err != nil {
		return err
	}
	return r.write(ctx, namespace, record)
}

// readUnsealed reads an unsealed record, which must agree with its name and label.
func (r *Records) readUnsealed(ctx context.Context, head *corev1.Secret) (*Record, error) {
	about, err := decodeIndex(head)
	if err != nil {
		return nil, err
	}
	packed, err := r.gather(ctx, head, about)
	if err != nil {
		return nil, err
	}
	if err := decoding.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer decoding.Release(1)
	record, err := unpack(head.Name, packed, about)
	if err != nil {
		return nil, err
	}
	owner, states := record.Owner(), []State{StateIntent, StateApplied}
	if headName(owner, record.Revision) != head.Name || head.Labels[v1.LabelInstallation] != owner.ID() ||
		!slices.Contains(states, record.State) {
		return nil, &DamagedError{head.Name, "its content belongs to a different record than its name says"}
	}
	if err := record.bound(); err != nil {
		return nil, err
	}
	record.stored = stored{resourceVersion: head.ResourceVersion, parts: about.Parts}
	return record, nil
}
