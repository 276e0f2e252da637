package laws

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// yamlImports are packages that decode YAML. Foreign YAML has one reader, pkg/values/strictyaml, which bounds it first.
var yamlImports = []string{
	"sigs.k8s.io/yaml", "go.yaml.in/yaml", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3", "github.com/goccy/go-yaml", "k8s.io/apimachinery/pkg/util/yaml",
	"k8s.io/apimachinery/pkg/runtime/serializer", "k8s.io/client-go/tools/clientcmd", "helm.sh/helm/v3/pkg/cli",
}

// yamlReader is the room that decodes YAML.
const yamlReader = "pkg/values/strictyaml"

// yamlAllowed are the names of those packages that decode nothing: trees that were read, and writing.
var yamlAllowed = []string{
	"Node", "AliasNode", "DocumentNode", "MappingNode", "ScalarNode", "SequenceNode", "Marshal", "NewEncoder", "DoubleQuotedStyle", "JSONToYAML", "NewCodecFactory", "CodecFactory",
}

// foreignYAML complains about decoders of YAML beside the one reader. The charts' own files are decoded by Helm's loader, in a
// child process, after strictyaml has looked at them.
func foreignYAML(file source) []string {
	if !file.isProduct() || file.isTest() || file.pkg() == yamlReader {
		return nil
	}
	names := map[string]bool{}
	for name, spec := range file.imports() {
		if !within(name, yamlImports) {
			continue
		}
		switch {
		case spec.Name != nil:
			names[spec.Name.Name] = true
		case strings.Contains(name, "/yaml"):
			names["yaml"] = true // whatever its version
		default:
			names[path.Base(name)] = true
		}
	}
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		pkg, name, found := strings.Cut(selector(node), ".")
		if found && names[pkg] && !slices.Contains(yamlAllowed, name) {
			complaints = append(complaints, file.complain(node, "%s decodes YAML: foreign YAML has one reader, %s", selector(node), yamlReader))
		}
		return true
	})
	return complaints
}

func TestForeignYAMLHasOneReader(t *testing.T) { report(t, foreignYAML) }

func TestForeignYAMLCatches(t *testing.T) {
	catches(t, foreignYAML, []law{
		{"a kubeconfig", "pkg/clusters/cluster/a.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.UnmarshalStrict", "one reader"},
		{"by another name", "pkg/x/a.go", "package x\nimport nodes \"go.yaml.in/yaml/v3\"\nvar x = nodes.NewDecoder", "one reader"},
		{"of a version", "pkg/x/a.go", "package x\nimport \"go.yaml.in/yaml/v3\"\nvar x = yaml.Unmarshal", "one reader"},
		{"to JSON", "cmd/x/a.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.YAMLToJSON", "one reader"},
		{"streams of objects", "pkg/x/a.go", "package x\nimport \"k8s.io/apimachinery/pkg/util/yaml\"\nvar x = yaml.NewYAMLOrJSONDecoder", "one reader"},
		{"kubeconfigs by client-go", "pkg/x/a.go", "package x\nimport \"k8s.io/client-go/tools/clientcmd\"\nvar x = clientcmd.Load", "one reader"},
		{"the reader", "pkg/values/strictyaml/a.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.YAMLToJSON", ""},
		{"writing", "pkg/x/a.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.Marshal", ""},
		{"a tree that was read", "pkg/x/a.go", "package x\nimport nodes \"go.yaml.in/yaml/v3\"\nvar x nodes.Node", ""},
		{"tests", "pkg/x/a_test.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.Unmarshal", ""},
	})
}
