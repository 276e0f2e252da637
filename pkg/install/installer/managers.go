package installer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// maxAdoptManagers is more than wrote any real object; maxManagerName is the API server's limit.
const (
	maxAdoptManagers = 8
	maxManagerName   = 128
)

// AdoptManagers reads annotation adopt-managers. An error names the correction.
func AdoptManagers(annotations map[string]string) ([]string, error) {
	text, isSet := annotations[v1.AnnotationAdoptManagers]
	if !isSet || annotations[v1.AnnotationAdopt] != "true" {
		return nil, nil
	}
	names := strings.SplitN(text, ",", maxAdoptManagers+1)
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		if problem := managerProblem(names[i]); problem != "" && len(names) <= maxAdoptManagers {
			return nil, invalidManagers(problem)
		}
	}
	if len(names) > maxAdoptManagers {
		return nil, invalidManagers(fmt.Sprintf("it names more than %d field managers", maxAdoptManagers))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func managerProblem(name string) string {
	_, isInstallation := ownership.InstallationOf(name)
	switch {
	case name == "":
		return "a name in it is empty"
	case len(name) > maxManagerName:
		return fmt.Sprintf("%q is longer than the %d bytes that a field manager's name may have", calls.CutText(name), maxManagerName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Sprintf("%q has a character that no field manager's name may have", calls.CutText(name))
	case isInstallation:
		return fmt.Sprintf("%q is an add-on installation: objects of an existing installation can't be adopted, and objects of a deleted one "+
			"need no name",
			calls.CutText(name))
	}
	return ""
}

func invalidManagers(problem string) error {
	return fmt.Errorf("annotation %s is not valid, and nothing was changed: %s: write the names of at most %d field managers, separated "+
		"by commas, as `kubectl get --show-managed-fields` shows them, or remove it", v1.AnnotationAdoptManagers, problem, maxAdoptManagers)
}

// adoption has the adoption settings, for comparison.
func (a Asked) adoption() string {
	if !a.Adopt {
		return ""
	}
	return "adopt " + strings.Join(a.AdoptManagers, ",")
}
