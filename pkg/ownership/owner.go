package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

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
func (o Owner) FieldManager() string { return ManagerOf(o.ID()) }

// ManagerOf is the field manager of the installation with an ID.
func ManagerOf(id string) string { return managerPrefix + id }

// InstallationOf is the ID of the installation that a field manager is; false for everybody else's.
func InstallationOf(manager string) (id string, found bool) {
	return strings.CutPrefix(manager, managerPrefix)
}

const managerPrefix = "addon-installation/"

// IDLength is the length of an owner's ID.
const IDLength = 16
