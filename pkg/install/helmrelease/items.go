package helmrelease

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// NameForItem is the releaseName of an installation that Trellis creates for an item without releaseName, by the
// template of its add-on: the item's name, if the installation's own name begins with the cluster's. It is empty, so
// that releaseName stays unset, in KKP's namespaces, if the catalogue names the release, and for other methods.
func NameForItem(of target.Ref, item string, by *v1.Template) string {
	switch {
	case of.IsKKP(), by == nil, !catalogue.TraitsOf(by.Method).HasRelease, by.Helm != nil && by.Helm.ReleaseName != "":
		return ""
	case strings.Contains(item, "."): // an installation's releaseName has no dot
		return ""
	}
	return NameFor(item)
}
