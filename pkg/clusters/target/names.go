package target

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// maximumLongName is the maximal length of a cluster's name in the status of an AddonSet, and of an object's name, in characters.
const maximumLongName = 253

// LongName distinguishes a cluster from all others of a seed, also in texts: its name, and outside of KKP the
// namespace before it.
func (r Ref) LongName() string {
	if r.IsKKP() {
		return r.Name
	}
	return Shortened(r.Namespace+"/"+r.Name, maximumLongName)
}

// ItemOf is the reverse of NameOf: the item that has a name in this cluster. False: a shortened name does not show
// the item, or none has the name.
func (r Ref) ItemOf(name string) (item string, isItem bool) {
	if r.IsKKP() {
		return name, true
	}
	item, isOwn := strings.CutPrefix(name, r.Name+".")
	return item, isOwn && item != "" && r.NameOf(item) == name
}

// AvailableName is the name of the AddonCatalogue, in the cluster's namespace, with what the cluster is offered.
func (r Ref) AvailableName() string {
	if r.Name == "" || r.IsKKP() {
		return v1.AvailableCatalogue
	}
	return Shortened(v1.AvailableCatalogue+"-"+r.Name, maximumLongName)
}
