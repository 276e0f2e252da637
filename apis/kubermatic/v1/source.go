package v1

import "strings"

// SourceKinds are the names of the kinds of source, for messages: one for each field of Source.
const SourceKinds = "git, docker and helm"

// SourceKind is the common interface of the kinds of source.
//
// +kubebuilder:object:generate=false
type SourceKind interface {
	// Secrets returns the references to the Secret with the source's credentials, and to the one with the certificate authorities of its
	// server. Each is nil if the source names none.
	Secrets() (credentials, authorities *LocalReference)
	// Moves says whether the content of a source can change while its fields stay.
	Moves() bool
	// Content returns what the source has, as one of the constants, and its name for users. A tag or version is a part of it.
	Content() (kind, name string)
}

// What sources have.
const (
	ContentImage      = "Image"
	ContentChart      = "Chart"
	ContentRepository = "Repository"
)

// Kind returns the one field of a source that is set; nil if none or several are set.
func (s *Source) Kind() SourceKind {
	if s == nil {
		return nil
	}
	var kinds []SourceKind
	if s.Git != nil {
		kinds = append(kinds, s.Git)
	}
	if s.Docker != nil {
		kinds = append(kinds, s.Docker)
	}
	if s.Helm != nil {
		kinds = append(kinds, s.Helm)
	}
	if len(kinds) != 1 {
		return nil
	}
	return kinds[0]
}

// Secrets implements SourceKind.
func (s *GitSource) Secrets() (credentials, authorities *LocalReference) {
	return s.SecretRef, s.CASecretRef
}

// Secrets implements SourceKind.
func (s *ImageSource) Secrets() (credentials, authorities *LocalReference) {
	return s.SecretRef, s.CASecretRef
}

// Secrets implements SourceKind.
func (s *HelmSource) Secrets() (credentials, authorities *LocalReference) {
	return s.SecretRef, s.CASecretRef
}

// Moves implements SourceKind: the content comes from a branch, or is the newest tag in a range.
func (s *GitSource) Moves() bool { return s.Ref == nil || s.Ref.Commit == "" && s.Ref.Tag == "" }

// Moves implements SourceKind: the image has neither tag nor digest. There is no default tag, because a change
// of its image would not be noticed. A colon before the last slash belongs to the registry's port.
func (s *ImageSource) Moves() bool {
	last := s.Image[strings.LastIndexByte(s.Image, '/')+1:]
	_, tag, _ := strings.Cut(last, ":")
	return tag == ""
}

// Moves implements SourceKind: charts are named exactly.
func (s *HelmSource) Moves() bool { return false }

// Content implements SourceKind.
func (s *GitSource) Content() (kind, name string) { return ContentRepository, string(s.Remote) }

// Content implements SourceKind.
func (s *ImageSource) Content() (kind, name string) { return ContentImage, s.Image }

// Content implements SourceKind.
func (s *HelmSource) Content() (kind, name string) {
	return ContentChart, s.URL + " " + s.Chart + " " + s.Version
}

// Source returns the repository of a catalogue as a source.
func (g *CatalogueGit) Source() *GitSource {
	return &GitSource{Remote: g.Remote, Ref: g.Ref, Path: g.Path, SecretRef: g.SecretRef, CASecretRef: g.CASecretRef}
}
