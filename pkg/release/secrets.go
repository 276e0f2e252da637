package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
)

// SecretType is the type of every Secret that holds a record or a part of one.
const SecretType = "addons.kubermatic.k8c.io/release.v1"

// Labels of records, besides v1.LabelInstallation. Only heads have LabelState.
const (
	LabelRevision = v1.Prefix + "revision"
	LabelState    = v1.Prefix + "state"
)

// Keys of the Secrets: a head has the record or, where it is in parts, only the index; a part has its piece.
const (
	keyIndex  = "index"
	keyRecord = "record"
)

// index is what a head says of its record.
type index struct {
	// Format is written outside of the record too, so that a newer one is known before it is decoded.
	Format int `json:"format"`
	// Digest is the SHA-256 of the packed record, in hex.
	Digest string `json:"digest"`
	// Parts are the numbers of the parts, in order; none when the record is in the head.
	Parts []int `json:"parts,omitempty"`
}

func namePrefix(owner apply.Owner) string { return "addon-" + owner.ID()[:10] }

func headName(owner apply.Owner, revision int) string {
	return fmt.Sprintf("%s-%d", namePrefix(owner), revision)
}

func headSecret(namespace string, record *Record, packed []byte, parts []int) *corev1.Secret {
	head := secret(namespace, record, headName(record.Owner(), record.Revision))
	head.ResourceVersion = record.stored.resourceVersion
	head.Labels[LabelState] = string(record.State)
	sum := sha256.Sum256(packed)
	data, _ := json.Marshal(index{Format: record.Format, Digest: hex.EncodeToString(sum[:]), Parts: parts})
	head.Data = map[string][]byte{keyIndex: data}
	if len(parts) == 0 {
		head.Data[keyRecord] = packed
	}
	return head
}

func partSecret(namespace string, record *Record, number int, piece []byte) *corev1.Secret {
	part := secret(namespace, record, partName(headName(record.Owner(), record.Revision), number))
	part.Data = map[string][]byte{keyRecord: piece}
	return part
}

func partName(head string, number int) string { return fmt.Sprintf("%s-%d", head, number) }

// secret is owned by the Cluster: records go with it, and outlive the installation's object. It does not block the
// Cluster's deletion.
func secret(namespace string, record *Record, name string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				v1.LabelInstallation: record.Owner().ID(),
				LabelRevision:        strconv.Itoa(record.Revision),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: kkpv1.GroupVersion.String(), Kind: "Cluster",
				Name: record.ClusterName, UID: record.ClusterUID, BlockOwnerDeletion: new(false),
			}},
		},
		Type: SecretType,
	}
}

// list gives the metadata of every Secret of an installation's records: heads and parts.
func (r *Records) list(ctx context.Context, namespace string, owner apply.Owner) ([]metav1.PartialObjectMetadata, error) {
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.reader.List(ctx, &found, client.InNamespace(namespace),
		client.MatchingLabels{v1.LabelInstallation: owner.ID()}, client.MatchingFields{"type": SecretType})
	if err != nil {
		return nil, fmt.Errorf("listing the release records of %q: %w", namespace+"/"+owner.Installation, err)
	}
	return found.Items, nil
}

// heads are the revisions that have a head, newest first.
func (r *Records) heads(ctx context.Context, namespace string, owner apply.Owner) ([]int, error) {
	items, err := r.list(ctx, namespace, owner)
	if err != nil {
		return nil, err
	}
	var revisions []int
	for _, item := range items {
		if revision := revisionOf(item); item.Name == headName(owner, revision) {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	slices.Reverse(revisions)
	return revisions, nil
}

// remove deletes the Secrets of revisions, heads first: a part without a head is never read.
func (r *Records) remove(ctx context.Context, namespace string, owner apply.Owner, goes func(revision int) bool) error {
	items, err := r.list(ctx, namespace, owner)
	if err != nil {
		return err
	}
	slices.SortFunc(items, func(a, b metav1.PartialObjectMetadata) int { return len(a.Name) - len(b.Name) })
	for i := range items {
		if !goes(revisionOf(items[i])) {
			continue
		}
		items[i].SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := client.IgnoreNotFound(r.client.Delete(ctx, &items[i])); err != nil {
			return fmt.Errorf("removing release record %q: %w", items[i].Name, err)
		}
	}
	return nil
}

// revisionOf is 0 where the label is not a number; no head has that name.
func revisionOf(item metav1.PartialObjectMetadata) int {
	revision, _ := strconv.Atoi(item.Labels[LabelRevision])
	return revision
}
