// Package sbom lists what is in a program, as SPDX 2.3 in JSON: equal programs have equal lists.
//
// The list comes from what the linker wrote into the program itself, so it is complete: it has what
// `go version -m` has, and Go's library. ADR 135 compares it with cyclonedx-gomod.
package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/trellis-addons/trellis/hack/images/checkout"
)

// MediaType is that of the list.
const MediaType = "application/spdx+json"

// Subject is what is listed.
type Subject struct {
	// Name of the program, and the platform that it is for, as linux/amd64.
	Name, Platform string
	// Binary is the program, and Build what the linker wrote into it.
	Binary []byte
	Build  *debug.BuildInfo
	// Extra is what the image has beside the program.
	Extra []Component
	Stamp checkout.Stamp
}

// Component is a Go module of which an image has something.
type Component struct {
	Module, Version, Why string
}

type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Describes     []string       `json:"documentDescribes"`
	Packages      []entry        `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type entry struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo,omitempty"`
	Supplier   string      `json:"supplier"`
	Location   string      `json:"downloadLocation"`
	Analyzed   bool        `json:"filesAnalyzed"`
	Purpose    string      `json:"primaryPackagePurpose,omitempty"`
	Source     string      `json:"sourceInfo,omitempty"`
	Concluded  string      `json:"licenseConcluded"`
	Declared   string      `json:"licenseDeclared"`
	Copyright  string      `json:"copyrightText"`
	Checksums  []checksum  `json:"checksums,omitempty"`
	References []reference `json:"externalRefs,omitempty"`
	relation   string
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const (
	documentID  = "SPDXRef-DOCUMENT"
	noAssertion = "NOASSERTION"
)

// Document is the list of a subject.
func Document(subject Subject) ([]byte, error) {
	sum := sha256.Sum256(subject.Binary)
	program := programEntry(subject, hex.EncodeToString(sum[:]))
	made := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: documentID,
		Name:      fmt.Sprintf("%s-%s-%s", subject.Name, subject.Stamp.Version, strings.ReplaceAll(subject.Platform, "/", "-")),
		Namespace: fmt.Sprintf("https://%s/spdx/%s/%s", subject.Build.Main.Path, subject.Name, hex.EncodeToString(sum[:])),
		Creation:  creation{subject.Stamp.RFC3339(), []string{"Tool: trellis-images-" + subject.Stamp.Version}},
		Describes: []string{program.ID}, Packages: []entry{program},
		Relationships: []relationship{{documentID, "DESCRIBES", program.ID}},
	}
	for _, other := range append(dependencies(subject.Build, subject.Stamp.Version), extraEntries(subject.Extra)...) {
		made.Packages = append(made.Packages, other)
		made.Relationships = append(made.Relationships, relationship{program.ID, other.relation, other.ID})
	}
	content, err := json.MarshalIndent(made, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing the list of %s: %w", subject.Name, err)
	}
	return append(content, '\n'), nil
}

// programEntry is the program, which is the main module's.
func programEntry(subject Subject, sum string) entry {
	made := moduleEntry(subject.Build.Main.Path, subject.Stamp.Version)
	made.ID, made.Purpose = "SPDXRef-Program", "APPLICATION"
	made.Source = fmt.Sprintf("program %s for %s, of commit %s", subject.Build.Path, subject.Platform, subject.Stamp.Commit)
	made.Checksums = []checksum{{"SHA256", sum}}
	return made
}

// dependencies are the modules in the program, and Go's library.
func dependencies(build *debug.BuildInfo, version string) []entry {
	library := moduleEntry("stdlib", strings.TrimPrefix(build.GoVersion, "go"))
	library.References[0].Locator = "pkg:golang/stdlib@" + library.Version
	library.Source, library.relation = "Go's standard library", "DEPENDS_ON"
	found := []entry{library}
	for _, module := range build.Deps {
		found = append(found, dependency(module, version))
	}
	return found
}

// dependency is the entry of a module, or of the one that replaces it. A folder that replaces it has no
// version of its own: it is a part of this checkout, and has the checkout's version.
func dependency(module *debug.Module, version string) entry {
	made := moduleEntry(module.Path, module.Version)
	made.Source = sumOf(module)
	if other := module.Replace; other != nil {
		if strings.HasPrefix(other.Path, ".") || strings.HasPrefix(other.Path, "/") {
			made = moduleEntry(module.Path, version)
			made.Source = "a folder of the program's own checkout"
		} else {
			made = moduleEntry(other.Path, other.Version)
			made.Source = strings.TrimSpace(fmt.Sprintf("in place of %s %s %s", module.Path, module.Version, sumOf(other)))
		}
	}
	made.relation = "DEPENDS_ON"
	return made
}

func sumOf(module *debug.Module) string {
	if module.Sum == "" {
		return ""
	}
	return "go.sum " + module.Sum
}

func extraEntries(components []Component) []entry {
	var found []entry
	for _, component := range components {
		made := moduleEntry(component.Module, component.Version)
		made.ID = identifier("Data", component.Module, component.Version)
		made.Source, made.relation = component.Why, "CONTAINS"
		found = append(found, made)
	}
	return found
}

// notID matches a byte that an SPDX identifier can't have, and the hyphen, which marks such a byte.
var notID = regexp.MustCompile(`[^A-Za-z0-9.]`)

// identifier names a package of a list. A byte that it can't have is a hyphen and two hexadecimal
// digits: modules whose paths differ in such bytes only are two packages all the same.
func identifier(kind, path, version string) string {
	return "SPDXRef-" + kind + "-" + notID.ReplaceAllStringFunc(path+"@"+version, func(found string) string {
		return "-" + hex.EncodeToString([]byte(found))
	})
}

func moduleEntry(path, version string) entry {
	return entry{
		ID: identifier("Module", path, version), Name: path, Version: version,
		Supplier: noAssertion, Location: noAssertion, Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion,
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")}},
	}
}
