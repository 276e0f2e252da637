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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

var secrets = calls.Resource{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("secrets"), Namespaced: true}

const (
	// unusedVersion is a resource version that no object has: a write with it only creates.
	unusedVersion = "1"
	// maxSecretFields is far more than the size of such a Secret's fields in bytes: a user cluster invented larger
	// ones.
	maxSecretFields = 2 << 10
)

// errVanished says that a written Secret no longer exists.
var errVanished = errors.New("the Secret does not exist any more")

// extraSecret is a Secret of a user cluster that is in no inventory: a credential, or a copy of the pull Secret.
type extraSecret struct {
	ownership.Entry
	// what describes it in messages.
	what string
	// send writes it over the object with that UID or, without a UID, as a new one.
	send func(uid types.UID) error
	// isOurs says whether an object with another UID was written before a process ended.
	isOurs func(live *metav1.PartialObjectMetadata) bool
}

// put writes the Secret: over the object with the recorded UID, or as a new one. Another object of the same name stays.
// The error is errVanished if the user cluster refuses the write and has no such Secret.
func (b extraSecret) put(ctx context.Context, client calls.Client) (*calls.Note, error) {
	err := b.send(b.UID)
	if !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) { // another UID causes either
		return b.refused(err)
	}
	live, failed := client.Read(ctx, b.Key)
	switch {
	case failed != nil:
		return nil, failed
	case live == nil:
		return nil, errVanished
	case live.UID == "":
		return nil, withoutUID(b.Key)
	case live.UID == b.UID:
		return b.refused(err)
	case !b.isOurs(live):
		return &calls.Note{Key: b.Key, Reason: v1.ReasonObjectExists, Cause: v1.ReasonObjectOfOthers, Message: fmt.Sprintf(
			"Secret %q in namespace %q exists already and this installation did not create it: %s needs its name. Delete or rename that Secret",
			b.Name, b.Namespace, b.what)}, nil
	}
	return b.refused(b.send(live.UID))
}

// refused says why it could not be written, without the text of the answer, which may contain its content. An error
// that is no answer about the Secret is returned.
func (b extraSecret) refused(err error) (*calls.Note, error) {
	note := &calls.Note{Key: b.Key, Reason: v1.ReasonFailed, Cause: calls.CauseOf(err)}
	switch {
	case err == nil:
		return nil, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		note.Reason, note.Cause = v1.ReasonNamespaceTerminating, v1.ReasonBeingDeleted
		note.Message = fmt.Sprintf("namespace %q is being deleted: %s, Secret %q, waits for the deletion", b.Namespace, b.what, b.Name)
	case apierrors.IsNotFound(err):
		note.Reason = v1.ReasonNamespaceMissing
		note.Message = fmt.Sprintf("namespace %q does not exist: create it, and Trellis then writes %s, Secret %q", b.Namespace, b.what, b.Name)
	case calls.IsAnswer(err):
		note.Message = fmt.Sprintf("%s, Secret %q in namespace %q, is refused: %s", b.what, b.Name, b.Namespace, calls.Said(err))
	default:
		return nil, fmt.Errorf("writing %s, Secret %q in namespace %q: %w", b.what, b.Name, b.Namespace, err)
	}
	return note, nil
}

// sendSecret writes a Secret that is in no inventory over the object with the UID of its entry or, without a UID, as a
// new one. It returns the entry as the API server accepted it.
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
	if len(fields) > maxSecretFields {
		fields = nil
	}
	entry.UID, entry.Fields = live.UID, fields
	return entry, nil
}

func withoutUID(key ownership.Key) error {
	return calls.Misbehaves("Secret %q in namespace %q has no UID", key.Name, key.Namespace)
}

// secretsFailed is the outcome of a failed call about such Secrets, without the text of an answer, which could quote
// the content.
func (p *Run) secretsFailed(condition, which string, err error) *loop.Outcome {
	stop := p.remoteFailed(condition, err)
	if stop.Message == err.Error() { // otherwise it is about the connection
		said := *stop
		said.Message = which + ": " + calls.Unquoted(err)
		return &said
	}
	return stop
}
