package pages

import (
	"encoding/json"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
	"github.com/trellis-addons/trellis/pkg/web/form"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

const (
	resourceCatalogues = "addoncatalogues"
	// mostDepth bounds the nesting of a catalogue.
	mostDepth = 64
)

var errNoMaster = missing("no master is configured, and only a master has catalogues that people write")

// catalogueRow is a catalogue of the master.
type catalogueRow struct {
	State, Reason, Message string
	One                    *v1.AddonCatalogue
	URL                    string
}

func catalogueRowOf(one *v1.AddonCatalogue) catalogueRow {
	made := catalogueRow{One: one, URL: at("catalogues", one.Name)}
	made.State, made.Reason, made.Message = view.StateOf(one.Status.Conditions)
	return made
}

func (s *Site) catalogues(v *visit) (*page, error) {
	if s.platform.Master == nil {
		return nil, errNoMaster
	}
	var found v1.AddonCatalogueList
	object := upstream.Object{Resource: resourceCatalogues, Namespace: s.platform.Namespace}
	if err := s.platform.Master.Get(v.Context(), v.token(), object, nil, &found); err != nil {
		return nil, err
	}
	rows := make([]catalogueRow, len(found.Items))
	for i := range found.Items {
		rows[i] = catalogueRowOf(&found.Items[i])
	}
	return &page{template: "catalogues", title: "Catalogues", data: rows}, nil
}

// catalogueEdit is one catalogue of the master, with its text.
type catalogueEdit struct {
	catalogueRow
	Shown, Text string
	MayEdit     bool
	Problem     *problem
	Warnings    []string
	// Asked says that admission checked the text.
	Asked bool
	// Theirs is the text of a catalogue that changed meanwhile.
	Theirs    string
	IsChanged bool
}

// editCatalogue shows a catalogue, has admission check a changed text, and writes it.
func (s *Site) editCatalogue(v *visit) (*page, error) {
	if s.platform.Master == nil {
		return nil, errNoMaster
	}
	object := upstream.Object{Resource: resourceCatalogues, Namespace: s.platform.Namespace, Name: v.PathValue("name")}
	found := &v1.AddonCatalogue{}
	if err := s.platform.Master.Get(v.Context(), v.token(), object, nil, found); err != nil {
		return nil, err
	}
	present := catalogueText(found)
	made := &catalogueEdit{catalogueRow: catalogueRowOf(found), Shown: shownAs(found.Generation), Text: present}
	made.MayEdit = s.platform.Master.Rights(v.Context(), v.token(), object.Namespace).May("update", resourceCatalogues, found.Name) &&
		found.Labels[v1.LabelRole] != v1.RoleGenerated
	shown := &page{template: "cataloguetext", title: "Catalogue " + found.Name, data: made, status: http.StatusOK}
	if v.Method == http.MethodGet {
		return shown, nil
	}
	made.Text = v.form.Get("text")
	isSaving := v.form.Get("do") == "save"
	next, err := catalogueOf(made.Text, found)
	switch {
	case err != nil:
		made.Problem, shown.status = problem1("Not accepted", err.Error()), http.StatusUnprocessableEntity
		return shown, nil
	case v.form.Get("shown") != made.Shown && isSaving:
		made.IsChanged, made.Theirs, shown.status = true, present, http.StatusConflict
		made.Problem = changedProblem("catalogue")
		return shown, nil
	}
	write := upstream.Write{Object: object, Method: http.MethodPut, Body: next, DryRun: !isSaving}
	made.Warnings, err = s.platform.Master.Write(v.Context(), v.token(), write)
	switch {
	case upstream.Is(err, http.StatusUnauthorized):
		return nil, err
	case err != nil:
		made.Problem, shown.status = problemOf(err), http.StatusUnprocessableEntity
	case isSaving:
		return &page{to: v.URL.Path}, nil
	default:
		made.Asked = true
	}
	return shown, nil
}

// catalogueText is the spec of a catalogue in YAML.
func catalogueText(of *v1.AddonCatalogue) string {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&of.Spec)
	if err != nil {
		return ""
	}
	return form.YAML(content)
}

var errNoSpec = errors.New("the text is not a map: write the spec of the catalogue")

// catalogueOf is a catalogue with the spec of a text. The API server checks its fields.
func catalogueOf(text string, present *v1.AddonCatalogue) (map[string]any, error) {
	spec, err := strictyaml.Decode([]byte(text), strictyaml.Limits{Bytes: MostForm, Depth: mostDepth})
	if err != nil {
		return nil, err
	}
	if _, isMap := spec.(map[string]any); !isMap {
		return nil, errNoSpec
	}
	next := present.DeepCopy()
	next.APIVersion, next.Kind = v1.GroupVersion.String(), "AddonCatalogue"
	encoded, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, err
	}
	content["spec"] = spec
	return content, nil
}
