package resolution

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Origins of the layers of values, the lowest first; valuesFrom[0] and on lie below the
// installation's own. A value from a form is in spec.values, and so are those of a core item, where
// the core add-on controller puts them.
const (
	originCatalogue = "catalogue"
	originTemplate  = "valuesTemplate"
	originForm      = "form defaults"
	originOwn       = "installation"
)

// Values are those of an installation.
type Values struct {
	// Layers lie over one another, the lowest first; that of the catalogue's version is the first.
	Layers []values.Layer
	// Merged are the values in effect, and Origins says which layer set each; nil where not all
	// layers are known.
	Merged  map[string]any
	Origins values.Origins
	// Unknown tells, in sentences, which of the user's keys may be misspelt. What a chart knows by
	// itself is not known here.
	Unknown []string
}

// Layers reads what is written neither in the catalogue nor in the installation. What it gives is
// not kept.
type Layers interface {
	// FromTemplate renders a valuesTemplate.
	FromTemplate(ctx context.Context, template string) (map[string]any, error)
	// FromSource reads what an entry of valuesFrom names.
	FromSource(ctx context.Context, source v1.ValuesSource) (map[string]any, error)
}

// SeesSecrets says whether the templates of the version get the secrets of the cluster.
func (c Choice) SeesSecrets() bool {
	return c.Core && c.Version.Template != nil && c.Version.Template.ClusterSecrets
}

// Values lays the layers of values over one another, and checks them against the form. Without a
// reader of layers, as at admission, those that have to be read are left out; where there are such,
// or the core add-on controller adds values, nothing is merged and no field required. Beside an
// error of the form, what was merged is returned too.
func (c Choice) Values(ctx context.Context, installation *v1.AddonInstallation, read Layers) (Values, error) {
	if c.Version.Template == nil {
		return Values{}, nil
	}
	layers, err := c.layers(ctx, installation, read)
	if err != nil {
		return Values{}, err
	}
	found := Values{Layers: layers}
	if read != nil || !isReadLater(c.Version, installation) {
		if found.Merged, found.Origins, err = values.Merge(layers); err != nil {
			return Values{}, err
		}
	}
	own := layers[len(layers)-1].Values
	if err := values.CheckForm(c.Version.Template.FormSpec, own, found.Merged); err != nil {
		return found, err
	}
	found.Unknown = c.unknown(layers, read != nil)
	return found, nil
}

// isReadLater says whether values come from elsewhere than the catalogue and the installation as it
// is written.
func isReadLater(version *v1.AddonVersion, installation *v1.AddonInstallation) bool {
	return version.ValuesTemplate != "" || len(installation.Spec.ValuesFrom) > 0 || installation.Spec.CoreAddon
}

func (c Choice) unknown(layers []values.Layer, isRead bool) []string {
	template := c.Version.Template
	known, _, err := values.Merge(layers[:2]) // the catalogue's values, and what its valuesTemplate makes
	if err != nil || len(template.FormSpec) == 0 {
		return nil
	}
	elsewhere := template.Method == v1.MethodHelm || !isRead && c.Version.ValuesTemplate != ""
	return values.UnknownKeys(template.FormSpec, known, layers[len(layers)-1].Values, elsewhere)
}

func (c Choice) layers(ctx context.Context, installation *v1.AddonInstallation, read Layers) ([]values.Layer, error) {
	catalogue, err := decode("the catalogue's values", c.Version.Values)
	if err != nil {
		return nil, err
	}
	var made map[string]any
	if read != nil && c.Version.ValuesTemplate != "" {
		if made, err = read.FromTemplate(ctx, c.Version.ValuesTemplate); err != nil {
			return nil, err
		}
	}
	defaults, err := values.FormDefaults(c.Version.Template.FormSpec)
	if err != nil {
		return nil, err
	}
	layers := []values.Layer{
		{Origin: originCatalogue, Values: catalogue}, {Origin: originTemplate, Values: made}, {Origin: originForm, Values: defaults},
	}
	for i := 0; read != nil && i < len(installation.Spec.ValuesFrom); i++ {
		layer, err := read.FromSource(ctx, installation.Spec.ValuesFrom[i])
		if err == nil {
			err = c.checkMarks(layer)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
		}
		layers = append(layers, values.Layer{Origin: fmt.Sprintf("valuesFrom[%d]", i), Values: layer})
	}
	own, err := decode("spec.values", installation.Spec.Values)
	if err != nil {
		return nil, err
	}
	if err := c.checkMarks(own); err != nil {
		return nil, fmt.Errorf("%s: %w", values.PlaceOf(installation), err)
	}
	return append(layers, values.Layer{Origin: originOwn, Values: own}), nil
}

// checkMarks refuses template marks in a layer that is not the catalogue's, where templates see the
// secrets of the cluster: a chart that gives the layer to tpl would run what stands there.
func (c Choice) checkMarks(layer map[string]any) error {
	if !c.SeesSecrets() {
		return nil
	}
	return values.CheckMarks(layer)
}

func decode(what string, raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil {
		return map[string]any{}, nil
	}
	decoded, err := values.Decode(raw.Raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return decoded, nil
}
