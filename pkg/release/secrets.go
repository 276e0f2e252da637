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

func headName(owner apply.Owner, revision int) string { return headNameOf(owner.ID(), revision) }

// headNameOf is the name of a head by its owner's ID.
func headNameOf(id string, revision int) string {
	return fmt.Sprintf("addon-%s-%d", id[:min(len(id), 10)], revision)
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

// list gives the metadata of the Secrets of records in a namespace: heads and parts.
func (r *Records) list(ctx context.Context, namespace string, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	options = append(options, client.InNamespace(namespace), client.MatchingFields{"type": SecretType})
	if err := r.reader.List(ctx, &found, options...); err != nil {
		return nil, fmt.Errorf("listing the release records of namespace %q: %w", namespace, err)
	}
	return found.Items, nil
}

// recordsOf selects an installation's records.
func recordsOf(owner apply.Owner) client.ListOption {
	return client.MatchingLabels{v1.LabelInstallation: owner.ID()}
}

// heads are the revisions that have a head, newest first.
func (r *Records) heads(ctx context.Context, namespace string, owner apply.Owner) ([]int, error) {
	items, err := r.list(ctx, namespace, recordsOf(owner))
	return headsOf(items)[owner.ID()], err
}

// headsOf are the revisions that have a head, newest first, by the ID of their owner.
func headsOf(items []metav1.PartialObjectMetadata) map[string][]int {
	found := map[string][]int{}
	for _, item := range items {
		id, revision := item.Labels[v1.LabelInstallation], revisionOf(item)
		if item.Name == headNameOf(id, revision) {
			found[id] = append(found[id], revision)
		}
	}
	for _, revisions := range found {
		slices.SortFunc(revisions, func(a, b int) int { return b - a })
	}
	return found
}

// Clusters that an installation has records of, though it may not say so itself.
func (r *Records) Clusters(ctx context.Context, namespace, installation string) ([]v1.ClusterIdentity, error) {
	items, err := r.list(ctx, namespace)
	var found []v1.ClusterIdentity
	for _, item := range items {
		for _, reference := range item.OwnerReferences {
			owner := apply.Owner{ClusterUID: reference.UID, Installation: installation}
			identity := v1.ClusterIdentity{Name: reference.Name, UID: reference.UID}
			if item.Labels[v1.LabelInstallation] == owner.ID() && !slices.Contains(found, identity) {
				found = append(found, identity)
			}
		}
	}
	return found, err
}

// remove deletes the Secrets of revisions, heads first: a part without a head is never read.
func (r *Records) remove(ctx context.Context, namespace string, owner apply.Owner, goes func(revision int) bool) error {
	items, err := r.list(ctx, namespace, recordsOf(owner))
	if err != nil {
		return err
	}
	defer r.revisions.touch(namespace, owner.ID())
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
