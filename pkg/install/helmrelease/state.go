package helmrelease

import (
	"maps"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

const reservedValues = "kkp"

// Object returns Helm's own form, with the owner's label, without templates, files or values under kkp.
func (r *Release) Object(owner ownership.Owner, run []hooks.Hook) *helm.Release {
	config := maps.Clone(r.Config)
	delete(config, reservedValues)
	return &helm.Release{
		Name: r.Name, Namespace: r.Namespace, Version: r.Revision,
		Chart: &chart.Chart{Metadata: &chart.Metadata{
			APIVersion: chart.APIVersionV2, Type: "application",
			Name: r.ChartName, Version: r.ChartVersion, AppVersion: r.AppVersion,
		}},
		Info: &helm.Info{
			FirstDeployed: timeOf(r.FirstDeployed), LastDeployed: timeOf(r.LastDeployed),
			Status: helm.Status(r.Status), Description: r.Description,
		},
		Config: config, Manifest: r.Manifest, Hooks: storedHooks(run),
		Labels: map[string]string{v1.LabelInstallation: owner.ID()},
	}
}

// storedHooks have prepared objects as manifests, for users who run them with helm.
func storedHooks(run []hooks.Hook) []*helm.Hook {
	made := make([]*helm.Hook, 0, len(run))
	for _, hook := range run {
		object, err := hook.Decode()
		if err != nil {
			continue // it can't be run either, which its run reports
		}
		manifest, err := yaml.JSONToYAML(hook.Object)
		if err != nil {
			continue
		}
		made = append(made, &helm.Hook{
			Name: object.GetName(), Kind: object.GetKind(), Path: hook.Path, Manifest: string(manifest), Weight: hook.Weight,
			Events: words[helm.HookEvent](hook.Events), LastRun: lastRun(hook.Run),
			DeletePolicies:    words[helm.HookDeletePolicy](hook.DeletePolicies),
			OutputLogPolicies: words[helm.HookOutputLogPolicy](hook.LogPolicies),
		})
	}
	return slices.Clip(made)
}

func lastRun(r *hooks.Run) helm.HookExecution {
	if r == nil {
		return helm.HookExecution{}
	}
	return helm.HookExecution{
		StartedAt: timeOf(r.Started), CompletedAt: timeOf(r.Ended),
		Phase: helm.HookPhase(r.Phase),
	}
}

func words[W ~string](plain []string) []W {
	var typed []W
	for _, word := range plain {
		typed = append(typed, W(word))
	}
	return typed
}

// timeOf has full seconds, as in a record: otherwise a restarted process would write again.
func timeOf(at metav1.Time) helmtime.Time {
	return helmtime.Time{Time: at.UTC().Truncate(time.Second)}
}
