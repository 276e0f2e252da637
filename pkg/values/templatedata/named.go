package templatedata

import (
	"strings"
	"text/template/parse"

	"github.com/trellis-addons/trellis/pkg/values/templatenodes"
)

// The names of Cluster API data in a valuesTemplate.
const (
	capiField    = "CAPI"
	planeField   = "ControlPlane"
	infraField   = "InfraCluster"
	clusterField = "Cluster"
	varsField    = "Variables"
)

// CAPINames are the Cluster API data that templates name. Objects that none names are neither read nor watched.
type CAPINames struct {
	// CAPI says that .CAPI is named: then Cluster and Variables are there.
	CAPI bool
	// ControlPlane and InfraCluster are further objects.
	ControlPlane, InfraCluster bool
}

// NamedOfCAPI finds the Cluster API data that templates name, as a field or in quotes, such as index .CAPI
// "InfraCluster". A template that can't be parsed names nothing.
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

// Names says whether a template names a key at any depth of its data: as a field, in quotes, at the beginning of a
// dotted path in quotes, or in a template in quotes. A template that can't be parsed names nothing.
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

// CAPI is the Cluster API data of a valuesTemplate, as .CAPI: objects as maps, of which the last two may be nil.
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
