package helmrelease

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

// NameForItem is the releaseName of an installation that Trellis makes for an item that names none, by
// the template of its add-on: the item's name, where the installation's own has the cluster before it.
// Empty: it stays absent. So it is in KKP's namespaces, where the catalogue names the release, and for
// other methods.
func NameForItem(of target.Ref, item string, by *v1.Template) string {
	switch {
	case of.IsKKP(), by == nil, by.Method != v1.MethodHelm, by.Helm != nil && by.Helm.ReleaseName != "":
		return ""
	case strings.Contains(item, "."): // a release's name has none, in installations
		return ""
	}
	return NameFor(item)
}
