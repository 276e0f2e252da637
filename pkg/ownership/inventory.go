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

// Key names an object, whatever version of its kind is served.
type Key struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is "Kind.group namespace/name", as people and messages write it.
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
	Key `json:",inline"`
	// Version of the kind it was applied in.
	Version string `json:"version"`
	// UID of the live object.
	UID types.UID `json:"uid,omitempty"`
	// Content is the SHA-256 of the object as rendered, in hex; "" once an intent is on record that may have changed it.
	Content string `json:"content,omitempty"`
	// Replicas are those of the object as rendered; nil where it has none.
	Replicas *int64 `json:"replicas,omitempty"`
	// Applied says that Content and Replicas are those of the last write. Entries of earlier releases don't say.
	Applied bool `json:"applied,omitempty"`
	// Fields is our manager's field set as the API server recorded it (fieldsV1).
	Fields json.RawMessage `json:"fields,omitempty"`
	// Orphan objects stay when the installation goes (on-delete: orphan).
	Orphan bool `json:"orphan,omitempty"`
	// Finished Jobs and Pods ran to their end: it is no drift when they vanish.
	Finished bool `json:"finished,omitempty"`
	// Created says of a Namespace or CRD that we made it: only those are ever removed.
	Created bool `json:"created,omitempty"`
	// Owner is the installation that has the object, where it is only shared; "" says that it is ours.
	Owner string `json:"owner,omitempty"`
}

// Inventory is everything that an installation owns in a cluster, in applying order.
type Inventory []Entry

// IsFoundation says whether an object is used by others as soon as it exists: more than a label has to say that it is ours.
func (k Key) IsFoundation() bool {
	return k.GroupKind() == NamespaceGK || k.GroupKind() == DefinitionGK
}

// Finish marks entries as finished: it is no drift when they vanish. It changes a copy.
func (i Inventory) Finish(keys []Key) Inventory {
	finished, ended := slices.Clone(i), sets.New(keys...)
	for at := range finished {
		finished[at].Finished = finished[at].Finished || ended.Has(finished[at].Key)
	}
	return finished
}

// Kinds of what other objects stand in or are made of.
var (
	NamespaceGK  = schema.GroupKind{Kind: "Namespace"}
	DefinitionGK = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// KeyOf names an object.
func KeyOf(object *unstructured.Unstructured) Key {
	gvk := object.GroupVersionKind()
	return Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// GroupKind of the object.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// MaxObjects is how many objects one installation may have.
const MaxObjects = 2000

// ContentDigest is the SHA-256 of one object. JSON of maps has its keys sorted, so it is canonical.
func ContentDigest(object *unstructured.Unstructured) string {
	text, err := json.Marshal(object.Object)
	if err != nil { // cannot be: the object was JSON or YAML before
		panic(fmt.Sprintf("object %q is no JSON: %v", KeyOf(object), err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Only are the entries with these keys.
func (i Inventory) Only(keys []Key) (some Inventory) {
	wanted := sets.New(keys...)
	for _, entry := range i {
		if wanted.Has(entry.Key) {
			some = append(some, entry)
		}
	}
	return some
}

// IsAppliedAs says whether the last write of an object was of just what is wanted.
func (e Entry) IsAppliedAs(wanted Entry) bool {
	return e.Applied && e.UID != "" && e.Content == wanted.Content
}

// Doubted is an inventory of a cluster that may have something else: a rollout over it writes every object.
func (i Inventory) Doubted() Inventory {
	doubted := slices.Clone(i)
	for at := range doubted {
		doubted[at].Applied = false
	}
	return doubted
}

// ByKey are the entries by their keys.
func (i Inventory) ByKey() map[Key]Entry {
	entries := make(map[Key]Entry, len(i))
	for _, entry := range i {
		entries[entry.Key] = entry
	}
	return entries
}

// Without leaves out the entries that another inventory has.
func (i Inventory) Without(others Inventory) Inventory {
	theirs := others.ByKey()
	return slices.DeleteFunc(slices.Clone(i), func(entry Entry) bool { _, found := theirs[entry.Key]; return found })
}

// DefinedGroups are those of the CustomResourceDefinitions in an inventory, each once.
func (i Inventory) DefinedGroups() (groups []string) {
	for _, entry := range i {
		if group := GroupOf(entry.Key); group != "" && entry.GroupKind() == DefinitionGK && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// GroupOf is the group that a CustomResourceDefinition defines a kind of: its name is the plural, a dot and the group.
func GroupOf(definition Key) string {
	_, group, _ := strings.Cut(definition.Name, ".")
	return group
}
