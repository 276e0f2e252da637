package resolution

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Origins of the layers of values, the lowest first; valuesFrom[0] and higher are below the installation's own, which
// include those of forms and of core items.
const (
	originCatalogue   = "catalogue"
	originTemplate    = "valuesTemplate"
	originObjects     = "catalogue valuesFrom"
	originForm        = "form defaults"
	originOwnTemplate = "installation valuesTemplate"
	originOwn         = "installation"
)

// Values are those of an installation.
type Values struct {
	// Layers, the lowest first, begin with that of the catalogue's version.
	Layers []values.Layer
	// Merged are the effective values, Origins their layers; nil if not all layers are known.
	Merged  map[string]any
	Origins values.Origins
	// Registries maps registries to mirrors that objects with values name, in addition to the seed's.
	Registries map[string]string
	// Granted is the keyed digest of the platform's values in them; "" for none.
	Granted string
	// Unknown has a sentence for each user key that may be misspelt; a chart may have it.
	Unknown []string
}

// Layers reads values outside of catalogue and installation. They are not cached.
type Layers interface {
	// FromTemplate renders the catalogue's valuesTemplate, FromOwnTemplate the installation's, which
	// tenants write.
	FromTemplate(ctx context.Context, template string) (map[string]any, error)
	FromOwnTemplate(ctx context.Context, template string) (map[string]any, error)
	FromSource(ctx context.Context, source v1.ValuesSource) (Read, error)
	// FromObject reads an object that the catalogue's version names.
	FromObject(ctx context.Context, ref *v1.ObjectReference) (Read, error)
	// FromPlatform are the platform's values that a set grants; nil for none. Their reader checks them for marks: an
	// error about a layer names places in it, and tenants read that.
	FromPlatform() map[string]any
}

// SeesSecrets reports whether the templates of the version get the secrets of the cluster.
func (c Choice) SeesSecrets() bool {
	return c.Core && c.Version.Template != nil && c.Version.Template.ClusterSecrets
}

// Values merges the layers of values and checks them against the form. Admission, without a reader, leaves out those
// to be read. Then, and also if the core add-on controller adds values, nothing is merged and no field is required.
// An error of the form comes with the merged values.
func (c Choice) Values(ctx context.Context, installation *v1.AddonInstallation, read Layers) (Values, error) {
	if c.Version.Template == nil {
		return Values{}, nil
	}
	layers, registries, err := c.layers(ctx, installation, read)
	if err != nil {
		return Values{}, err
	}
	found := Values{Layers: layers, Registries: registries}
	if read != nil || !isReadLater(c.Version, installation) {
		if found.Merged, found.Origins, err = values.Merge(layers); err != nil {
			return Values{}, err
		}
	}
	if err := values.CheckForm(c.Version.Template.FormSpec, found.of(originOwn), found.Merged); err != nil {
		return found, err
	}
	found.Unknown = c.unknown(found, read != nil)
	return found, nil
}

// of is the layer with an origin; nil for none.
func (v Values) of(origin string) map[string]any {
	for _, layer := range v.Layers {
		if layer.Origin == origin {
			return layer.Values
		}
	}
	return nil
}

// Catalogue are the values that the catalogue gives the version.
func (v Values) Catalogue() map[string]any { return v.of(originCatalogue) }

// isReadLater reports whether values come from outside of catalogue and installation.
func isReadLater(version *v1.AddonVersion, installation *v1.AddonInstallation) bool {
	spec := &installation.Spec
	isGranted := installation.Annotations[v1.AnnotationPlatformValues] != ""
	return isGranted || version.ValuesTemplate != "" || len(version.ValuesFrom) > 0 || spec.ValuesTemplate != "" ||
		len(spec.ValuesFrom) > 0 || spec.CoreAddon
}

func (c Choice) unknown(found Values, isRead bool) []string {
	template := c.Version.Template
	known, _, err := values.Merge([]values.Layer{{Values: found.Catalogue()}, {Values: found.of(originTemplate)}})
	if err != nil || len(template.FormSpec) == 0 {
		return nil
	}
	elsewhere := catalogue.TraitsOf(template.Method).IsChart || len(c.Version.ValuesFrom) > 0 || !isRead && c.Version.ValuesTemplate != ""
	return values.UnknownKeys(template.FormSpec, known, found.of(originOwn), elsewhere)
}

// layers reads all layers, and the registries with mirrors that objects name.
func (c Choice) layers(
	ctx context.Context, installation *v1.AddonInstallation, read Layers,
) (layers []values.Layer, registries map[string]string, err error) {
	given, made, defaults, err := c.catalogueLayers(ctx, read)
	if err != nil {
		return nil, nil, err
	}
	layers = []values.Layer{{Origin: originCatalogue, Values: given}, {Origin: originTemplate, Values: made}}
	var platform map[string]any
	if read != nil {
		platform = read.FromPlatform()
	}
	hasSecrets := c.SeesSecrets() || platform != nil
	from := sources{layers: layers, hasSecrets: hasSecrets}
	if read != nil {
		for i, one := range c.Version.ValuesFrom {
			found, err := read.FromObject(ctx, one.ObjectRef)
			if err := from.add(fmt.Sprintf("%s[%d]", originObjects, i), found, err); err != nil {
				return nil, nil, fmt.Errorf("the catalogue's valuesFrom[%d]: %w", i, err)
			}
		}
	}
	from.layers = append(from.layers, values.Layer{Origin: originForm, Values: defaults})
	// The result of the catalogue's template may have text of users, such as annotations of the Cluster.
	if err := checkMarks(platform != nil, made); err != nil {
		return nil, nil, fmt.Errorf("the catalogue's valuesTemplate: %w", err)
	}
	if template := installation.Spec.ValuesTemplate; template != "" {
		layer, err := c.ownTemplate(ctx, template, read)
		if err == nil {
			err = checkMarks(hasSecrets, layer)
		}
		if err != nil {
			return nil, nil, &OwnTemplateError{err}
		}
		from.layers = append(from.layers, values.Layer{Origin: originOwnTemplate, Values: layer})
	}
	if platform != nil {
		from.layers = append(from.layers, values.Layer{Origin: values.OriginPlatform, Values: platform})
	}
	if err := from.own(ctx, installation, read); err != nil {
		return nil, nil, err
	}
	return from.layers, from.registries, nil
}

// sources are the layers so far, with the registries that objects name.
type sources struct {
	layers     []values.Layer
	registries map[string]string
	hasSecrets bool
}

// own appends what the installation names and has.
func (s *sources) own(ctx context.Context, installation *v1.AddonInstallation, read Layers) error {
	if read != nil {
		for i, one := range installation.Spec.ValuesFrom {
			found, err := read.FromSource(ctx, one)
			if err := s.add(fmt.Sprintf("valuesFrom[%d]", i), found, err); err != nil {
				return fmt.Errorf("spec.valuesFrom[%d]: %w", i, err)
			}
		}
	}
	own, err := decode("spec.values", installation.Spec.Values)
	if err != nil {
		return err
	}
	if err := checkMarks(s.hasSecrets, own); err != nil {
		return fmt.Errorf("%s: %w", values.PlaceOf(installation), err)
	}
	s.layers = append(s.layers, values.Layer{Origin: originOwn, Values: own})
	return nil
}

// add appends the values of an object, if it could be read and has no template marks that could show secrets.
func (s *sources) add(origin string, found Read, err error) error {
	if err == nil {
		err = checkMarks(s.hasSecrets, found.Values)
	}
	if err != nil {
		return err
	}
	s.registries = with(s.registries, found.Registries)
	s.layers = append(s.layers, values.Layer{Origin: origin, Values: found.Values})
	return nil
}

// with are registries with more, which override equal ones; nil for none.
func with(registries, more map[string]string) map[string]string {
	if registries == nil {
		return more
	}
	all := maps.Clone(registries)
	maps.Copy(all, more)
	return all
}

// catalogueLayers are the version's own values, those of its template, and the form's defaults.
func (c Choice) catalogueLayers(ctx context.Context, read Layers) (given, made, defaults map[string]any, err error) {
	if given, err = decode("the catalogue's values", c.Version.Values); err != nil {
		return nil, nil, nil, err
	}
	if read != nil && c.Version.ValuesTemplate != "" {
		if made, err = read.FromTemplate(ctx, c.Version.ValuesTemplate); err != nil {
			return nil, nil, nil, err
		}
	}
	defaults, err = values.FormDefaults(c.Version.Template.FormSpec)
	return given, made, defaults, err
}

// OwnTemplateError reports that the installation's valuesTemplate gives no values.
type OwnTemplateError struct{ err error }

func (e *OwnTemplateError) Error() string { return "spec.valuesTemplate: " + e.err.Error() }

// Unwrap is the problem of the template.
func (e *OwnTemplateError) Unwrap() error { return e.err }

// ownTemplate are the values of the installation's valuesTemplate; admission only parses it. With the cluster's
// secrets it is not rendered, and has no marks: the rest of it is YAML.
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
