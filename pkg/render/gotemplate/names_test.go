package gotemplate

import (
	"testing"

	"github.com/trellis-addons/trellis/pkg/values"
)

// TestCataloguesMayCallWhatThereIs holds that a valuesTemplate is refused for no function that rendering has, and for each that it
// has not.
func TestCataloguesMayCallWhatThereIs(t *testing.T) {
	functions := (&rendering{}).functions()
	for name := range functions {
		if !values.IsTemplateFunction(name) {
			t.Errorf("catalogues that call %q are refused, and rendering has it", name)
		}
	}
	for _, name := range []string{"env", "expandenv", "getHostByName", "lookup", "tpl", "include", markFunction} {
		if values.IsTemplateFunction(name) || functions[name] != nil {
			t.Errorf("function %q is not refused", name)
		}
	}
}
