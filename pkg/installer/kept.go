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
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// Kept is a Secret of the target namespace that an installation has besides its objects: what is in
// it changes by itself, and is on no record.
type Kept struct {
	Name string
	// Digest differs where the content does.
	Digest string
	// Content is read where it is to be written, with the digest of what was read, and not kept.
	Content func(ctx context.Context) (content map[string][]byte, digest string, err error)
}

// credentials is what kept Secrets are, in words of messages.
const credentials = "the Secrets with credentials for the hub"

// contentError is that of a read on the seed: it says nothing of the user cluster.
type contentError struct{ error }

// KeepSecrets has the kept Secrets in the user cluster as they are to be. It calls the user cluster
// where one changed, where a comparison that this pass made found another one than was written, and
// once in the life of the process.
func (p *Pass) KeepSecrets(ctx context.Context) *Stop {
	if len(p.Keeping) == 0 || p.Record().Unreadable() != nil {
		return nil
	}
	drifted, err := p.driftedKept(ctx)
	if err != nil {
		return p.secretsFailed(AboutHealth, credentials, err)
	}
	before := p.Record().Kept
	notes, stop := p.keepSecrets(ctx, drifted)
	if kept := p.Record().Kept; !slices.EqualFunc(before, kept, isSameKept) {
		err := p.amend(ctx, func(record *revision.Record) { record.Kept = kept })
		isNeeded := !p.Asked.IsRemoved() || !errors.Is(err, errGone) // what is known of one that goes is removed all the same
		if err != nil && isNeeded {
			return p.doubted(err)
		}
	}
	if stop != nil {
		return stop
	}
	return p.uncopied(notes)
}

// isSameKept says whether two entries say the same: those with fields are Secrets that were written.
func isSameKept(a, b ownership.Entry) bool {
	return a.Key == b.Key && a.UID == b.UID && string(a.Fields) == string(b.Fields)
}

// driftedKept joins a comparison that this pass made: the same list has them.
func (p *Pass) driftedKept(ctx context.Context) ([]ownership.Key, error) {
	if p.Compared == nil || len(p.Record().Kept) == 0 {
		return nil, nil
	}
	drift, err := p.view().survey.Load().Drifted(ctx, p.target(), p.Owner, p.Record().Kept)
	return keysOf(drift), err
}

// keepSecrets writes those that differ, and remembers what it wrote. Notes are about those that could
// not be written.
func (p *Pass) keepSecrets(ctx context.Context, drifted []ownership.Key) (notes []calls.Note, stop *Stop) {
	for _, one := range p.Keeping {
		entry := p.keptEntry(one.Name)
		isDrifted := slices.Contains(drifted, entry.Key)
		if !isDrifted && entry.UID != "" && p.State.kept[entry.Key] == one.Digest {
			continue
		}
		note, err := p.keepSecret(ctx, one, entry, isDrifted)
		if failed, isOfSeed := errors.AsType[contentError](err); isOfSeed {
			return notes, Failed(failed.error)
		}
		if err != nil {
			return notes, p.secretsFailed(AboutApply, credentials, err)
		}
		if note != nil {
			notes = append(notes, *note)
		}
	}
	return notes, nil
}

// keptEntry is what is on record of a kept Secret; one without UID if nothing is.
func (p *Pass) keptEntry(name string) ownership.Entry {
	key := ownership.Key{Kind: "Secret", Namespace: p.Record().TargetNamespace, Name: name}
	for _, entry := range p.Record().Kept {
		if entry.Key == key {
			return entry
		}
	}
	return ownership.Entry{Key: key, Version: "v1"}
}

// keepSecret writes one Secret: over the object with the UID on record, or as a new one. What else
// has its name stays.
func (p *Pass) keepSecret(ctx context.Context, kept Kept, entry ownership.Entry, isDrifted bool) (*calls.Note, error) {
	client := calls.ClientOf(p.target(), secrets, entry.Namespace)
	if isThere, err := p.recognise(ctx, client, kept, entry); err != nil || isThere && !isDrifted {
		return nil, err
	}
	content, digest, err := kept.Content(ctx)
	switch {
	case err != nil:
		return nil, contentError{err}
	case content == nil: // it was taken away a moment ago, which the next pass finds
		return nil, nil
	}
	object := p.keptObject(entry, content, digest)
	written := beside{
		Entry: entry, what: "a credential for the hub",
		send: func(uid types.UID) error {
			over := entry
			over.UID = uid
			return p.sendKept(ctx, client, object, over)
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
		err = calls.Misbehaves("Secret %q in namespace %q exists when it is written, and not when it is read", entry.Name, entry.Namespace)
	}
	return note, err
}

// recognise reads the mark of a kept Secret that is on record, and that this process has not seen yet; it
// says whether the Secret has the content that it is to have.
func (p *Pass) recognise(ctx context.Context, client calls.Client, kept Kept, entry ownership.Entry) (bool, error) {
	if _, isSeen := p.State.kept[entry.Key]; isSeen || entry.UID == "" {
		return false, nil
	}
	live, err := client.Read(ctx, entry.Key)
	if err != nil || live == nil || live.UID != entry.UID || live.Annotations[v1.AnnotationDigest] != kept.Digest {
		return false, err
	}
	p.remember(entry, kept.Digest)
	return true, nil
}

// keptObject is a kept Secret as it is to be.
func (p *Pass) keptObject(entry ownership.Entry, content map[string][]byte, digest string) *unstructured.Unstructured {
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

// sendKept takes the Secret over into the record in memory if it is accepted.
func (p *Pass) sendKept(ctx context.Context, client calls.Client, object *unstructured.Unstructured, entry ownership.Entry) error {
	written, err := sendSecret(ctx, client, object, p.Owner, entry)
	if err == nil {
		p.remember(written, object.GetAnnotations()[v1.AnnotationDigest])
	}
	return err
}

// remember notes a kept Secret as the user cluster has it.
func (p *Pass) remember(entry ownership.Entry, digest string) {
	if p.State.kept == nil {
		p.State.kept = map[ownership.Key]string{}
	}
	p.State.kept[entry.Key] = digest
	kept := slices.DeleteFunc(slices.Clone(p.Record().Kept), func(one ownership.Entry) bool { return one.Key == entry.Key })
	noted := *p.Record()
	noted.Kept = append(kept, entry)
	slices.SortFunc(noted.Kept, func(a, b ownership.Entry) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	p.State.Record = &noted
}

// FindKept takes kept Secrets of these names over into the record in memory that no record knows, since a
// process ended after they were written: their mark counts. Else they would keep a namespace that goes.
func (p *Pass) FindKept(ctx context.Context, names ...string) *Stop {
	for _, name := range names {
		entry := p.keptEntry(name)
		if entry.UID != "" {
			continue
		}
		live, err := calls.ClientOf(p.target(), secrets, entry.Namespace).Read(ctx, entry.Key)
		if err != nil {
			return p.secretsFailed(AboutApply, credentials, err)
		}
		if live != nil && live.UID != "" && live.Labels[v1.LabelInstallation] == p.Owner.ID() {
			entry.UID = live.UID
			p.remember(entry, "")
		}
	}
	return nil
}

// DropKept removes kept Secrets of these names by their UID.
func (p *Pass) DropKept(ctx context.Context, names ...string) *Stop {
	for _, name := range names {
		entry := p.keptEntry(name)
		if entry.UID == "" {
			continue
		}
		if err := calls.DeleteObject(ctx, calls.ClientOf(p.target(), secrets, entry.Namespace), entry); err != nil {
			return p.secretsFailed(AboutApply, credentials, err)
		}
		delete(p.State.kept, entry.Key)
	}
	return nil
}

// keptUIDs are those that don't keep a namespace which is removed.
func (p *Pass) keptUIDs() (uids []types.UID) {
	for _, entry := range p.Record().Kept {
		if entry.UID != "" {
			uids = append(uids, entry.UID)
		}
	}
	return uids
}
