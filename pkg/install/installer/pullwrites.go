package installer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
)

// savedAtOnce is the number of written copies after which the record is saved, so that a process that ends leaves few
// behind whose UID is not on record.
const savedAtOnce = 20

// copiesOfPull describes them in messages.
const copiesOfPull = "the copies of the pull Secret"

// putCopies writes the copies at these positions, and saves the results. Notes are about those that could not be
// written. Copies that vanished are recreated once, after their new nonces are on record.
func (p *Run) putCopies(
	ctx context.Context, held *pullsecret.Held, at []int, original pullsecret.Original,
) (notes []calls.Note, stop *loop.Outcome) {
	notes, vanished, stop := p.tryCopies(ctx, held, at, original)
	if stop != nil || len(vanished) == 0 {
		return notes, stop
	}
	for _, position := range vanished {
		one := &held.All[position]
		one.UID, one.Nonce = "", pullsecret.NewNonce() // the previous nonce was visible
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

// tryCopies tries each copy once, and saves the record. Vanished are the positions of those that no longer exist.
func (p *Run) tryCopies(
	ctx context.Context, held *pullsecret.Held, at []int, original pullsecret.Original,
) (notes []calls.Note, vanished []int, stop *loop.Outcome) {
	var failed error
	for tried, position := range at {
		one := &held.All[position]
		note, err := p.putCopy(ctx, held, one, original)
		if errors.Is(err, errVanished) {
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
		return notes, vanished, p.secretsFailed(v1.ConditionApplied, copiesOfPull, failed)
	}
	return notes, vanished, nil
}

// putCopy writes one copy: over the object with the recorded UID, or as a new one. Another object of the same name
// stays.
func (p *Run) putCopy(
	ctx context.Context, held *pullsecret.Held, one *pullsecret.Copy, original pullsecret.Original,
) (*calls.Note, error) {
	client := calls.ClientOf(p.target(), secrets, one.Namespace)
	before := one.UID
	return extraSecret{
		Entry: one.Entry, what: "the copy of the platform's pull Secret",
		send: func(uid types.UID) error {
			one.UID = uid
			return p.sendCopy(ctx, client, held, one, original)
		},
		isOurs: func(live *metav1.PartialObjectMetadata) bool {
			return before == "" && live.Annotations[v1.AnnotationPullSecret] == one.Nonce
		},
	}.put(ctx, client)
}

// sendCopy records the copy if it is accepted.
func (p *Run) sendCopy(
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

// vanishedCopy reports that the user cluster refuses a copy, and does not have it.
func vanishedCopy(key ownership.Key) *calls.Note {
	return &calls.Note{Key: key, Reason: v1.ReasonFailed, Message: fmt.Sprintf(
		"the copy of the pull Secret %q in namespace %q disappears before each write", key.Name, key.Namespace)}
}

// dropCopies removes copies by their UID.
func (p *Run) dropCopies(ctx context.Context, held *pullsecret.Held, copies []pullsecret.Copy) error {
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
