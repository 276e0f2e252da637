package addoninstallation

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/revision"
)

// defaultTimeout is how long objects may take to become healthy where the catalogue doesn't say.
const defaultTimeout = 10 * time.Minute

// releaseName of a Helm release; empty for go-template.
func releaseName(f *facts) string {
	if f.entry.Template.Method != kubermaticv1.MethodHelm {
		return ""
	}
	if options := f.entry.Template.Helm; options != nil && options.ReleaseName != "" {
		return options.ReleaseName
	}
	return helmrelease.NameFor(f.installation.Name)
}

// nextRevision is the revision that a change would get. An intent that was never carried out keeps its number.
func nextRevision(f *facts) int {
	record := f.record()
	switch {
	case record == nil:
		return 1
	case record.Skipped > 0:
		return record.Skipped + 1
	case record.State == revision.StateApplied:
		return record.Revision + 1
	}
	return record.Revision
}

// sameChart says whether two revisions are of the same chart in the same version, or both of none.
func sameChart(a, b *helmrelease.Release) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.ChartName == b.ChartName && a.ChartVersion == b.ChartVersion
}

// crdPolicy is the version's policy with its defaults filled in.
func crdPolicy(f *facts) kubermaticv1.CRDPolicy {
	policy := kubermaticv1.CRDPolicy{Apply: kubermaticv1.CRDCreateReplace, Remove: kubermaticv1.CRDRemoveWhenUnused}
	if f.entry.Template.Method == kubermaticv1.MethodHelm {
		policy.Remove = kubermaticv1.CRDRemoveKeep
	}
	if wanted := f.entry.Template.CRDs; wanted != nil {
		policy.Apply = cmp.Or(wanted.Apply, policy.Apply)
		policy.Remove = cmp.Or(wanted.Remove, policy.Remove)
	}
	return policy
}

func timeoutOf(f *facts) metav1.Duration {
	if timeout := f.entry.Template.Timeout; timeout != nil {
		return *timeout
	}
	return metav1.Duration{Duration: defaultTimeout}
}
