package addoninstallation

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// longestVersion of Kubernetes that a status holds, in bytes.
const longestVersion = 64

// madeFor is the Kubernetes version that what is applied was made for: the cluster's, where the pass
// found it to be what is wanted there, else what was shown of it before; but see projectMadeFor.
func madeFor(f *facts, shown *kubermaticv1.AppliedState, applied *metav1.Time) string {
	isShown := shown != nil && shown.Inputs == f.pass.Record().Inputs && shown.Time.Equal(applied)
	version := f.wantedFor()
	if isShown && (version == "" || shown.K8sVersion == "" && f.cluster.IsKKP()) {
		return shown.K8sVersion
	}
	return version
}

// wantedFor is the cluster's version, where the pass found what is applied to be what is wanted there.
func (f *facts) wantedFor() string {
	isWanted := f.inputs.Hash != "" && f.inputs.Hash == f.pass.Record().Inputs
	if !isWanted || len(f.cluster.KubernetesVersion) > longestVersion {
		return ""
	}
	return f.cluster.KubernetesVersion
}

// unversioned is the status before the pass, where it does not say for which version what is applied
// to a cluster of KKP's was made.
func (f *facts) unversioned() *kubermaticv1.AddonInstallationStatus {
	if shown := f.installation.Status.LastApplied; shown == nil || shown.K8sVersion != "" || !f.cluster.IsKKP() {
		return nil
	}
	return f.installation.Status.DeepCopy()
}

// projectMadeFor tells for which version what is applied was made, with the next write anyway: where
// an earlier release applied it to a cluster of KKP's, nothing waits for that.
func (f *facts) projectMadeFor(before *kubermaticv1.AddonInstallationStatus) {
	state := &f.installation.Status
	if before != nil && state.LastApplied != nil && state.LastApplied.K8sVersion == "" && !equality.Semantic.DeepEqual(before, state) {
		state.LastApplied.K8sVersion = f.wantedFor()
	}
}
