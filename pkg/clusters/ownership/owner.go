package ownership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Owner is the installation on whose behalf objects are written.
type Owner struct {
	ClusterUID   types.UID
	Installation string
}

// ID is 16 hex digits, for label addons.kubermatic.k8c.io/installation.
func (o Owner) ID() string { return o.LongID()[:IDLength] }

// LongID is 32 hex digits that begin with the ID: unlike IDs, no two can be made to collide.
func (o Owner) LongID() string {
	sum := sha256.Sum256([]byte(string(o.ClusterUID) + "/" + o.Installation))
	return hex.EncodeToString(sum[:16])
}

// FieldManager is the owner's name in managedFields.
func (o Owner) FieldManager() string { return ManagerOf(o.ID()) }

// ManagerOf is the field manager of the installation with an ID.
func ManagerOf(id string) string { return managerPrefix + id }

// InstallationOf is the ID in an installation's field manager; false for other managers.
func InstallationOf(manager string) (id string, found bool) {
	return strings.CutPrefix(manager, managerPrefix)
}

const managerPrefix = "addon-installation/"

// IDLength is the length of an owner's ID.
const IDLength = 16

// HelmMarks are the marks that Helm requires of objects before it adopts them.
type HelmMarks struct {
	ReleaseName, ReleaseNamespace string
}

// AreOn says whether the annotations have the marks of the release.
func (m HelmMarks) AreOn(annotations map[string]string) bool {
	return annotations[HelmReleaseAnnotation] == m.ReleaseName && annotations[HelmNamespaceAnnotation] == m.ReleaseNamespace
}

// Helm's annotations, from helm.sh/helm/v3/pkg/action/validate.go and pkg/release/v1.
const (
	HelmReleaseAnnotation   = "meta.helm.sh/release-name"
	HelmNamespaceAnnotation = "meta.helm.sh/release-namespace"
	HelmHookAnnotation      = "helm.sh/hook"
	HelmPolicyAnnotation    = "helm.sh/resource-policy"
	helmPolicyKeep          = "keep"
)

// OCMOrphanAnnotation is the annotation by which Open Cluster Management leaves an object in the managed cluster when its
// add-on is removed, with any value (open-cluster-management.io/api, addon/v1beta1).
const OCMOrphanAnnotation = "addon.open-cluster-management.io/deletion-orphan"

// StaysBehind says whether a manifest requests that its object stays after the installation. A user can request that
// on the object in the user cluster too.
func StaysBehind(object metav1.Object) bool {
	annotations := object.GetAnnotations()
	_, isOrphanInOCM := annotations[OCMOrphanAnnotation]
	return isOrphanInOCM || annotations[kubermaticv1.AnnotationOnDelete] == "orphan" || IsKeptByHelm(object)
}

// IsKeptByHelm says whether a manifest asks Helm to keep its object.
func IsKeptByHelm(object metav1.Object) bool {
	return object.GetAnnotations()[HelmPolicyAnnotation] == helmPolicyKeep
}
