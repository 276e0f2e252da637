package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/resolution"
)

// upgradeRequest is the body of an upgrade check.
type upgradeRequest struct {
	Namespace  string `json:"namespace"`
	K8sVersion string `json:"k8sVersion"`
}

// upgradeAnswer is what an upgrade of a cluster does to its installations.
type upgradeAnswer struct {
	Namespace  string `json:"namespace"`
	KKPVersion string `json:"kkpVersion"`
	// From and To are Kubernetes versions.
	From string `json:"from"`
	To   string `json:"to"`
	// Breaks is the number of installations whose outcome is Breaks.
	Breaks        int                         `json:"breaks"`
	Installations []resolution.UpgradeFinding `json:"installations"`
}

// upgradeCheck says which installations of a cluster an upgrade would break.
func (s *Server) upgradeCheck(ctx context.Context, of *call) (*content, error) {
	var given upgradeRequest
	if err := body(of.request, &given); err != nil {
		return nil, err
	}
	namespace, err := name("namespace", given.Namespace)
	if err != nil {
		return nil, err
	}
	target, err := platformVersion("k8sVersion", given.K8sVersion)
	if err != nil {
		return nil, err
	}
	for _, resource := range []string{ResourceInstallations, ResourceCatalogues} {
		if err := s.Reviews.Authorise(ctx, of.identity, Access{namespace, resource}); err != nil {
			return nil, err
		}
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	from, err := s.platformOf(ctx, at, namespace)
	if err != nil {
		return nil, err
	}
	installed, err := s.installed(ctx, namespace)
	if err != nil {
		return nil, err
	}
	to := s.platform(at, target)
	findings := resolution.CheckUpgrade(func(addon string) *catalogue.Entry { return at.byName[addon] }, installed, from, to)
	answer := upgradeAnswer{
		Namespace: namespace, KKPVersion: from.KKPVersion, From: from.K8sVersion, To: to.K8sVersion, Installations: findings,
	}
	for _, finding := range findings {
		if finding.Outcome == resolution.OutcomeBreaks {
			answer.Breaks++
		}
	}
	encoded, err := encode(answer)
	if err != nil {
		return nil, fmt.Errorf("encoding an upgrade check: %w", err)
	}
	return &content{plain: newForm(encoded, "")}, nil
}

// installed reads the installations of a namespace, sorted by name.
func (s *Server) installed(ctx context.Context, namespace string) ([]resolution.Installed, error) {
	var list v1.AddonInstallationList
	// Objects are shared with the cache and only read.
	if err := s.Installations.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing AddonInstallations of %q: %w", namespace, err)
	}
	installed := make([]resolution.Installed, 0, len(list.Items))
	for i := range list.Items {
		one := &list.Items[i]
		installed = append(installed, resolution.Installed{
			Name: one.Name, Addon: string(one.Spec.AddonRef.Name), Wanted: one.Spec.AddonRef.Version,
			Version: resolution.InstalledVersion(one),
			Held:    one.Spec.Paused || one.Spec.ReconcileStrategy == v1.ReconcileOnce,
			Options: catalogue.SelectOptions{
				AllowDowngrade: one.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: one.Spec.CoreAddon,
			},
		})
	}
	slices.SortFunc(installed, func(a, b resolution.Installed) int { return cmp.Compare(a.Name, b.Name) })
	return installed, nil
}
