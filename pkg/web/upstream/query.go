package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// The answers of a query endpoint that pages show. Fields that no page shows are left out; pkg/serve/query/openapi.json has all.
type (
	// Installations is a page of rows, with the counts by state of all.
	Installations struct {
		Installations []view.Row     `json:"installations"`
		Total         int            `json:"total"`
		Counts        map[string]int `json:"counts"`
		After         string         `json:"after"`
		Truncated     bool           `json:"truncated"`
	}
	// Cluster is a row about a cluster.
	Cluster struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Kind        string            `json:"kind"`
		K8sVersion  string            `json:"k8sVersion"`
		KKPVersion  string            `json:"kkpVersion"`
		Paused      bool              `json:"paused"`
		Deleted     bool              `json:"deleted"`
		Counts      map[string]int    `json:"counts"`
		AddonsReady *metav1.Condition `json:"addonsReady"`
	}
	// Clusters is a page of clusters.
	Clusters struct {
		Clusters []Cluster `json:"clusters"`
		Total    int       `json:"total"`
		After    string    `json:"after"`
	}
	// Listing is what a cluster is offered.
	Listing struct {
		Addons []Addon `json:"addons"`
	}
	// Addon is one add-on of a Listing.
	Addon struct {
		Name             string         `json:"name"`
		DisplayName      string         `json:"displayName"`
		SupportedBy      string         `json:"supportedBy"`
		Description      string         `json:"description"`
		DocumentationURL string         `json:"documentationURL"`
		Versions         []AddonVersion `json:"versions"`
		Excluded         []AddonVersion `json:"excluded"`
	}
	// AddonVersion is a version that fits, or does not for a reason.
	AddonVersion struct {
		Version    string `json:"version"`
		Catalogue  string `json:"catalogue"`
		Deprecated string `json:"deprecated"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
	}
	// Version is one version with its form.
	Version struct {
		Method      string         `json:"method"`
		FormSpec    []v1.FormField `json:"formSpec"`
		FormProblem string         `json:"formProblem"`
	}
	// Set is a row about an AddonSet of a seed, or all of it.
	Set struct {
		Name         string                `json:"name"`
		State        string                `json:"state"`
		Reason       string                `json:"reason"`
		Message      string                `json:"message"`
		Counts       v1.ClusterCounts      `json:"counts"`
		PendingCount int32                 `json:"pendingCount"`
		Conditions   []metav1.Condition    `json:"conditions"`
		Groups       []v1.GroupStatus      `json:"groups"`
		Pending      []v1.PendingChange    `json:"pending"`
		Clusters     []v1.SetClusterStatus `json:"clusters"`
	}
	// Sets are those of a seed.
	Sets struct {
		Sets []Set `json:"sets"`
	}
	// UpgradeCheck says how an upgrade of a cluster affects its installations.
	UpgradeCheck struct {
		To            string    `json:"to"`
		Breaks        int       `json:"breaks"`
		Installations []Upgrade `json:"installations"`
	}
	// Upgrade is what it does to one installation.
	Upgrade struct {
		Installation string        `json:"installation"`
		Outcome      string        `json:"outcome"`
		Message      string        `json:"message"`
		Installed    *AddonVersion `json:"installed"`
		Version      *AddonVersion `json:"version"`
	}
)

// Ask decodes the answer of the query endpoint to a question.
func (s *Seed) Ask(ctx context.Context, token string, query url.Values, into any, path ...string) error {
	return s.Query.ask(ctx, token, Request{Path: append([]string{"api", "v1"}, path...), Query: query}, into)
}

// Preview asks once what an installation would become. It may be pending.
func (s *Seed) Preview(ctx context.Context, token string, of *v1.AddonInstallation) (made preview.Preview, err error) {
	asked := &v1.AddonInstallation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonInstallation"},
		ObjectMeta: metav1.ObjectMeta{Name: of.Name, Annotations: of.Annotations}, Spec: of.Spec,
	}
	path := []string{"api", "v1", "namespaces", of.Namespace, "preview"}
	err = s.Query.ask(ctx, token, Request{Method: http.MethodPost, Path: path, Body: asked}, &made)
	return made, err
}

// CheckUpgrade asks what an upgrade of a cluster to a Kubernetes version does to its installations.
func (s *Seed) CheckUpgrade(ctx context.Context, token string, cluster Cluster, to string) (found UpgradeCheck, err error) {
	body := map[string]string{"namespace": cluster.Namespace, "k8sVersion": to}
	err = s.Query.ask(ctx, token, Request{
		Method: http.MethodPost, Path: []string{"api", "v1", "upgrade-check"}, Query: url.Values{"cluster": {cluster.Name}}, Body: body,
	}, &found)
	return found, err
}

// ask decodes the answer to a request. Its numbers stay as they are.
func (t *Target) ask(ctx context.Context, token string, request Request, into any) error {
	answer, err := t.Call(ctx, token, request)
	if err != nil {
		return err
	}
	if strictyaml.Elements(answer.Body) > mostElements {
		return &UnreachableError{Name: t.Name, err: errLarge}
	}
	decoder := json.NewDecoder(bytes.NewReader(answer.Body))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return &UnreachableError{Name: t.Name, err: errors.New("its answer can't be read")}
	}
	return nil
}
