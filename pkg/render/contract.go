// Package render is the contract between content and objects: an Input goes in, a Result comes out. gotemplate renders
// KKP-style manifests, chart renders Helm charts; both are named in cmd and tests only.
package render

import (
	"context"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// Input is everything that objects depend on but chance: a template may read the clock or make up a password. So what was
// rendered is kept (keep.go).
type Input struct {
	// Addon is the name of the add-on, for messages.
	Addon string
	// Tenant names whose rendering this is, such as a cluster's namespace. Renderings of two tenants never share a process.
	// It is no input to the objects.
	Tenant string
	// Content holds the manifests, or the chart's folder.
	Content fs.FS
	// Values are the merged values without those of the chart itself.
	Values map[string]any
	// CatalogueValues are what the catalogue gives of them. In charts, where Data holds secrets, text that is neither theirs nor the
	// chart's is rendered by tpl without secrets.
	CatalogueValues map[string]any
	// Data is the cluster's template data.
	Data templatedata.Data
	// Release names the Helm release and the namespace for objects without one.
	Release Release
	// Capabilities of the user cluster, for charts.
	Capabilities Capabilities
	// Found are the objects that function lookup of a chart finds; there are no others.
	Found []*unstructured.Unstructured
	// GuardFound makes secrets of the Secrets in Found, as of those in Data: text that is neither the chart's nor the
	// catalogue's neither sees them nor looks up anything.
	GuardFound bool
	// OtherMoment renders as at another time, so that two renderings differ wherever the clock is read.
	OtherMoment bool
}

// Release is what a chart sees as .Release.
type Release struct {
	Name, Namespace string
	// Revision of the Helm release, from 1.
	Revision int
	// IsInstall says that the revision installs the release; any other upgrades it.
	IsInstall bool
	// DisableHooks leaves hooks out.
	DisableHooks bool
}

// Capabilities of a user cluster.
type Capabilities struct {
	// KubeVersion is the version of the API server, such as v1.36.3.
	KubeVersion string
	// APIVersions are the served group/versions, and group/version/Kind.
	APIVersions []string
}

// Result is what rendering gives.
type Result struct {
	// Objects in the order of the manifests; CRDs of a chart's crds/ folder are among them.
	Objects []*unstructured.Unstructured
	// Chart describes the chart; nil for go-template.
	Chart *Chart
}

// Chart is what a Helm release record says about a chart, and its manifest.
type Chart struct {
	Name, Version, AppVersion string
	// Manifest is the rendered text as Helm keeps it: sorted, without crds/ and hooks.
	Manifest string
	// Config are the user's values as Helm keeps them, without key "kkp".
	Config map[string]any
	// Hooks in the order of their kinds, as Helm sorts them before it looks at weights.
	Hooks []Hook `json:",omitempty"`
}

// Renderer renders one method.
type Renderer interface {
	Render(ctx context.Context, input Input) (Result, error)
}

// TemplateError says that a template or manifest is wrong.
type TemplateError struct {
	// File and Line say where; Line 0 is unknown.
	File string
	Line int
	// Problem says what.
	Problem string
}

func (e *TemplateError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// NoManifestsError says that there is nothing to render. It is never taken as a wish to remove everything.
type NoManifestsError struct{ Addon string }

func (e *NoManifestsError) Error() string {
	return fmt.Sprintf("add-on %q has no manifests: its path holds no *.yaml file that renders to an object", e.Addon)
}
