package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// Target is one user cluster as the engine sees it.
type Target struct {
	// Metadata writes and lists: its answers carry metadata only, whatever the object's size.
	Metadata metadata.Interface
	// Dynamic reads whole objects, for health.
	Dynamic dynamic.Interface
	// Mapper knows the served kinds; it can be reset when a CRD has been established.
	Mapper meta.ResettableRESTMapper
	// Served tells all served kinds, to look into a namespace before it is removed; without it no namespace is removed.
	Served Served
}

// Served tells what an API server serves, as of the mapper's last reset.
type Served interface {
	// APIVersions are served group versions and kinds: "apps/v1", "apps/v1/Deployment", "v1/Pod".
	APIVersions() []string
	// MissingGroups are the groups, or group versions, whose kinds can't be told at the moment.
	MissingGroups() []string
}

// Owner is the installation on whose behalf objects are written.
type Owner struct {
	// ClusterUID is the UID of the Cluster object on the seed.
	ClusterUID types.UID
	// Installation is the name of the AddonInstallation.
	Installation string
}

// ID is 16 hex digits, unique for an installation of a cluster; the value of label addons.kubermatic.k8c.io/installation.
func (o Owner) ID() string {
	return o.LongID()[:16]
}

// LongID is 32 hex digits that begin with the ID: two owners can't be made that share it, while two that share an ID can be
// searched for. It names what one owner must never have of another.
func (o Owner) LongID() string {
	sum := sha256.Sum256([]byte(string(o.ClusterUID) + "/" + o.Installation))
	return hex.EncodeToString(sum[:16])
}

// FieldManager is the owner's name in managedFields.
func (o Owner) FieldManager() string { return managerOf(o.ID()) }

// managerOf is the field manager of the installation with an ID.
func managerOf(id string) string { return managerPrefix + id }

// installationOf is the ID of the installation that a field manager is; false for everybody else's.
func installationOf(manager string) (id string, found bool) {
	return strings.CutPrefix(manager, managerPrefix)
}

const managerPrefix = "addon-installation/"

// ownerIDLength is the length of an owner's ID.
const ownerIDLength = 16

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
