package addoninstallation

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/helmrelease"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// helmRecord is what the record says of the Helm release; nil for go-template.
func helmRecord(f *facts) *helmrelease.Release {
	chart := f.chart
	if chart == nil {
		return nil
	}
	helm := f.NextRelease(releaseName(f))
	helm.ChartName, helm.ChartVersion, helm.AppVersion = chart.Name, chart.Version, chart.AppVersion
	helm.Manifest, helm.Config = chart.Manifest, chart.Config
	return helm
}

// releaseNameFree refuses a release name that another installation of the cluster has in the same namespace already.
func (r *Reconciler) releaseNameFree(ctx context.Context, f *facts) loop.Outcome {
	name, spec := releaseName(f), f.installation.Spec
	if name == "" {
		return nil
	}
	list := &kubermaticv1.AddonInstallationList{} // shared with the cache, and only read
	err := r.Client.List(ctx, list, client.InNamespace(f.installation.Namespace), client.MatchingFields{indexRelease: name},
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return failed(err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if isOlder(other, f.installation) && other.Spec.TargetNamespace == spec.TargetNamespace {
			return outcomeOf(installer.ReleaseTaken(other.Name, name, spec.TargetNamespace))
		}
	}
	return nil
}

// isOlder says which of two installations that want the same keeps it: the one made first, then the first by name. Of one
// installation with itself it says no.
func isOlder(a, b *kubermaticv1.AddonInstallation) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
