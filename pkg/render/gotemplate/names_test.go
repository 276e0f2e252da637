package gotemplate

import (
	"testing"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/values"
)

// mayCall reports whether a valuesTemplate may call a function of that name.
func mayCall(name string) bool {
	_, err := values.CheckTemplate(&kubermaticv1.AddonVersion{ValuesTemplate: "{{ " + name + " }}"})
	return err == nil
}

// TestCataloguesMayCallWhatThereIs checks that a valuesTemplate is refused for each function that rendering does not
// have, and for no other.
func TestCataloguesMayCallWhatThereIs(t *testing.T) {
	functions := (&rendering{}).functions()
	for name := range functions {
		if !mayCall(name) {
			t.Errorf("catalogues that call %q are refused, and rendering has it", name)
		}
	}
	for _, name := range []string{"env", "expandenv", "getHostByName", "lookup", "tpl", "include", markFunction} {
		if mayCall(name) || functions[name] != nil {
			t.Errorf("function %q is not refused", name)
		}
	}
}
