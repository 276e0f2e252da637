package webhook

import (
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

// unknownKeys warns of keys that may be misspelt. Values of a chart or of a valuesTemplate are not known here, so beside those only
// what looks like a field of the form is told.
func unknownKeys(object *v1.AddonInstallation, version *v1.AddonVersion, given map[string]any) []string {
	if version.Template == nil {
		return nil
	}
	known, err := values.Decode(rawOf(version.Values))
	if err != nil {
		return nil // the catalogue's trouble, told there
	}
	warnings := values.UnknownKeys(version.Template.FormSpec, known, given,
		version.Template.Method == v1.MethodHelm || version.ValuesTemplate != "")
	for i, warning := range warnings {
		warnings[i] = values.PlaceOf(object) + ": " + warning
	}
	return warnings
}
