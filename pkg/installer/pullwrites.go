package installer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// pulled is what is copied.
type pulled struct {
	content []byte
	digest  string
}

// putCopies writes copies at these positions. Notes are about those that could not be.
func (p *Pass) putCopies(ctx context.Context, held *pullsecret.Held, at []int, what pulled) (notes []calls.Note, err error) {
	for _, position := range at {
		one := &held.Copies.Copies[position]
		note, err := p.putCopy(ctx, held, one, what)
		if err != nil {
			return notes, err
		}
		if note != nil {
			notes = append(notes, *note)
		}
	}
	return notes, nil
}

// putCopy writes one copy: over the object with the UID on record, or as a new one. What else has
// its name stays.
func (p *Pass) putCopy(ctx context.Context, held *pullsecret.Held, one *pullsecret.Copy, what pulled) (*calls.Note, error) {
	client := calls.ClientOf(p.target(), secrets, one.Namespace)
	err := p.sendCopy(ctx, client, held, one, what)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // another UID is either
		live, failed := client.Read(ctx, one.Key)
		if failed != nil {
			return nil, failed
		}
		switch {
		case live == nil:
			one.UID, one.Nonce = "", pullsecret.NewNonce() // the one before was seen
			held.Change()
			if err := held.Save(ctx); err != nil {
				return nil, err
			}
		case one.UID == "" && live.Annotations[v1.AnnotationPullSecret] == one.Nonce:
			one.UID = live.UID // written before a process ended
		case one.UID == live.UID:
			return refusedCopy(one.Key, err)
		default:
			return takenCopy(one.Key), nil
		}
		err = p.sendCopy(ctx, client, held, one, what)
	}
	return refusedCopy(one.Key, err)
}

// sendCopy takes the copy over into the record if it is accepted.
func (p *Pass) sendCopy(
	ctx context.Context, client calls.Client, held *pullsecret.Held, one *pullsecret.Copy, what pulled,
) error {
	object, owner := held.Object(*one, what.content), held.OwnerOf()
	object.SetUID(one.UID)
	if one.UID == "" {
		object.SetResourceVersion(unusedVersion)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding %q: %w", one.Key, err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: owner.FieldManager(), Force: &force}
	live, err := client.Patch(ctx, one.Name, types.ApplyPatchType, body, options)
	if err != nil {
		return err
	}
	fields, _ := fieldsets.Believable(live.ManagedFields, owner.FieldManager(), len(body))
	one.UID, one.Fields, one.Content = live.UID, fields, what.digest
	held.Change()
	return nil
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
