package installer

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// ManagedSecret is a Secret of the target namespace that an installation has in addition to its objects. Its content changes
// independently, and is in no record.
type ManagedSecret struct {
	Name string
	// Digest changes with the content.
	Digest string
	// Content is read when it is written, with its digest, and not kept in memory.
	Content func(ctx context.Context) (content map[string][]byte, digest string, err error)
}

// credentials describes kept Secrets in messages.
const credentials = "the Secrets with credentials for the hub"

// contentError is an error of a read on the seed: it is not about the user cluster.
type contentError struct{ error }

// ApplySecrets keeps the managed Secrets in the user cluster up to date. It calls the user cluster if one changed, if a
// comparison in this reconciliation found another one than was written, and once per process.
func (p *Run) ApplySecrets(ctx context.Context) *loop.Outcome {
	if len(p.Secrets) == 0 || p.Record().Unreadable() != nil {
		return nil
	}
	drifted, err := p.driftedSecrets(ctx)
	if err != nil {
		return p.secretsFailed(v1.ConditionHealthy, credentials, err)
	}
	before := p.Record().ManagedSecrets
	notes, stop := p.applySecrets(ctx, drifted)
	if managed := p.Record().ManagedSecrets; !slices.EqualFunc(before, managed, isSameSecret) {
		err := p.amend(ctx, func(record *revision.Record) { record.ManagedSecrets = managed })
		isNeeded := !p.Asked.IsRemoved() || !errors.Is(err, errGone) // known Secrets of a removal are removed anyway
		if err != nil && isNeeded {
			return p.recordUnknown(err)
		}
	}
	if stop != nil {
		return stop
	}
	return p.uncopied(notes)
}

// isSameSecret says whether two entries are equal: those with fields are written Secrets.
func isSameSecret(a, b ownership.Entry) bool {
	return a.Key == b.Key && a.UID == b.UID && string(a.Fields) == string(b.Fields)
}

// driftedSecrets uses the list of a comparison that this reconciliation made.
func (p *Run) driftedSecrets(ctx context.Context) ([]ownership.Key, error) {
	if p.Compared == nil || len(p.Record().ManagedSecrets) == 0 {
		return nil, nil
	}
	drift, err := p.view().survey.Load().Drifted(ctx, p.target(), p.Owner, p.Record().ManagedSecrets)
	return keysOf(drift), err
}

// applySecrets writes those that differ, and remembers them. Notes are about those that could not be written.
func (p *Run) applySecrets(ctx context.Context, drifted []ownership.Key) (notes []calls.Note, stop *loop.Outcome) {
	for _, one := range p.Secrets {
		entry := p.secretEntry(one.Name)
		isDrifted := slices.Contains(drifted, entry.Key)
		if !isDrifted && entry.UID != "" && p.State.secretDigests[entry.Key] == one.Digest {
			continue
		}
		note, err := p.applySecret(ctx, one, entry, isDrifted)
		if failed, isOfSeed := errors.AsType[contentError](err); isOfSeed {
			return notes, Failed(failed.error)
		}
		if err != nil {
			return notes, p.secretsFailed(v1.ConditionApplied, credentials, err)
		}
		if note != nil {
			notes = append(notes, *note)
		}
	}
	return notes, nil
}

// secretEntry is the record's entry of a kept Secret; without UID if there is none.
func (p *Run) secretEntry(name string) ownership.Entry {
	key := ownership.Key{Kind: "Secret", Namespace: p.Record().TargetNamespace, Name: name}
	for _, entry := range p.Record().ManagedSecrets {
		if entry.Key == key {
			return entry
		}
	}
	return ownership.Entry{Key: key, Version: "v1"}
}

// applySecret writes one Secret: over the object with the recorded UID, or as a new one. Another object of the same name
// stays.
func (p *Run) applySecret(ctx context.Context, managed ManagedSecret, entry ownership.Entry, isDrifted bool) (*calls.Note, error) {
	client := calls.ClientOf(p.target(), secrets, entry.Namespace)
	if isThere, err := p.recognise(ctx, client, managed, entry); err != nil || isThere && !isDrifted {
		return nil, err
	}
	content, digest, err := managed.Content(ctx)
	switch {
	case err != nil:
		return nil, contentError{err}
	case content == nil: // it was just revoked, which the next reconciliation finds
		return nil, nil
	}
	object := p.secretObject(entry, content, digest)
	written := extraSecret{
		Entry: entry, what: "a credential for the hub",
		send: func(uid types.UID) error {
			over := entry
			over.UID = uid
			return p.sendSecret(ctx, client, object, over)
		},
		isOurs: func(live *metav1.PartialObjectMetadata) bool {
			return live.Labels[v1.LabelInstallation] == p.Owner.ID()
		},
	}
	note, err := written.put(ctx, client)
	if errors.Is(err, errVanished) {
		written.UID = ""
		note, err = written.put(ctx, client)
	}
	if errors.Is(err, errVanished) {
		err = calls.Misbehaves("the API server refuses to create Secret %q in namespace %q because it exists, but a read does not find it",
			entry.Name, entry.Namespace)
	}
	return note, err
}

// recognise reads the mark of a recorded kept Secret that this process has not seen yet. It says whether the Secret has
// the wanted content.
func (p *Run) recognise(ctx context.Context, client calls.Client, managed ManagedSecret, entry ownership.Entry) (bool, error) {
	if _, isSeen := p.State.secretDigests[entry.Key]; isSeen || entry.UID == "" {
		return false, nil
	}
	live, err := client.Read(ctx, entry.Key)
	if err != nil || live == nil || live.UID != entry.UID || live.Annotations[v1.AnnotationDigest] != managed.Digest {
		return false, err
	}
	p.remember(entry, managed.Digest)
	return true, nil
}

// secretObject is the wanted kept Secret.
func (p *Run) secretObject(entry ownership.Entry, content map[string][]byte, digest string) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range content {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeOpaque),
		"metadata": map[string]any{
			"namespace": entry.Namespace, "name": entry.Name,
			"labels":      map[string]any{v1.LabelInstallation: p.Owner.ID()},
			"annotations": map[string]any{v1.AnnotationDigest: digest},
		},
		"data": data,
	}}
}

// sendSecret adds the Secret to the record in memory if it is accepted.
func (p *Run) sendSecret(ctx context.Context, client calls.Client, object *unstructured.Unstructured, entry ownership.Entry) error {
	written, err := sendSecret(ctx, client, object, p.Owner, entry)
	if err == nil {
		p.remember(written, object.GetAnnotations()[v1.AnnotationDigest])
	}
	return err
}

// remember stores the state of a kept Secret in the user cluster.
func (p *Run) remember(entry ownership.Entry, digest string) {
	if p.State.secretDigests == nil {
		p.State.secretDigests = map[ownership.Key]string{}
	}
	p.State.secretDigests[entry.Key] = digest
	managed := slices.DeleteFunc(slices.Clone(p.Record().ManagedSecrets), func(one ownership.Entry) bool { return one.Key == entry.Key })
	noted := *p.Record()
	noted.ManagedSecrets = append(managed, entry)
	slices.SortFunc(noted.ManagedSecrets, func(a, b ownership.Entry) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	p.State.Record = &noted
}

// FindSecrets adds managed Secrets of these names to the record in memory if they are not on record because a process
// ended after it wrote them: their mark identifies them. Otherwise they would keep a namespace that is being removed.
func (p *Run) FindSecrets(ctx context.Context, names ...string) *loop.Outcome {
	for _, name := range names {
		entry := p.secretEntry(name)
		if entry.UID != "" {
			continue
		}
		live, err := calls.ClientOf(p.target(), secrets, entry.Namespace).Read(ctx, entry.Key)
		if err != nil {
			return p.secretsFailed(v1.ConditionApplied, credentials, err)
		}
		if live != nil && live.UID != "" && live.Labels[v1.LabelInstallation] == p.Owner.ID() {
			entry.UID = live.UID
			p.remember(entry, "")
		}
	}
	return nil
}

// DropSecrets removes managed Secrets of these names by their UID.
func (p *Run) DropSecrets(ctx context.Context, names ...string) *loop.Outcome {
	for _, name := range names {
		entry := p.secretEntry(name)
		if entry.UID == "" {
			continue
		}
		if err := calls.DeleteObject(ctx, calls.ClientOf(p.target(), secrets, entry.Namespace), entry); err != nil {
			return p.secretsFailed(v1.ConditionApplied, credentials, err)
		}
		delete(p.State.secretDigests, entry.Key)
	}
	return nil
}

// secretUIDs are the UIDs of Secrets that do not keep a namespace from being removed.
func (p *Run) secretUIDs() (uids []types.UID) {
	for _, entry := range p.Record().ManagedSecrets {
		if entry.UID != "" {
			uids = append(uids, entry.UID)
		}
	}
	return uids
}
