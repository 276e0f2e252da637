package catalogue

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Source is a valid, parsed catalogue with a digest for each version. It is read-only.
type Source struct {
	Name string
	UID  types.UID
	// Type, Priority, Created and Name decide which catalogue wins a duplicate.
	Type     v1.CatalogueType
	Priority int32
	Created  time.Time
	Digest   string
	// Secrets are those with the credentials of its versions, sorted.
	Secrets []string

	addons []sourceAddon
	git    string
	// place is its key in Room.
	place  string
	weight Weight
}

// Bytes is its size on a seed, which is more than that of its text.
func (s *Source) Bytes() int { return s.weight.Bytes }

// Without leaves out the versions that need one of these Secrets for credentials. Their add-ons keep their reserved
// names.
func (s *Source) Without(secrets []string) *Source {
	left := *s
	left.addons = slices.Clone(s.addons)
	for i := range left.addons {
		left.addons[i].versions = slices.DeleteFunc(slices.Clone(left.addons[i].versions), func(version sourceVersion) bool {
			return slices.Contains(secrets, credentialsOf(version.version))
		})
	}
	return &left
}

// credentialsOf is the name of the Secret with a version's credentials; empty: none.
func credentialsOf(version *v1.AddonVersion) string {
	if kind := version.Source.Kind(); kind != nil {
		if credentials, _ := kind.Secrets(); credentials != nil {
			return credentials.Name
		}
	}
	return ""
}

// CredentialNames are the Secrets with the credentials of a spec's versions, valid or not.
func CredentialNames(spec *v1.AddonCatalogueSpec) []string {
	names := map[string]bool{}
	for i := range spec.Addons {
		for j := range spec.Addons[i].Versions {
			names[credentialsOf(&spec.Addons[i].Versions[j])] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// SecretNames are the Secrets that a spec's versions name, with credentials or authorities, sorted.
func SecretNames(spec *v1.AddonCatalogueSpec) []string {
	names := map[string]bool{}
	for i := range spec.Addons {
		for j := range spec.Addons[i].Versions {
			kind := spec.Addons[i].Versions[j].Source.Kind()
			if kind == nil {
				continue
			}
			credentials, authorities := kind.Secrets()
			for _, reference := range []*v1.LocalReference{credentials, authorities} {
				if reference != nil {
					names[reference.Name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func secretsOf(addons []sourceAddon) []string {
	names := map[string]bool{}
	for i := range addons {
		for _, version := range addons[i].versions {
			names[credentialsOf(version.version)] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Size counts a catalogue's add-ons and their versions.
func Size(spec *v1.AddonCatalogueSpec) (addons, versions int32) {
	for i := range spec.Addons {
		addons++
		versions += int32(len(spec.Addons[i].Versions)) // at most 128 by the schema
	}
	return addons, versions
}

type sourceAddon struct {
	addon    *v1.Addon
	versions []sourceVersion
}

type sourceVersion struct {
	version  *v1.AddonVersion
	semver   *semver.Version
	key      string
	digest   string
	size     int
	kkp, k8s *constraintRange
}

// Read checks a catalogue beyond the schema. It also checks those rules of the schema that this package relies on, as
// not every spec comes from an API server. Checks are those of other packages; admission and the distributor use the
// same. The source shares parts of the spec: don't change it. Errors: *InvalidError.
func Read(catalogue *v1.AddonCatalogue, checks ...VersionCheck) (*Source, error) {
	addons, problems := readAddons(&catalogue.Spec)
	problems = append(problems, furtherProblems(&catalogue.Spec, checks)...)
	if len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	source := &Source{
		Name: catalogue.Name, UID: catalogue.UID,
		Type: typeOf(&catalogue.Spec), Priority: catalogue.Spec.Priority, Created: catalogue.CreationTimestamp.Time,
		addons: addons, git: inGit(catalogue), Secrets: secretsOf(addons), weight: weighRead(&catalogue.Spec, addons),
	}
	source.Digest, source.place = source.digest(), source.placeIn()
	return source, nil
}

// author is as in Author.
func (s *Source) author() string { return cmp.Or(s.git, s.Name) }

// Author is the name of the catalogue that an admin wrote and that a catalogue comes from: its own, or that of the
// catalogue in git which it was generated from. A restore changes UIDs, but no names.
func Author(catalogue *v1.AddonCatalogue) string { return cmp.Or(inGit(catalogue), catalogue.Name) }

// inGit is the catalogue in git that a catalogue was generated from; empty: none.
func inGit(catalogue *v1.AddonCatalogue) string {
	if owner := metav1.GetControllerOfNoCopy(catalogue); owner != nil && catalogue.Labels[v1.LabelRole] == v1.RoleGenerated {
		return owner.Name
	}
	return ""
}

// VersionCheck returns the wrong field of a version, and how to correct it.
type VersionCheck func(version *v1.AddonVersion) (field string, err error)

func furtherProblems(spec *v1.AddonCatalogueSpec, checks []VersionCheck) []Problem {
	var problems []Problem
	for i := range spec.Addons {
		found := addonProblems{addon: string(spec.Addons[i].Name)}
		for j := range spec.Addons[i].Versions {
			version := &spec.Addons[i].Versions[j]
			for _, check := range checks {
				if field, err := check(version); err != nil {
					found.add(version.Version, field, "%v", err)
				}
			}
		}
		problems = append(problems, found.problems...)
	}
	return problems
}

// digest covers versions by their own digests, to encode them only once.
func (s *Source) digest() string {
	parts := []any{s.Type, s.Priority}
	for _, addon := range s.addons {
		about := *addon.addon
		about.Versions = nil
		digests := make([]string, 0, len(addon.versions))
		for _, version := range addon.versions {
			digests = append(digests, version.digest)
		}
		parts = append(parts, about, digests)
	}
	encoded, err := json.Marshal(parts)
	if err != nil { // texts and numbers always encode
		return ""
	}
	return digestOf(encoded)
}

// typeOf is a spec's type, Custom by default.
func typeOf(spec *v1.AddonCatalogueSpec) v1.CatalogueType {
	if spec.Type == v1.CatalogueCore {
		return v1.CatalogueCore
	}
	return v1.CatalogueCustom
}

func readAddons(spec *v1.AddonCatalogueSpec) ([]sourceAddon, []Problem) {
	addons := make([]sourceAddon, 0, len(spec.Addons))
	var problems []Problem
	seen := map[v1.AddonName]bool{}
	for i := range spec.Addons {
		addon := &spec.Addons[i]
		found := addonProblems{addon: string(addon.Name), kind: typeOf(spec)}
		if seen[addon.Name] {
			found.add("", "name", "the add-on is listed twice: put all its versions into one entry")
		}
		seen[addon.Name] = true
		found.checkAddon(addon)
		about := *addon
		about.SupportedBy = cmp.Or(about.SupportedBy, spec.SupportedBy)
		addons = append(addons, sourceAddon{addon: &about, versions: found.readVersions(addon)})
		problems = append(problems, found.problems...)
	}
	return addons, problems
}

func (p *addonProblems) readVersions(addon *v1.Addon) []sourceVersion {
	versions := make([]sourceVersion, 0, len(addon.Versions))
	spellings := map[string]string{}
	for i := range addon.Versions {
		version := p.readVersion(&addon.Versions[i])
		if first, ok := spellings[version.key]; ok {
			p.add(version.version.Version, "version",
				"%q is the same version: remove one of them", first)
		}
		spellings[version.key] = version.version.Version
		versions = append(versions, version)
	}
	return versions
}

func (p *addonProblems) readVersion(version *v1.AddonVersion) sourceVersion {
	read := sourceVersion{version: version, semver: addonVersion(version.Version)}
	read.key = key(version.Version, read.semver)
	read.kkp, read.k8s = readConstraints(version)
	digest, size, err := measure(version)
	if err != nil {
		p.add(version.Version, "values", "values and form defaults must be JSON")
	}
	read.digest, read.size = digest, size
	p.checkVersion(&read)
	return read
}
