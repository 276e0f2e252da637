// Package render is the contract between content and objects: an Input goes in, a Result comes out. gotemplate
// renders KKP-style manifests, chart renders Helm charts; only cmd and tests name both.
package render

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Input is all that objects depend on, except clock and randomness. So results are cached (keep.go).
type Input struct {
	// Addon is the name of the add-on, for messages.
	Addon string
	// Tenant, such as a cluster's namespace, never shares a process with another. Objects don't depend on it.
	Tenant string
	// Content is the manifests, or the chart's folder.
	Content fs.FS
	// Values are the merged values, without the chart's own.
	Values map[string]any
	// CatalogueValues are the catalogue's part of Values. In charts, if Data has secrets, tpl renders text from other
	// values without them.
	CatalogueValues map[string]any
	// Data is the cluster's template data.
	Data templatedata.Data
	// Release has the Helm release and the namespace for objects without one.
	Release Release
	// Capabilities of the user cluster, for charts.
	Capabilities Capabilities
	// Found are all objects that a chart's function lookup finds.
	Found []*unstructured.Unstructured
	// GuardFound treats the Secrets in Found as secret, like those in Data, for text of others.
	GuardFound bool
	// OtherMoment renders at another time: two renderings differ everywhere that the clock is read.
	OtherMoment bool
}

// Release is the data of .Release in a chart.
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

// Result is the result of a rendering.
type Result struct {
	// Objects in the order of the manifests; CRDs of a chart's crds/ folder are among them.
	Objects []*unstructured.Unstructured
	// Chart describes the chart; nil for go-template.
	Chart *Chart
}

// Chart is the chart's description for a Helm release record, and its manifest.
type Chart struct {
	Name, Version, AppVersion string
	// Manifest is the rendered text as Helm stores it: sorted, without crds/ and hooks.
	Manifest string
	// Config are the user's values as Helm stores them, without key "kkp".
	Config map[string]any
	// Hooks in the order of their kinds, as Helm sorts them before it considers weights.
	Hooks []Hook `json:",omitempty"`
}

// Renderer renders one method.
type Renderer interface {
	Render(ctx context.Context, input Input) (Result, error)
}

// TemplateError reports that a template or manifest is wrong.
type TemplateError struct {
	// File and Line are its position; Line 0 is unknown.
	File string
	Line int
	// Problem describes the error.
	Problem string
	Stage   Stage
}

// Stage is the part of a rendering in which an error occurs, and so which input causes it.
type Stage string

const (
	// StageExecution: a template refuses its data, or some data is missing. Other data may solve it.
	StageExecution Stage = ""
	// StageContent: the content is wrong, for any data.
	StageContent Stage = "content"
	// StageOutput: the output is no manifest. It depends on the template and its data.
	StageOutput Stage = "output"
	// StageTime: it exceeds a renderer's time, which may depend on the machine.
	StageTime Stage = "time"
)

// Problems of execution that no data solves: fields that do not exist, and undefined templates. A name for function
// include may come from data, or from a file that not all users may see.
var (
	ofContent = regexp.MustCompile(
		`can't evaluate field \S+ in type \*?(templatedata|gotemplate|chart|chartutil)\.|template "[^"]*" not defined`)
	included = regexp.MustCompile(`no template ("[^"]*") associated`)
)

// StageOf is the stage of a problem that a template's execution reports. Text that function tpl renders is data.
func StageOf(problem string) Stage {
	if strings.Contains(problem, "error calling tpl") {
		return StageExecution
	}
	name := included.FindStringSubmatch(problem)
	if ofContent.MatchString(problem) || name != nil && strings.Contains(problem, "at <include "+name[1]) {
		return StageContent
	}
	return StageExecution
}

func (e *TemplateError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
}

// NoManifestsError reports that there are no objects. It is never a request to remove everything.
type NoManifestsError struct {
	Addon string
	// Templates is the number of templates, all of which render to nothing for this input; 0: the content has none, as
	// with a wrong path. A chart without templates counts as one.
	Templates int
}

func (e *NoManifestsError) Error() string {
	if e.Templates > 0 {
		return fmt.Sprintf("add-on %q renders no object for this cluster: no template in its path renders one", e.Addon)
	}
	return fmt.Sprintf("add-on %q has no manifests: its path has no *.yaml file that renders an object", e.Addon)
}

// ValuesTemplateFile is the file that errors of a valuesTemplate name.
const ValuesTemplateFile = "valuesTemplate"

// ValuesInput is all that the values of a valuesTemplate depend on.
type ValuesInput struct {
	// Addon is the name of the add-on, for messages.
	Addon string
	// Tenant is the owner of the rendering; see Input. The values don't depend on it.
	Tenant string
	// Template is a Go template for values in YAML.
	Template string
	// Data is the cluster's template data; its Variables are those set by flag.
	Data templatedata.Data
	// CAPI is the template's view of Cluster API as .CAPI; nil for clusters of other kinds.
	CAPI map[string]any
}

// ValuesKeeper renders values once, and keeps the result, as a Keeper does. ErrPending reports that the rendering
// takes longer: wake is called when it has ended, from any goroutine.
type ValuesKeeper interface {
	RenderValues(ctx context.Context, input ValuesInput, wake func()) (map[string]any, error)
}

// ValuesRenderer renders a catalogue's valuesTemplate to a layer of values, within the limits of
// package values. Errors that only an edit solves are *TemplateError and *LimitError.
type ValuesRenderer interface {
	RenderValues(ctx context.Context, input ValuesInput) (map[string]any, error)
}

// ReadAtMost reads a file of an add-on's content up to a number of bytes; whole reports whether that was all. Content
// is foreign: no file of it is read without a limit.
func ReadAtMost(content fs.FS, path string, most int64) (text string, whole bool, err error) {
	file, err := content.Open(path)
	if err != nil {
		return "", false, fmt.Errorf("opening %q: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return "", false, fmt.Errorf("reading %q: %w", path, err)
	}
	if int64(len(read)) > most {
		return string(read[:most]), false, nil
	}
	return string(read), true, nil
}

const (
	// MaxFoundBytes is the limit for all objects that function lookup finds, as JSON.
	MaxFoundBytes = 20 << 20
	// MaxFoundObject is the limit for one of them.
	MaxFoundObject = 2 << 20
	// shortestSecret is the minimum length of texts of Secrets that count; shorter ones occur in any text.
	shortestSecret = 4
)

// OtherTime is the clock at another moment. It shares no part with the present date.
var OtherTime = time.Date(1999, time.August, 7, 16, 5, 4, 0, time.UTC)

// SecretTexts are the texts of the Secrets among objects, encoded and decoded, each once.
func SecretTexts(objects []*unstructured.Unstructured) []string {
	var found []string
	for _, object := range objects {
		if object.GetKind() != "Secret" {
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			content, _, _ := unstructured.NestedMap(object.Object, field)
			for _, value := range content {
				text, _ := value.(string)
				found = append(found, text)
				if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
					found = append(found, string(decoded))
				}
			}
		}
	}
	found = slices.DeleteFunc(found, func(text string) bool { return len(strings.TrimSpace(text)) < shortestSecret })
	slices.Sort(found)
	return slices.Compact(found)
}
