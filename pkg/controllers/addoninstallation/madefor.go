package addoninstallation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// longestVersion of Kubernetes that a status holds, in bytes.
const longestVersion = 64

// madeFor is the Kubernetes version that what is applied was made for: the cluster's, where the pass
// found it to be what is wanted there, else what was shown of it before.
func madeFor(f *facts, shown *kubermaticv1.AppliedState, applied *metav1.Time) string {
	record, version := f.pass.Record(), f.cluster.KubernetesVersion
	switch {
	case f.inputs.Hash != "" && f.inputs.Hash == record.Inputs && len(version) <= longestVersion:
		return version
	case shown != nil && shown.Inputs == record.Inputs && shown.Time.Equal(applied):
		return shown.K8sVersion
	}
	return ""
}
