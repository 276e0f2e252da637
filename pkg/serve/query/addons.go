package query

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values"
)

// addons lists the offers for a platform, even one that does not exist.
func (s *Server) addons(ctx context.Context, of *call) (*content, error) {
	if err := s.Reviews.Authorise(ctx, of.identity, s.everything()); err != nil {
		return nil, err
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	key := of.given.pair
	if key.kkp == "" {
		key.kkp = catalogue.CanonicalPlatformVersion(at.kkpVersion)
	}
	return s.answers.to(ctx, at, key)
}

func (s *Server) everything() Access {
	return Access{Namespace: s.options.CatalogueNamespace, Resource: ResourceCatalogues}
}

func (s *Server) namespaceAddons(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	at, found, err := s.cluster(ctx, of, namespace, ResourceCatalogues)
	if err != nil {
		return nil, err
	}
	platform := s.platform(at, found)
	key := of.given.pair
	key.kkp, key.k8s = platform.KKPVersion, platform.K8sVersion
	return s.answers.to(ctx, at, key)
}

// cluster describes the cluster of a namespace, KKP's or the one with the given name, to callers who may list these
// resources in it. Errors: those of Authorise, *UnavailableError, *NotFoundError, or a *ParameterError if a name is
// missing.
func (s *Server) cluster(
	ctx context.Context, of *call, namespace string, resources ...string,
) (*snapshot, target.Description, error) {
	for _, resource := range resources {
		if err := s.Reviews.Authorise(ctx, of.identity, Access{Namespace: namespace, Resource: resource}); err != nil {
			return nil, target.Description{}, err
		}
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, target.Description{}, err
	}
	found, err := s.Clusters.Find(ctx, target.Ref{Namespace: namespace, Name: of.given.rows.cluster})
	if unknown, ok := errors.AsType[*cluster.UnknownError](err); ok {
		if of.given.rows.cluster == "" && len(unknown.Others) > 0 {
			return nil, target.Description{}, &ParameterError{
				"cluster", "it is missing: name a Cluster of this namespace: " + unknown.OtherNames(),
			}
		}
		return nil, target.Description{}, &NotFoundError{}
	}
	if err != nil {
		return nil, target.Description{}, fmt.Errorf("finding the Cluster of namespace %q: %w", namespace, err)
	}
	return at, found, nil
}

// platform is that of a cluster. KKP's version is unknown for clusters that KKP did not make.
func (s *Server) platform(at *snapshot, of target.Description) catalogue.Platform {
	platform := catalogue.Platform{
		K8sVersion: catalogue.CanonicalPlatformVersion(of.KubernetesVersion), AllowPrereleases: s.options.AllowPrereleases,
	}
	if of.IsKKP() {
		platform.KKPVersion = catalogue.CanonicalPlatformVersion(at.kkpVersion)
	}
	return platform
}

func (s *Server) version(ctx context.Context, of *call) (*content, error) {
	addon, version, err := namedVersion(of)
	if err != nil {
		return nil, err
	}
	if err := s.Reviews.Authorise(ctx, of.identity, s.everything()); err != nil {
		return nil, err
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	entry := at.byName[addon]
	if entry == nil {
		return nil, &NotFoundError{}
	}
	return describe(entry, version)
}

// namespaceVersion describes a version to users who may list a namespace's add-ons, even if it does
// not fit the cluster yet. Like the listing, it omits core add-ons.
func (s *Server) namespaceVersion(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	addon, version, err := namedVersion(of)
	if err != nil {
		return nil, err
	}
	at, _, err := s.cluster(ctx, of, namespace, ResourceCatalogues)
	if err != nil {
		return nil, err
	}
	entry := at.byName[addon]
	if entry == nil || entry.Type == v1.CatalogueCore {
		return nil, &NotFoundError{}
	}
	return describe(entry, version)
}

func namedVersion(of *call) (addon, version string, err error) {
	if addon, err = name("name", of.path["name"]); err != nil {
		return "", "", err
	}
	version, err = addonVersion("version", of.path["version"])
	return addon, version, err
}

// describe encodes the answer about a version. Errors: *NotFoundError.
func describe(entry *catalogue.Entry, version string) (*content, error) {
	detail, ok := entry.Detail(version)
	if !ok {
		return nil, &NotFoundError{}
	}
	encoded, err := encode(withForm(detail))
	if err != nil {
		return nil, fmt.Errorf("encoding version %q of add-on %q: %w", version, entry.Addon.Name, err)
	}
	made := newContent(encoded)
	return &made, nil
}

// formedDetail is a version with the schema of its form.
type formedDetail struct {
	catalogue.VersionDetail
	FormSchema map[string]any `json:"formSchema,omitempty"`
	// FormProblem says why there is no schema; it names a field but no value.
	FormProblem string `json:"formProblem,omitempty"`
}

func withForm(detail catalogue.VersionDetail) formedDetail {
	schema, err := values.FormSchema(detail.FormSpec)
	if err != nil {
		return formedDetail{VersionDetail: detail, FormProblem: err.Error()}
	}
	return formedDetail{VersionDetail: detail, FormSchema: schema}
}

// encode leaves < and > readable, as ranges contain them.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return buffer.Bytes(), err
}

type upgradeRequest struct {
	Namespace  string `json:"namespace"`
	K8sVersion string `json:"k8sVersion"`
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
	at, found, err := s.cluster(ctx, of, namespace, ResourceInstallations, ResourceCatalogues)
	if err != nil {
		return nil, err
	}
	requests, err := s.requests(ctx, found)
	if err != nil {
		return nil, err
	}
	from := s.platform(at, found)
	findings := resolution.CheckUpgrade(func(addon string) *catalogue.Entry { return at.byName[addon] }, requests, kubernetes)
	answer := view.UpgradeCheck{
		Namespace: namespace, Cluster: of.given.rows.cluster, KKPVersion: from.KKPVersion, From: from.K8sVersion,
		To: catalogue.CanonicalPlatformVersion(kubernetes), Installations: findings,
	}
	for _, finding := range findings {
		if finding.Outcome == resolution.OutcomeBreaks {
			answer.Breaks++
		}
	}
	return answerOf(answer)
}

func (s *Server) requests(ctx context.Context, of target.Description) ([]resolution.Request, error) {
	var list v1.AddonInstallationList
	// The cache owns the objects.
	if err := s.Installations.List(ctx, &list, cluster.InstallationsOf(of.Ref), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing AddonInstallations of %q: %w", of.Namespace, err)
	}
	own := cluster.OnlyOf(of.Ref, list.Items)
	requests := make([]resolution.Request, 0, len(own))
	for i := range own {
		requests = append(requests, resolution.Request{
			Installation: &own[i], Installed: resolution.InstalledInStatus(&own[i]), Cluster: of,
			AllowPrereleases: s.options.AllowPrereleases,
		})
	}
	slices.SortFunc(requests, func(a, b resolution.Request) int {
		return cmp.Compare(a.Installation.Name, b.Installation.Name)
	})
	return requests, nil
}
