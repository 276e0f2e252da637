package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// SecretType is the type of every Secret that contains a record or a part of one.
const SecretType = "addons.kubermatic.k8c.io/release.v1"

// Labels of records, in addition to v1.LabelInstallation. Only heads have LabelState.
const (
	// LabelRevision is the number of a record's revision.
	LabelRevision = v1.Prefix + "revision"
	// LabelState is the state of a record's revision.
	LabelState = v1.Prefix + "state"
	// LabelName shows the installation's name to users.
	LabelName = v1.Prefix + "installation-name"
	// LabelVersion shows the add-on's version to users.
	LabelVersion = v1.Prefix + "version"
	// LabelOrigin is the UID in the owner's ID, if the Cluster now has another one.
	LabelOrigin = v1.Prefix + "origin"
)

const (
	// listed is the page size; a namespace with more than mostListed Secrets is not read.
	listed, mostListed = 500, 30_000
	triedHeads         = 16
)

// headSecret seals the head of a record. Its labels are for selectors and users, and not trusted.
func (r *Records) headSecret(namespace string, record *Record, packed []byte, parts []int) *corev1.Secret {
	inHead := packed
	if len(parts) > 0 {
		inHead = nil
	}
	head := secret(namespace, record, headName(record.Owner(), record.Revision), len(inHead))
	head.ResourceVersion = record.stored.resourceVersion
	head.Labels[LabelState] = string(record.State)
	about, _ := json.Marshal(indexOf(record, packed, parts)) // strings and numbers
	head.Data = map[string][]byte{keyIndex: about, keySeal: []byte(r.seal.of(namespace, head.Name, about))}
	if inHead != nil {
		head.Data[keyRecord] = inHead
	}
	return head
}

func partSecret(namespace string, record *Record, number int, piece []byte) *corev1.Secret {
	part := secret(namespace, record, partName(headName(record.Owner(), record.Revision), number), len(piece))
	part.Data = map[string][]byte{keyRecord: piece}
	return part
}

// secret is owned by the Cluster, without blocking its deletion; it outlives the installation. bytes is the size of
// its content.
func secret(namespace string, record *Record, name string, bytes int) *corev1.Secret {
	owner := record.clusterOwner()
	owner.BlockOwnerDeletion = new(false)
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				v1.LabelInstallation: record.Owner().ID(),
				LabelRevision:        strconv.Itoa(record.Revision),
			},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Type: SecretType,
	}
	for label, text := range map[string]string{LabelName: record.Installation, LabelVersion: record.Version} {
		if value := labelValue(text); value != "" {
			made.Labels[label] = value
		}
	}
	if bytes > 0 {
		made.Labels[LabelBytes] = strconv.Itoa((bytes + smallRecord - 1) / smallRecord * smallRecord)
	}
	if record.Origin != "" {
		made.Labels[LabelOrigin] = string(record.Origin)
	}
	return made
}

func labelValue(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, text)
	return strings.Trim(text[:min(len(text), validation.LabelValueMaxLength)], "._-")
}

func (r *Records) list(ctx context.Context, namespace string, options ...client.ListOption) ([]metav1.PartialObjectMetadata, error) {
	var items []metav1.PartialObjectMetadata
	err := r.each(ctx, namespace, func(item *metav1.PartialObjectMetadata) error {
		if len(items) == mostListed {
			return &TooManyError{Namespace: namespace, Max: mostListed}
		}
		item.ManagedFields, item.Annotations = nil, nil
		items = append(items, *item)
		return nil
	}, options...)
	return items, err
}

// each visits the metadata of all Secrets of records in a namespace; "" is every namespace.
func (r *Records) each(
	ctx context.Context, namespace string, visit func(*metav1.PartialObjectMetadata) error, options ...client.ListOption,
) error {
	for next, more := "", true; more; more = next != "" {
		var found metav1.PartialObjectMetadataList
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		page := append([]client.ListOption{
			client.InNamespace(namespace), client.MatchingFields{"type": SecretType}, client.Limit(listed), client.Continue(next),
		}, options...)
		if err := r.reader.List(ctx, &found, page...); err != nil {
			return fmt.Errorf("listing the release records of namespace %q: %w", namespace, err)
		}
		for i := range found.Items {
			if err := visit(&found.Items[i]); err != nil {
				return err
			}
		}
		next = found.Continue
	}
	return nil
}

// recordsOf selects Secrets that may be an installation's records; their names decide.
func recordsOf(owner ownership.Owner) client.ListOption {
	return client.MatchingLabels{v1.LabelInstallation: owner.ID()}
}

// Clusters are those of which an installation has sealed records; a DamagedError if all are unsealed.
func (r *Records) Clusters(ctx context.Context, namespace, installation string) ([]v1.ClusterIdentity, error) {
	if err := r.ready(ctx, namespace); err != nil {
		return nil, err
	}
	items, err := r.list(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var found []v1.ClusterIdentity
	for _, identity := range claimed(items, installation) {
		owner := ownership.Owner{ClusterUID: identity, Installation: installation}
		record, err := r.newest(ctx, namespace, owner, headsOf(items, owner))
		if err != nil {
			return nil, err
		}
		if record != nil {
			found = append(found, record.Cluster())
		}
	}
	return found, nil
}

// claimed are the UIDs of owners that may have records of an installation, each once.
func claimed(items []metav1.PartialObjectMetadata, installation string) []types.UID {
	var found []types.UID
	for i := range items {
		for _, reference := range items[i].OwnerReferences {
			uid := cmp.Or(types.UID(items[i].Labels[LabelOrigin]), reference.UID)
			owner := ownership.Owner{ClusterUID: uid, Installation: installation}
			if len(headsOf(items[i:i+1], owner)) > 0 && !slices.Contains(found, uid) {
				found = append(found, uid)
			}
		}
	}
	return found
}

// remove deletes heads first: a part without a head is never read.
func (r *Records) remove(ctx context.Context, namespace string, owner ownership.Owner, goes func(name named) bool) error {
	items, err := r.list(ctx, namespace, recordsOf(owner))
	if err != nil {
		return err
	}
	defer r.revisions.Changed(namespace, owner.LongID())
	for _, heads := range []bool{true, false} {
		for i := range items {
			name, ok := parseName(items[i].Name)
			if !ok || name.isHead() != heads || !name.isOf(owner) || !goes(name) {
				continue
			}
			if err := r.removeSecret(ctx, &items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Records) removeSecret(ctx context.Context, item *metav1.PartialObjectMetadata) error {
	item.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := client.IgnoreNotFound(r.client.Delete(ctx, item)); err != nil {
		return fmt.Errorf("removing release record %q: %w", item.Name, err)
	}
	return nil
}
