package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/values"
)

// addons lists what a platform would be offered, which need not exist.
func (s *Server) addons(ctx context.Context, of *call) (*content, error) {
	if err := s.Reviews.Authorise(ctx, of.identity, s.everything()); err != nil {
		return nil, err
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	key := of.given
	if key.kkp == "" {
		key.kkp = catalogue.CanonicalPlatformVersion(at.kkpVersion)
	}
	return s.answers.to(ctx, at, key)
}

// everything is the right to see the whole catalogue.
func (s *Server) everything() Access { return Access{s.options.CatalogueNamespace, ResourceCatalogues} }

// namespaceAddons lists what the cluster of a namespace is offered.
func (s *Server) namespaceAddons(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	if err := s.Reviews.Authorise(ctx, of.identity, Access{namespace, ResourceCatalogues}); err != nil {
		return nil, err
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	found, err := s.clusterOf(ctx, target.Ref{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	platform := s.platform(at, found.KubernetesVersion)
	key := of.given
	key.kkp, key.k8s = platform.KKPVersion, platform.K8sVersion
	return s.answers.to(ctx, at, key)
}

// clusterOf describes the one cluster that a Ref means. Errors: *NotFoundError.
func (s *Server) clusterOf(ctx context.Context, ref target.Ref) (target.Description, error) {
	found, err := s.Clusters.Find(ctx, ref)
	if _, unknown := errors.AsType[*cluster.UnknownError](err); unknown {
		return target.Description{}, &NotFoundError{}
	}
	if err != nil {
		return target.Description{}, fmt.Errorf("finding the Cluster of namespace %q: %w", ref.Namespace, err)
	}
	return found, nil
}

// platform is one on this seed, in canonical versions.
func (s *Server) platform(at *snapshot, k8sVersion string) catalogue.Platform {
	return catalogue.Platform{
		KKPVersion:       catalogue.CanonicalPlatformVersion(at.kkpVersion),
		K8sVersion:       catalogue.CanonicalPlatformVersion(k8sVersion),
		AllowPrereleases: s.options.AllowPrereleases,
	}
}

// version describes one version of any add-on.
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

// namespaceVersion describes one version to whoever sees the listing of a namespace: its form is for them to fill in. Versions that
// do not fit the cluster yet are described too. Core add-ons are not, as the listing does not offer them.
func (s *Server) namespaceVersion(ctx context.Context, of *call) (*content, error) {
	namespace, err := name("namespace", of.path["namespace"])
	if err != nil {
		return nil, err
	}
	addon, version, err := namedVersion(of)
	if err != nil {
		return nil, err
	}
	if err := s.Reviews.Authorise(ctx, of.identity, Access{namespace, ResourceCatalogues}); err != nil {
		return nil, err
	}
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	if _, err := s.clusterOf(ctx, target.Ref{Namespace: namespace}); err != nil {
		return nil, err
	}
	entry := at.byName[addon]
	if entry == nil || entry.Type == v1.CatalogueCore {
		return nil, &NotFoundError{}
	}
	return describe(entry, version)
}

// namedVersion reads the add-on and the version that a path names. Errors: *ParameterError.
func namedVersion(of *call) (addon, version string, err error) {
	if addon, err = name("name", of.path["name"]); err != nil {
		return "", "", err
	}
	version, err = addonVersion("version", of.path["version"])
	return addon, version, err
}

// describe is the answer about one version. Errors: *NotFoundError.
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

// formedDetail is a version with its form as a user interface draws it.
type formedDetail struct {
	catalogue.VersionDetail
	FormSchema map[string]any `json:"formSchema,omitempty"`
	// FormProblem says why there is no schema; it names a field and no value.
	FormProblem string `json:"formProblem,omitempty"`
}

func withForm(detail catalogue.VersionDetail) formedDetail {
	schema, err := values.FormSchema(detail.FormSpec)
	if err != nil {
		return formedDetail{VersionDetail: detail, FormProblem: err.Error()}
	}
	return formedDetail{VersionDetail: detail, FormSchema: schema}
}

// encode gives JSON whose < and > can be read, since versions' ranges are full of them.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return buffer.Bytes(), err
}
