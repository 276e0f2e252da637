package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// HelmMarks are what Helm asks of objects before it takes them over: a label and two annotations.
type HelmMarks struct {
	ReleaseName, ReleaseNamespace string
}

// AreOn says whether annotations are those of the release.
func (m HelmMarks) AreOn(annotations map[string]string) bool {
	return annotations[HelmReleaseAnnotation] == m.ReleaseName && annotations[HelmNamespaceAnnotation] == m.ReleaseNamespace
}

// Annotations of Helm's, from helm.sh/helm/v3/pkg/action/validate.go and pkg/release/v1.
const (
	HelmReleaseAnnotation   = "meta.helm.sh/release-name"
	HelmNamespaceAnnotation = "meta.helm.sh/release-namespace"
	HelmHookAnnotation      = "helm.sh/hook"
	helmPolicyAnnotation    = "helm.sh/resource-policy"
	helmPolicyKeep          = "keep"
)

// StaysBehind says whether a manifest asks to keep its object when the installation goes, in our words or in Helm's.
func StaysBehind(object metav1.Object) bool {
	annotations := object.GetAnnotations()
	return annotations[kubermaticv1.AnnotationOnDelete] == "orphan" || IsKeptByHelm(object)
}

// IsKeptByHelm says whether a manifest asks Helm to keep its object.
func IsKeptByHelm(object metav1.Object) bool {
	return object.GetAnnotations()[helmPolicyAnnotation] == helmPolicyKeep
}
