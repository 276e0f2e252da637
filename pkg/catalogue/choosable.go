package catalogue

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// Choosable are the versions that Select can return for addonRef.version wanted on some cluster where the add-on is
// not installed, newest first. It includes deprecated versions, which may be chosen where they are installed. It
// includes a draft only if wanted names exactly that version, so that drafts create no revision of a set.
func (e *Entry) Choosable(wanted string) []*v1.AddonVersion {
	if wanted != "" && !IsRange(wanted) {
		if found := e.find(wanted); found != nil {
			return []*v1.AddonVersion{found.version}
		}
		return nil
	}
	s := selector{entry: e, wanted: wanted}
	within, refusal := s.within()
	if refusal != nil {
		return nil
	}
	var found []*v1.AddonVersion
	for i := range e.versions {
		if within(&e.versions[i]) && !e.versions[i].version.Draft {
			found = append(found, e.versions[i].version)
		}
	}
	return found
}

// SourceMoves reports whether the content of a version can change while the catalogue stays the same.
func SourceMoves(version *v1.AddonVersion) bool {
	kind := version.Source.Kind()
	return kind != nil && kind.Moves()
}
