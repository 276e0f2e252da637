package catalogue

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// Choosable are the versions that Select can give for addonRef.version wanted on some cluster, with
// nothing installed there, newest first. A deprecated one is among them, since it may be chosen where
// it is installed. A draft is among them only if it is wanted exactly, so that drafts make no new revision of a set.
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

// SourceMoves says whether the content of a version can change while the catalogue stays: it comes
// from a branch, from the newest tag in a range, or from an image without tag.
func SourceMoves(version *v1.AddonVersion) bool {
	switch source := version.Source; {
	case source == nil:
		return false
	case source.Git != nil:
		ref := source.Git.Ref
		return ref == nil || ref.Commit == "" && ref.Tag == ""
	case source.Docker != nil:
		return !namesContent(source.Docker.Image)
	}
	return false
}
