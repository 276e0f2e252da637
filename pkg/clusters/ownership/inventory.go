package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Key names an object, in any version of its kind.
type Key struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is "Kind.group namespace/name".
func (k Key) String() string {
	var text strings.Builder
	text.WriteString(k.Kind)
	if k.Group != "" {
		text.WriteString("." + k.Group)
	}
	text.WriteString(" ")
	if k.Namespace != "" {
		text.WriteString(k.Namespace + "/")
	}
	text.WriteString(k.Name)
	return text.String()
}

// Entry is one object that an installation owns.
type Entry struct {
	Key     `json:",inline"`
	Version string    `json:"version"`
	UID     types.UID `json:"uid,omitempty"`
	// Content is the SHA-256 of the rendered object, in hex; "" if an intent may have changed it.
	Content string `json:"content,omitempty"`
	// Replicas are the object's replicas as rendered; nil if it has none.
	Replicas *int64 `json:"replicas,omitempty"`
	// Applied: Content and Replicas are of the last write.
	Applied bool `json:"applied,omitempty"`
	// Fields is our manager's field set as the API server recorded it (fieldsV1).
	Fields json.RawMessage `json:"fields,omitempty"`
	// WrittenAt is the time of Fields: when our manager changed the object last, by the clock of the
	// user cluster, in seconds since 1970. 0 if unknown.
	WrittenAt int64 `json:"writtenAt,omitempty"`
	// Orphan objects stay after the installation (on-delete: orphan).
	Orphan bool `json:"orphan,omitempty"`
	// Finished Jobs and Pods succeeded: their absence is no drift.
	Finished bool `json:"finished,omitempty"`
	// TTL is the ttlSecondsAfterFinished of a Job as rendered. The Job is written without it, and gets it once its end is
	// recorded. It is nil after that, and if the Job has none.
	TTL *int64 `json:"ttl,omitempty"`
	// Created says that we created it: no other Namespace or CRD is ever removed.
	Created bool `json:"created,omitempty"`
	// Owner is the installation that owns a shared object; "" if it is ours.
	Owner string `json:"owner,omitempty"`
}

// Inventory has all objects that an installation owns in a cluster, in the order of applying.
type Inventory []Entry

// IsFoundation says whether others use an object at once: a label does not make it ours.
func (k Key) IsFoundation() bool {
	return k.GroupKind() == NamespaceGK || k.GroupKind() == DefinitionGK
}

// Finish returns a copy with these entries marked as finished.
func (i Inventory) Finish(keys []Key) Inventory {
	finished, ended := slices.Clone(i), sets.New(keys...)
	for at := range finished {
		finished[at].Finished = finished[at].Finished || ended.Has(finished[at].Key)
	}
	return finished
}

// Ended are the finished Jobs that did not get their TTL yet.
func (i Inventory) Ended() (jobs Inventory) {
	for _, entry := range i {
		if entry.Finished && entry.TTL != nil {
			jobs = append(jobs, entry)
		}
	}
	return jobs
}

// WithoutTTL returns a copy in which these Jobs no longer need a TTL.
func (i Inventory) WithoutTTL(jobs []Key) Inventory {
	done, given := slices.Clone(i), sets.New(jobs...)
	for at := range done {
		if given.Has(done[at].Key) {
			done[at].TTL = nil
		}
	}
	return done
}

// Kinds that contain or define other objects.
var (
	NamespaceGK  = schema.GroupKind{Kind: "Namespace"}
	DefinitionGK = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// KeyOf names an object.
func KeyOf(object *unstructured.Unstructured) Key {
	gvk := object.GroupVersionKind()
	return Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// GroupKind returns the object's group and kind.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// MaxObjects is how many objects one installation may have.
const MaxObjects = 2000

// ContentDigest is the SHA-256 of one object as JSON, which sorts the keys of maps.
func ContentDigest(object *unstructured.Unstructured) string {
	text, err := json.Marshal(object.Object)
	if err != nil { // impossible: the object was JSON or YAML before
		panic(fmt.Sprintf("object %q is not JSON: %v", KeyOf(object), err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Only returns the entries with these keys.
func (i Inventory) Only(keys []Key) (some Inventory) {
	wanted := sets.New(keys...)
	for _, entry := range i {
		if wanted.Has(entry.Key) {
			some = append(some, entry)
		}
	}
	return some
}

// IsAppliedAs says whether the last write had the wanted content.
func (e Entry) IsAppliedAs(wanted Entry) bool {
	return e.Applied && e.UID != "" && e.Content == wanted.Content
}

// Unconfirmed returns a copy for a cluster that may have other content: a rollout writes every object.
func (i Inventory) Unconfirmed() Inventory {
	unconfirmed := slices.Clone(i)
	for at := range unconfirmed {
		unconfirmed[at].Applied = false
	}
	return unconfirmed
}

// ByKey returns the entries by their keys.
func (i Inventory) ByKey() map[Key]Entry {
	entries := make(map[Key]Entry, len(i))
	for _, entry := range i {
		entries[entry.Key] = entry
	}
	return entries
}

// Without returns the entries that another inventory lacks.
func (i Inventory) Without(others Inventory) Inventory {
	theirs := others.ByKey()
	return slices.DeleteFunc(slices.Clone(i), func(entry Entry) bool { _, found := theirs[entry.Key]; return found })
}

// DefinedGroups are the groups of CustomResourceDefinitions, each once.
func (i Inventory) DefinedGroups() (groups []string) {
	for _, entry := range i {
		if group := GroupOf(entry.Key); group != "" && entry.GroupKind() == DefinitionGK && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// GroupOf reads the group from the definition's name, which is the plural, a dot and the group.
func GroupOf(definition Key) string {
	_, group, _ := strings.Cut(definition.Name, ".")
	return group
}
