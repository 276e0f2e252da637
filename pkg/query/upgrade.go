package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/target"
)

type upgradeRequest struct {
	Namespace  string `json:"namespace"`
	K8sVersion string `json:"k8sVersion"`
}

// upgradeAnswer is what an upgrade of a cluster means for its installations.
type upgradeAnswer struct {
	Namespace  string `json:"namespace"`
	KKPVersion string `json:"kkpVersion"`
	From       string `json:"from"`
	To         string `json:"to"`
	// Breaks is the number of installations with outcome Breaks.
	Breaks        int                         `json:"breaks"`
	Installations []resolution.UpgradeFinding `json:"installations"`
}

func (s *Server) upgradeCheck(ctx context.Context, of *call) (*content, error) {
	var given upgradeRequest
	if err := body(of.request, &given); err != nil {
		return nil, err
	}
	namespace, err := name("namespace", given.Namespace)
	if err != nil {
		return nil, err
	}
	kubernetes, err := platformVersion("k8sVersion", given.K8sVersion)
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
	found, err := s.clusterOf(ctx, target.Ref{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	requests, err := s.requests(ctx, found)
	if err != nil {
		return nil, err
	}
	from, to := s.platform(at, found.KubernetesVersion), s.platform(at, kubernetes)
	findings := resolution.CheckUpgrade(func(addon string) *catalogue.Entry { return at.byName[addon] }, requests, kubernetes)
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

func (s *Server) requests(ctx context.Context, of target.Description) ([]resolution.Request, error) {
	var list v1.AddonInstallationList
	// The cache owns the objects.
	if err := s.Installations.List(ctx, &list, cluster.InstallationsOf(of.Ref), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing AddonInstallations of %q: %w", of.Namespace, err)
	}
	requests := make([]resolution.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, resolution.Request{
			Installation: &list.Items[i], Installed: resolution.InstalledInStatus(&list.Items[i]), Cluster: of,
			AllowPrereleases: s.options.AllowPrereleases,
		})
	}
	slices.SortFunc(requests, func(a, b resolution.Request) int {
		return cmp.Compare(a.Installation.Name, b.Installation.Name)
	})
	return requests, nil
}
