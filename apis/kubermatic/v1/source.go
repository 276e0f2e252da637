package v1

// SourceKinds are the names of the kinds of source, for people: one for each field of Source.
const SourceKinds = "git, docker and helm"

// SourceKind is what the kinds of source have in common.
//
// +kubebuilder:object:generate=false
type SourceKind interface {
	// Secrets are the references to the Secret with the credentials of a source, and to the one with
	// the certificate authorities of its server. Each is nil where the source names none.
	Secrets() (credentials, authorities *LocalReference)
}

// Kind is the one field of a source that is set; nil where none is, or more than one.
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

// Source is the repository of a catalogue as the source that it is.
func (g *CatalogueGit) Source() *GitSource {
	return &GitSource{Remote: g.Remote, Ref: g.Ref, Path: g.Path, SecretRef: g.SecretRef, CASecretRef: g.CASecretRef}
}
