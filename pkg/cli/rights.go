package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Right is a right that a verb needs of its caller on the API server of the context.
type Right struct {
	// Verbs as in RBAC. Resource is the plural name with the group, which is left out for kinds of Trellis and the core.
	Verbs    []string
	Resource string
	// When says which calls need it, such as "with --cluster"; empty: all.
	When string
}

const annotationRights = "rights"

// Needs are the annotations of a command that declare its rights: "get,list addoninstallations with --cluster". The
// reference has them, and tests try read verbs with exactly these. No right at all means that it calls no API server.
func Needs(rights ...string) map[string]string {
	return map[string]string{annotationRights: strings.Join(rights, "\n")}
}

// Rights are those that a command declares. False: it declares none, and needs to.
func Rights(command *cobra.Command) (rights []Right, isDeclared bool) {
	declared, isDeclared := command.Annotations[annotationRights]
	for line := range strings.Lines(declared) {
		verbs, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		resource, when, _ := strings.Cut(rest, " ")
		rights = append(rights, Right{Verbs: strings.Split(verbs, ","), Resource: resource, When: when})
	}
	return rights, isDeclared
}

// changesNeed are the rights of verbs that Tool.Changes completes: to find the installation, and to patch it.
var changesNeed = []string{
	"get,patch addoninstallations", "get addoncatalogues with --cluster", "list addoninstallations for the nearest name of a misspelt one",
}

// WaitNeeds is the right of flag --wait.
const WaitNeeds = "list,watch addoninstallations with --wait"
