package installer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/fieldsets"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/pullsecret"
)

var secrets = calls.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("secrets"), Namespaced: true}

// unusedVersion is a resource version that no object has: a write with it only creates.
const unusedVersion = "1"

const (
	// savedAtOnce is after how many written copies the record is saved: a process that ends leaves few
	// behind whose UID is not on record.
	savedAtOnce = 20
	// maxCopyFields is far more than the fields of a copy take, in bytes: the user cluster made more up.
	maxCopyFields = 2 << 10
)

// errCopyVanished says that a copy is not where it was written.
var errCopyVanished = errors.New("the copy of the pull Secret is gone")

// putCopies writes copies at these positions, and saves what came of it. Notes are about those that
// could not be written. Copies that vanished are made anew once, after their new nonces are on
// record.
func (p *Pass) putCopies(
	ctx context.Context, held *pullsecret.Held, at []int, original pullsecret.Original,
) (notes []calls.Note, stop *Stop) {
	notes, vanished, stop := p.tryCopies(ctx, held, at, original)
	if stop != nil || len(vanished) == 0 {
		return notes, stop
	}
	for _, position := range vanished {
		one := &held.All[position]
		one.UID, one.Nonce = "", pullsecret.NewNonce() // the one before was seen
		held.Change()
	}
	if err := held.Save(ctx); err != nil {
		return notes, Failed(err)
	}
	again, vanished, stop := p.tryCopies(ctx, held, vanished, original)
	for _, position := range vanished {
		again = append(again, *vanishedCopy(held.All[position].Key))
	}
	return append(notes, again...), stop
}

// tryCopies tries each once, and saves the record. Vanished are positions of those that are gone.
func (p *Pass) tryCopies(
	ctx context.Context, held *pullsecret.Held, at []int, original pullsecret.Original,
) (notes []calls.Note, vanished []int, stop *Stop) {
	var failed error
	for tried, position := range at {
		one := &held.All[position]
		note, err := p.putCopy(ctx, held, one, original)
		if errors.Is(err, errCopyVanished) {
			vanished = append(vanished, position)
			continue
		}
		if failed = err; failed != nil {
			break
		}
		if note != nil {
			notes = append(notes, *note)
		}
		if (tried+1)%savedAtOnce != 0 {
			continue
		}
		if err := held.Save(ctx); err != nil {
			return notes, vanished, Failed(err)
		}
	}
	if err := held.Save(ctx); err != nil {
		return notes, vanished, Failed(err)
	}
	if failed != nil {
		return notes, vanished, p.copyFailed(AboutApply, failed)
	}
	return notes, vanished, nil
}

// putCopy writes one copy: over the object with the UID on record, or as a new one. What else has
// its name stays.
func (p *Pass) putCopy(
	ctx context.Context, held *pullsecret.Held, one *pullsecret.Copy, original pullsecret.Original,
) (*calls.Note, error) {
	client := calls.ClientOf(p.target(), secrets, one.Namespace)
	err := p.sendCopy(ctx, client, held, one, original)
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) { // another UID is either
		return refusedCopy(one.Key, err)
	}
	live, failed := client.Read(ctx, one.Key)
	switch {
	case failed != nil:
		return nil, failed
	case live == nil:
		return nil, errCopyVanished
	case live.UID == "":
		return nil, withoutUID(one.Key)
	case one.UID == live.UID:
		return refusedCopy(one.Key, err)
	case one.UID != "" || live.Annotations[v1.AnnotationPullSecret] != one.Nonce:
		return takenCopy(one.Key), nil
	}
	one.UID = live.UID // written before a process ended
	return refusedCopy(one.Key, p.sendCopy(ctx, client, held, one, original))
}

func withoutUID(key ownership.Key) error {
	return calls.Misbehaves("Secret %q in namespace %q has no UID", key.Name, key.Namespace)
}

// sendCopy takes the copy over into the record if it is accepted.
func (p *Pass) sendCopy(
	ctx context.Context, client calls.Client, held *pullsecret.Held, one *pullsecret.Copy, original pullsecret.Original,
) error {
	written, err := sendSecret(ctx, client, held.Object(*one, original.Content), held.OwnerOf(), one.Entry)
	if err != nil {
		return err
	}
	one.Entry, one.Content = written, original.Digest
	held.Change()
	return nil
}

// sendSecret writes a Secret that is in no inventory over the object with the UID of its entry or, without one, as a new
// one. It gives the entry as the API server accepted it.
func sendSecret(
	ctx context.Context, client calls.Client, object *unstructured.Unstructured, owner ownership.Owner, entry ownership.Entry,
) (ownership.Entry, error) {
	object.SetUID(entry.UID)
	object.SetResourceVersion("")
	if entry.UID == "" {
		object.SetResourceVersion(unusedVersion)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return entry, fmt.Errorf("encoding %q: %w", entry.Key, err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: owner.FieldManager(), Force: &force}
	live, err := client.Patch(ctx, entry.Name, types.ApplyPatchType, body, options)
	switch {
	case err != nil:
		return entry, err
	case live.UID == "":
		return entry, withoutUID(entry.Key)
	case entry.UID != "" && entry.UID != live.UID:
		return entry, calls.Misbehaves("Secret %q in namespace %q has another UID than the one that was written", entry.Name, entry.Namespace)
	}
	fields, _, _ := fieldsets.Believable(live.ManagedFields, owner.FieldManager(), len(body))
	if len(fields) > maxCopyFields {
		fields = nil
	}
	entry.UID, entry.Fields = live.UID, fields
	return entry, nil
}

// vanishedCopy is told where the user cluster refuses to have a copy, and does not have it.
func vanishedCopy(key ownership.Key) *calls.Note {
	return &calls.Note{Key: key, Reason: v1.ReasonFailed, Message: fmt.Sprintf(
		"the copy of the pull Secret %q in namespace %q is gone each time it is to be written", key.Name, key.Namespace)}
}

// refusedCopy tells why a copy could not be written, without the answer's own words, which may have
// its content. What is no answer about the copy is an error.
func refusedCopy(key ownership.Key, err error) (*calls.Note, error) {
	note := &calls.Note{Key: key, Reason: v1.ReasonFailed}
	switch {
	case err == nil:
		return nil, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		note.Reason = v1.ReasonNamespaceTerminating
		note.Message = fmt.Sprintf("namespace %q is being deleted: the copy of the pull Secret waits until it is gone", key.Namespace)
	case apierrors.IsNotFound(err):
		note.Reason = v1.ReasonNamespaceMissing
		note.Message = fmt.Sprintf("namespace %q does not exist: the pull Secret is copied there once it does", key.Namespace)
	case calls.IsAnswer(err):
		note.Message = fmt.Sprintf("the copy of the pull Secret %q in namespace %q is refused: %s", key.Name, key.Namespace, calls.Said(err))
	default:
		return nil, fmt.Errorf("copying the pull Secret %q to namespace %q: %w", key.Name, key.Namespace, err)
	}
	return note, nil
}

// copyFailed is a call about copies that failed, without words of an answer: they could quote the
// content.
func (p *Pass) copyFailed(about About, err error) *Stop {
	stop := p.remoteFailed(about, err)
	if stop.Message == err.Error() { // else it is about the connection
		said := *stop
		said.Message = "the copies of the pull Secret: " + calls.Unquoted(err)
		return &said
	}
	return stop
}

// dropCopies removes copies by their UID.
func (p *Pass) dropCopies(ctx context.Context, held *pullsecret.Held, copies []pullsecret.Copy) error {
	for _, one := range copies {
		held.Change()
		client := calls.ClientOf(p.target(), secrets, one.Namespace)
		if one.UID == "" && one.Nonce != "" {
			live, err := client.Read(ctx, one.Key)
			if err != nil {
				return err
			}
			if live == nil || live.Annotations[v1.AnnotationPullSecret] != one.Nonce {
				continue
			}
			one.UID = live.UID
		}
		if one.UID == "" {
			continue
		}
		if err := calls.DeleteObject(ctx, client, one.Entry); err != nil {
			return err
		}
	}
	return nil
}
