package target

import "strings"

// maximumLongName is that of a cluster's name in the status of an AddonSet, in characters.
const maximumLongName = 253

// LongName tells a cluster from all others of a seed, in texts too: its name, and outside of KKP the
// namespace before it.
func (r Ref) LongName() string {
	if r.IsKKP() {
		return r.Name
	}
	return Shortened(r.Namespace+"/"+r.Name, maximumLongName)
}

// ItemOf is NameOf undone: the item that has a name in this cluster. False: a name that was cut does
// not tell it, or none has the name.
func (r Ref) ItemOf(name string) (item string, isTold bool) {
	if r.IsKKP() {
		return name, true
	}
	item, isOwn := strings.CutPrefix(name, r.Name+".")
	return item, isOwn && item != "" && r.NameOf(item) == name
}
