package templatedata

import (
	"strings"
	"text/template/parse"

	"github.com/trellis-addons/trellis/pkg/templatenodes"
)

// Names that a valuesTemplate has for what it sees of Cluster API.
const (
	capiField    = "CAPI"
	planeField   = "ControlPlane"
	infraField   = "InfraCluster"
	clusterField = "Cluster"
	varsField    = "Variables"
)

// CAPINames say what templates name of Cluster API. What none names is neither read nor watched.
type CAPINames struct {
	// CAPI says that .CAPI is named at all: Cluster and Variables are there then.
	CAPI bool
	// ControlPlane and InfraCluster are further objects.
	ControlPlane, InfraCluster bool
}

// NamedOfCAPI reads what templates name of Cluster API, as a field or in quotes, such as
// index .CAPI "InfraCluster". One that can't be parsed names nothing.
func NamedOfCAPI(templates ...string) (names CAPINames) {
	for _, text := range templates {
		if !strings.Contains(text, capiField) {
			continue
		}
		found := map[string]bool{}
		templatenodes.Each(text, func(node parse.Node) {
			for _, word := range wordsOf(node) {
				found[word] = true
			}
		})
		if found[capiField] {
			names.CAPI = true
			names.ControlPlane = names.ControlPlane || found[planeField]
			names.InfraCluster = names.InfraCluster || found[infraField]
		}
	}
	return names
}

// Names says whether a template names a key at any depth of its data: as a field, in quotes, at the beginning of a dotted path in quotes,
// or in a template in quotes. One that can't be parsed names nothing.
func Names(template, key string) (named bool) {
	if !strings.Contains(template, key) {
		return false
	}
	templatenodes.Each(template, func(node parse.Node) {
		for _, word := range wordsOf(node) {
			isTemplate := len(word) < len(template) && strings.Contains(word, "{{")
			named = named || word == key || strings.HasPrefix(word, key+".") || isTemplate && Names(word, key)
		}
	})
	return named
}

// wordsOf are the fields that a node names, or the text that it quotes.
func wordsOf(node parse.Node) []string {
	switch node := node.(type) {
	case *parse.FieldNode:
		return node.Ident
	case *parse.VariableNode:
		return node.Ident
	case *parse.ChainNode:
		return node.Field
	case *parse.StringNode:
		return []string{node.Text}
	}
	return nil
}

// CAPI is what a valuesTemplate sees of Cluster API as .CAPI: objects as maps, of which the last two
// may be nil.
func CAPI(cluster, controlPlane, infraCluster map[string]any) map[string]any {
	seen := map[string]any{clusterField: cluster, varsField: VariablesOfCAPI(cluster)}
	if controlPlane != nil {
		seen[planeField] = controlPlane
	}
	if infraCluster != nil {
		seen[infraField] = infraCluster
	}
	return seen
}
