package addoninstallation

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// defaultTimeout is how long objects may take to become healthy where the catalogue doesn't say.
const defaultTimeout = 10 * time.Minute

// releaseName of the Helm release; empty for go-template.
func releaseName(f *facts) string { return f.choice.ReleaseName(f.installation.Name) }

// crdPolicy is the version's policy with its defaults filled in.
func crdPolicy(f *facts) kubermaticv1.CRDPolicy {
	policy := kubermaticv1.CRDPolicy{Apply: kubermaticv1.CRDCreateReplace, Remove: kubermaticv1.CRDRemoveWhenUnused}
	if f.choice.Version.Template.Method == kubermaticv1.MethodHelm {
		policy.Remove = kubermaticv1.CRDRemoveKeep
	}
	if wanted := f.choice.Version.Template.CRDs; wanted != nil {
		policy.Apply = cmp.Or(wanted.Apply, policy.Apply)
		policy.Remove = cmp.Or(wanted.Remove, policy.Remove)
	}
	return policy
}

func timeoutOf(f *facts) metav1.Duration {
	if timeout := f.choice.Version.Template.Timeout; timeout != nil {
		return *timeout
	}
	return metav1.Duration{Duration: defaultTimeout}
}
