package values

import (
	"errors"
	"fmt"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// CheckVersion checks what a catalogue says about the values of one version: the values themselves, and a form whose fields
// lead somewhere and whose defaults are what they ought to be. It is for catalogue.Read, which calls it for admission and
// for the merge alike. Field is the path of what is wrong below the version; a nil error means that nothing is.
func CheckVersion(version *kubermaticv1.AddonVersion) (field string, err error) {
	if version.Values != nil {
		if _, err := Decode(version.Values.Raw); err != nil {
			return "values", fmt.Errorf("%w: mend or shorten them", err)
		}
	}
	if version.Template == nil {
		return "", nil
	}
	if err := CheckFormSpec(version.Template.FormSpec); err != nil {
		if wrong, ok := errors.AsType[*FieldError](err); ok {
			return fmt.Sprintf("template.formSpec[%s]", wrong.Field), errors.New(wrong.Problem)
		}
		return "template.formSpec", err
	}
	return "", nil
}
