package catalogue

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// Problem is one error in a catalogue's spec.
type Problem struct {
	// Addon and Version are its place; Version is empty for the whole add-on.
	Addon, Version string
	// Field is the path below the version, or below the add-on.
	Field string
	// Message is the error, and how to correct it.
	Message string
}

func (p Problem) String() string {
	place := fmt.Sprintf("addon %q", p.Addon)
	if p.Version != "" {
		place += fmt.Sprintf(" version %q", p.Version)
	}
	return fmt.Sprintf("%s: %s: %s", place, p.Field, p.Message)
}

// InvalidError reports why a spec is refused. It has at least one problem.
type InvalidError struct{ Problems []Problem }

const problemsShown = 5

func (e *InvalidError) Error() string {
	var shown []string
	for i, problem := range e.Problems {
		if i == problemsShown {
			shown = append(shown, fmt.Sprintf("and %d more", len(e.Problems)-problemsShown))
			break
		}
		shown = append(shown, problem.String())
	}
	return strings.Join(shown, "; ")
}

// VersionLimit is the maximum number of versions of an add-on, in one catalogue and in the merged object.
const VersionLimit = 128

var (
	namePattern      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	supporterPattern = regexp.MustCompile(`^[^\pC\p{Zl}\p{Zp}]{1,128}$`)
	versionPattern   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._+-]{0,126}[A-Za-z0-9])?$`)
)

var slots = []v1.Slot{v1.SlotCNI, v1.SlotCPI, v1.SlotCSI, v1.SlotSystem}

// slotShown is the maximum length of a wrong slot or namespace in a message, in bytes.
const slotShown = 32

type addonProblems struct {
	addon    string
	kind     v1.CatalogueType
	problems []Problem
}

func (p *addonProblems) add(version, field, message string, arguments ...any) {
	p.problems = append(p.problems, Problem{p.addon, version, field, fmt.Sprintf(message, arguments...)})
}

func (p *addonProblems) checkAddon(addon *v1.Addon) {
	if !namePattern.MatchString(p.addon) {
		p.add("", "name", "it is not a DNS label: use up to 63 lower-case letters, digits and dashes")
	}
	if addon.Slot != "" && !slices.Contains(slots, addon.Slot) {
		p.add("", "slot", "%q is not a slot: use CNI, CPI, CSI or System, or remove the field", text.Cut(string(addon.Slot), slotShown))
	}
	switch namespace := addon.TargetNamespace; {
	case namespace == "" && addon.CreateNamespace:
		p.add("", "createNamespace", "it needs targetNamespace: set targetNamespace, or remove createNamespace")
	case namespace != "" && !namePattern.MatchString(namespace):
		p.add("", "targetNamespace", "%q is not a DNS label: use up to 63 lower-case letters, digits and dashes", text.Cut(namespace, slotShown))
	}
	if addon.SupportedBy != "" {
		if err := CheckSupportedBy(addon.SupportedBy); err != nil {
			p.add("", "supportedBy", "%v", err)
		}
	}
	if len(addon.Versions) == 0 {
		p.add("", "versions", "there are none: list at least one")
	}
	if len(addon.Versions) > VersionLimit {
		p.add("", "versions", "there are %d, more than %d: remove old ones", len(addon.Versions), VersionLimit)
	}
}

// CheckSupportedBy refuses a text that the schema refuses.
func CheckSupportedBy(by v1.SupportedBy) error {
	if supporterPattern.MatchString(string(by)) {
		return nil
	}
	return errors.New("use one line of up to 128 characters, without control characters")
}

func (p *addonProblems) checkVersion(version *sourceVersion) {
	spec := version.version
	name := spec.Version
	if !versionPattern.MatchString(name) {
		p.add(name, "version", "use up to 128 letters, digits, dots, dashes, underscores and plus signs")
	} else if IsRange(name) {
		p.add(name, "version", "it reads as a range, so no user could choose it: give it a name without an x part")
	}
	for _, constraint := range []struct {
		field string
		read  *constraintRange
	}{{"constraints.kkpVersion", version.kkp}, {"constraints.k8sVersion", version.k8s}} {
		if constraint.read != nil && constraint.read.err != nil {
			p.add(name, constraint.field, "%v", constraint.read.err)
		}
	}
	if source := spec.Source; source != nil && source.Git != nil {
		if err := CheckGitRef(source.Git.Ref); err != nil {
			p.add(name, "source.git.ref.semver", "%v", err)
		}
	}
	p.checkTemplate(spec)
}

func (p *addonProblems) checkTemplate(version *v1.AddonVersion) {
	name := version.Version
	if (version.Template == nil) != (version.Source == nil) {
		p.add(name, "source", "set both template and source, next to each other: source is not a field of template")
	}
	if version.Source != nil && version.Source.Kind() == nil {
		p.add(name, "source", "set exactly one of "+v1.SourceKinds)
	}
	if version.Source != nil && version.Source.Docker != nil && version.Source.Docker.Moves() {
		p.add(name, "source.docker.image", "it has neither tag nor digest: write host/name:tag or host/name@sha256:…")
	}
	if version.Template != nil {
		p.checkMethod(version)
		p.checkForm(version)
	}
}

func (p *addonProblems) checkMethod(version *v1.AddonVersion) {
	name := version.Version
	method := TraitsOf(version.Template.Method)
	if version.Source != nil && version.Source.Helm != nil && !method.IsChart {
		p.add(name, "source.helm", "a chart from a repository needs template.method helm")
	}
	if !method.HasRelease && version.Template.Helm != nil {
		p.add(name, "template.helm", "it is allowed only with method helm: remove it")
	}
	if version.Template.ClusterSecrets && p.kind != v1.CatalogueCore {
		p.add(name, "template.clusterSecrets", "only Core catalogues may set it: remove it")
	}
}

func (p *addonProblems) checkForm(version *v1.AddonVersion) {
	seen := map[string]bool{}
	for _, field := range version.Template.FormSpec {
		place := fmt.Sprintf("template.formSpec[%s]", field.InternalName)
		if seen[field.InternalName] {
			p.add(version.Version, place, "the field is listed twice: remove one")
		}
		seen[field.InternalName] = true
	}
}
