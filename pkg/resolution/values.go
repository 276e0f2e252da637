package resolution

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Origins of the layers of values, the lowest first; valuesFrom[0] and on are below the
// installation's own, which include those of forms and of core items.
const (
	originCatalogue   = "catalogue"
	originTemplate    = "valuesTemplate"
	originForm        = "form defaults"
	originOwnTemplate = "installation valuesTemplate"
	originOwn         = "installation"
)

// Values are those of an installation.
type Values struct {
	// Layers, the lowest first, begin with that of the catalogue's version.
	Layers []values.Layer
	// Merged are the values in effect, Origins their layers; nil if not all layers are known.
	Merged  map[string]any
	Origins values.Origins
	// Granted is the keyed digest of the platform's values among them; "" for none.
	Granted string
	// Unknown has a sentence for each user key that may be misspelt; a chart may know it.
	Unknown []string
}

// Layers reads values outside of catalogue and installation. They are not kept.
type Layers interface {
	// FromTemplate renders the catalogue's valuesTemplate, FromOwnTemplate the installation's, which
	// tenants write.
	FromTemplate(ctx context.Context, template string) (map[string]any, error)
	FromOwnTemplate(ctx context.Context, template string) (map[string]any, error)
	FromSource(ctx context.Context, source v1.ValuesSource) (map[string]any, error)
	// FromPlatform are the platform's values that a set grants; nil for none. They are checked for
	// marks by who reads them: an error about a layer names places in it, and tenants read that.
	FromPlatform() map[string]any
}

// SeesSecrets says whether the templates of the version get the secrets of the cluster.
func (c Choice) SeesSecrets() bool {
	return c.Core && c.Version.Template != nil && c.Version.Template.ClusterSecrets
}

// Values merges the layers of values and checks them against the form. Admission, without a reader,
// leaves out those to be read; then nothing is merged and no field required, nor where the core
// add-on controller adds values. An error of the form comes with the merged values.
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

// isReadLater says whether values come from outside of catalogue and installation.
func isReadLater(version *v1.AddonVersion, installation *v1.AddonInstallation) bool {
	spec := &installation.Spec
	isGranted := installation.Annotations[v1.AnnotationPlatformValues] != ""
	return isGranted || version.ValuesTemplate != "" || spec.ValuesTemplate != "" || len(spec.ValuesFrom) > 0 || spec.CoreAddon
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
	layers, err := c.catalogueLayers(ctx, read)
	if err != nil {
		return nil, err
	}
	var platform map[string]any
	if read != nil {
		platform = read.FromPlatform()
	}
	hasSecrets := c.SeesSecrets() || platform != nil
	// What the catalogue's template made may hold text of users, such as annotations of the Cluster.
	if err := checkMarks(platform != nil, layers[1].Values); err != nil {
		return nil, fmt.Errorf("the catalogue's valuesTemplate: %w", err)
	}
	if template := installation.Spec.ValuesTemplate; template != "" {
		layer, err := c.ownTemplate(ctx, template, read)
		if err == nil {
			err = checkMarks(hasSecrets, layer)
		}
		if err != nil {
			return nil, &OwnTemplateError{err}
		}
		layers = append(layers, values.Layer{Origin: originOwnTemplate, Values: layer})
	}
	if platform != nil {
		layers = append(layers, values.Layer{Origin: values.OriginPlatform, Values: platform})
	}
	for i := 0; read != nil && i < len(installation.Spec.ValuesFrom); i++ {
		layer, err := read.FromSource(ctx, installation.Spec.ValuesFrom[i])
		if err == nil {
			err = checkMarks(hasSecrets, layer)
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
	if err := checkMarks(hasSecrets, own); err != nil {
		return nil, fmt.Errorf("%s: %w", values.PlaceOf(installation), err)
	}
	return append(layers, values.Layer{Origin: originOwn, Values: own}), nil
}

// catalogueLayers are the version's own values, what its template makes, and the form's defaults.
func (c Choice) catalogueLayers(ctx context.Context, read Layers) ([]values.Layer, error) {
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
	return []values.Layer{
		{Origin: originCatalogue, Values: catalogue}, {Origin: originTemplate, Values: made}, {Origin: originForm, Values: defaults},
	}, nil
}

// OwnTemplateError says that the installation's valuesTemplate gives no values.
type OwnTemplateError struct{ err error }

func (e *OwnTemplateError) Error() string { return "spec.valuesTemplate: " + e.err.Error() }

// Unwrap gives what is wrong with it.
func (e *OwnTemplateError) Unwrap() error { return e.err }

// ownTemplate is what the installation's valuesTemplate makes; admission has it parsed only. Beside
// the cluster's secrets it is not rendered, and has no marks: what is left of it is YAML.
func (c Choice) ownTemplate(ctx context.Context, template string, read Layers) (map[string]any, error) {
	switch {
	case c.SeesSecrets():
		if err := values.CheckMarks(map[string]any{"valuesTemplate": template}); err != nil {
			return nil, err
		}
		return values.Decode([]byte(template))
	case read == nil:
		return nil, values.ParseTemplate(template)
	}
	return read.FromOwnTemplate(ctx, template)
}

// checkMarks refuses template marks outside of the catalogue if templates see secrets of the cluster
// or of the platform: a chart could execute them with tpl.
func checkMarks(hasSecrets bool, layer map[string]any) error {
	if !hasSecrets {
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
