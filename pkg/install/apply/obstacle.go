package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Obstacle is an object that users have to change in the user cluster before a rollout can complete.
type Obstacle struct {
	Key ownership.Key
}

var seenReasons = []string{
	kubermaticv1.ReasonNamespaceMissing, kubermaticv1.ReasonObjectExists, kubermaticv1.ReasonConflict, kubermaticv1.ReasonImmutableField,
}

// ObstacleOf is the first obstacle among notes that one call can read; nil if there is none.
func ObstacleOf(notes []calls.Note) *Obstacle {
	at := slices.IndexFunc(notes, func(note calls.Note) bool { return slices.Contains(seenReasons, note.Reason) })
	switch {
	case at < 0:
		return nil
	case notes[at].Reason == kubermaticv1.ReasonNamespaceMissing:
		return &Obstacle{Key: ownership.Key{Kind: ownership.NamespaceGK.Kind, Name: notes[at].Key.Namespace}}
	}
	return &Obstacle{notes[at].Key}
}

// State reads the obstacle with one call: "" once it is removed, and a different text once it changed.
func (o Obstacle) State(ctx context.Context, target calls.Target) (state string, err error) {
	where, err := target.Mapper.RESTMapping(o.Key.GroupKind())
	if err != nil {
		return "", fmt.Errorf("looking up the kind of %q: %w", o.Key, err)
	}
	objects := calls.ClientOf(target, calls.Resource{GroupVersionResource: where.Resource, Namespaced: o.Key.Namespace != ""}, o.Key.Namespace)
	live, err := objects.Read(ctx, o.Key)
	switch isNamespace := o.Key.GroupKind() == ownership.NamespaceGK; {
	case err != nil:
		return "", err
	case isNamespace && (live == nil || live.DeletionTimestamp != nil):
		return "missing", nil
	case isNamespace || live == nil:
		return "", nil
	}
	return stateOf(live), nil
}

// stateOf covers ownership of an object and of its fields, and nothing that changes without users.
func stateOf(live *metav1.PartialObjectMetadata) string {
	sum := sha256.New()
	add(sum, string(live.UID), live.Labels[kubermaticv1.LabelInstallation], strconv.FormatBool(live.DeletionTimestamp != nil))
	for i := range live.ManagedFields {
		managed := &live.ManagedFields[i]
		if managed.Subresource == "status" || managed.FieldsV1 == nil {
			continue
		}
		add(sum, managed.Manager, string(managed.Operation), managed.Subresource, string(managed.FieldsV1.GetRawBytes()))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func add(sum hash.Hash, words ...string) {
	for _, word := range words {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(word), word)
	}
}
