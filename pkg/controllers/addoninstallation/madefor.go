package addoninstallation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// longestVersion is the longest Kubernetes version in a status, in bytes.
const longestVersion = 64

// madeFor is the Kubernetes version for which the applied objects were rendered: the cluster's, if the reconciliation
// found the wanted objects applied, otherwise the one in the status.
func madeFor(f *facts, shown *kubermaticv1.AppliedState, applied *metav1.Time) string {
	record, version := f.run.Record(), f.cluster.KubernetesVersion
	switch {
	case f.inputs.Hash != "" && f.inputs.Hash == record.Inputs && len(version) <= longestVersion:
		return version
	case shown != nil && shown.Inputs == record.Inputs && shown.Time.Equal(applied):
		return shown.K8sVersion
	}
	return ""
}
