package laws

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// forbiddenImports are packages, with everything below them, that the product must not use, with the reason.
var forbiddenImports = map[string]string{
	"os/exec":                              "the managers start no programs: an argument made of foreign text is a way in (CVE-2025-21613)",
	"plugin":                               "the managers load no code",
	"helm.sh/helm/v3/pkg/action":           "it renders in process, blocks on hooks and writes objects by itself; see docs/adr",
	"helm.sh/helm/v3/pkg/strvals":          "its lists can be made to fill the memory (CVE-2022-36055)",
	"helm.sh/helm/v3/pkg/getter":           "it links Helm's plugins (CVE-2020-15187)",
	"helm.sh/helm/v3/pkg/plugin":           "plugins are foreign code",
	"helm.sh/helm/v3/pkg/downloader":       "dependencies are vendored, never fetched (CVE-2025-53547)",
	"helm.sh/helm/v3/pkg/repo":             "it fetches through Helm's getters",
	"golang.org/x/crypto/openpgp":          "it is not maintained (GO-2026-5932)",
	"github.com/hashicorp/go-getter":       "CVE-2024-3817",
	"k8s.io/client-go/tools/remotecommand": "nothing runs inside of others' pods",
}

// forbiddenCalls are names, as "package.Name", that nothing of the product may call.
var forbiddenCalls = map[string]string{
	"ssh.InsecureIgnoreHostKey": "host keys are checked",
	"loader.Load":               "charts are loaded from memory: a folder may hold links (CVE-2019-18658)",
	"loader.LoadDir":            "charts are loaded from memory: a folder may hold links (CVE-2019-18658)",
	"loader.LoadFile":           "charts are loaded from memory, within limits (CVE-2025-32386)",
	"mutate.Extract":            "layers are unpacked by pkg/fetch/archive, within limits",
	"http.DefaultClient":        "it has no deadline and dials anywhere: use pkg/fetch/outbound",
	"http.Get":                  "it has no deadline and dials anywhere: use pkg/fetch/outbound",
	"http.Post":                 "it has no deadline and dials anywhere: use pkg/fetch/outbound",
	"http.Head":                 "it has no deadline and dials anywhere: use pkg/fetch/outbound",
	"git.PlainClone":            "a checkout writes where the repository says (CVE-2023-49569)",
	"os.StartProcess":           "the managers start no programs but their own renderers: see pkg/render/child",
	"syscall.ForkExec":          "the managers start no programs but their own renderers: see pkg/render/child",
}

// excepted are the rooms that may use a forbidden name, since it is their purpose.
var excepted = map[string]string{"os.StartProcess": "pkg/render/child"}

// security complains about what SC13 of the threat model keeps out of the product.
func security(file source) []string {
	if !file.isProduct() {
		return nil
	}
	var complaints []string
	for name, spec := range file.imports() {
		for root, why := range forbiddenImports {
			if within(name, []string{root}) {
				complaints = append(complaints, file.complain(spec, "the product must not import %q: %s", name, why))
			}
		}
	}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if why, found := forbiddenCalls[selector(node)]; found && excepted[selector(node)] != file.room() {
			complaints = append(complaints, file.complain(node, "the product must not use %s: %s", selector(node), why))
		}
		return true
	})
	return complaints
}

// SC13: No program, no link of a chart, no blind trust and no sleep is in the product's code.
func TestNothingDangerousIsUsed(t *testing.T) { report(t, security) }

func TestSecurityCatches(t *testing.T) {
	catches(t, security, []law{
		{"tests start programs", "test/fleet/a.go", "package x\nimport _ \"os/exec\"", ""},
		{"the product starts none", "pkg/fetch/git/a.go", "package x\nimport _ \"os/exec\"", "start no programs"},
		{"below a forbidden root", "pkg/x/a.go", "package x\nimport _ \"helm.sh/helm/v3/pkg/plugin/installer\"", "foreign code"},
		{"host keys", "pkg/x/a.go", "package x\nimport \"golang.org/x/crypto/ssh\"\nvar x = ssh.InsecureIgnoreHostKey()", "host keys"},
		{"renderers are started", "pkg/render/child/a.go", "package x\nvar x = os.StartProcess", ""},
		{"nothing else is started", "pkg/render/a.go", "package x\nvar x = os.StartProcess", "but their own renderers"},
		{"charts from a folder", "pkg/x/a.go", "package x\nvar x = loader.LoadDir", "from memory"},
	})
}

// habits complains about what hides mistakes, in product and tests alike.
func habits(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		switch selector(node) {
		case "time.Sleep":
			complaints = append(complaints, file.complain(node, "time.Sleep: wait for the condition instead"))
		case "context.TODO":
			complaints = append(complaints, file.complain(node, "context.TODO: say whose context it is"))
		}
		if field, ok := node.(*ast.KeyValueExpr); ok {
			complaints = append(complaints, fieldHabits(file, field)...)
		}
		return true
	})
	return complaints
}

// fieldHabits judges a field of a literal.
func fieldHabits(file source, field *ast.KeyValueExpr) []string {
	key, ok := field.Key.(*ast.Ident)
	if !ok {
		return nil
	}
	value, ok := field.Value.(*ast.Ident)
	switch {
	case key.Name == "InsecureSkipVerify" && file.isProduct():
		return []string{file.complain(field, "InsecureSkipVerify: certificates are checked; own authorities come by caSecretRef")}
	case key.Name == "Requeue" && ok && value.Name == "true":
		return []string{file.complain(field, "Requeue: true spins without saying why; return an outcome of pkg/loop")}
	}
	return nil
}

func TestHabits(t *testing.T) { report(t, habits) }

func TestHabitsCatch(t *testing.T) {
	catches(t, habits, []law{
		{"a sleep in a test", "pkg/x/a_test.go", "package x\nfunc f() { time.Sleep(1) }", "wait for the condition"},
		{"spinning", "pkg/x/a.go", "package x\nvar x = Result{Requeue: true}", "spins"},
		{"blind trust", "pkg/x/a.go", "package x\nvar x = Config{InsecureSkipVerify: yes}", "certificates are checked"},
		{"nobody's context", "pkg/x/a.go", "package x\nvar x = context.TODO()", "whose context"},
	})
}

// outcomes complains about results that bypass pkg/loop.
func outcomes(file source) []string {
	if file.room() == "pkg/loop" || !file.isProduct() {
		return nil
	}
	return requeueFields(file)
}

func requeueFields(file source) []string {
	var complaints []string
	ast.Inspect(file.tree, func(node ast.Node) bool {
		field, ok := node.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		if key, ok := field.Key.(*ast.Ident); ok && key.Name == "RequeueAfter" {
			complaints = append(complaints, file.complain(field, "RequeueAfter: only pkg/loop turns an outcome into a result"))
		}
		return true
	})
	return complaints
}

func TestOutcomesGoThroughTheLoop(t *testing.T) { report(t, outcomes) }

func TestOutcomesCatch(t *testing.T) {
	code := "package x\nvar x = Result{RequeueAfter: 1}"
	catches(t, outcomes, []law{
		{"the loop itself", "pkg/loop/a.go", code, ""},
		{"a controller", "pkg/controllers/addon/a.go", code, "only pkg/loop"},
	})
}

// yamlImports are packages that decode YAML. Foreign YAML has one reader, pkg/values/strictyaml, which bounds it first.
var yamlImports = []string{
	"sigs.k8s.io/yaml", "go.yaml.in/yaml", "gopkg.in/yaml.v2", "gopkg.in/yaml.v3", "github.com/goccy/go-yaml", "k8s.io/apimachinery/pkg/util/yaml",
	"k8s.io/apimachinery/pkg/runtime/serializer", "k8s.io/client-go/tools/clientcmd", "helm.sh/helm/v3/pkg/cli",
}

// yamlReader is the room that decodes YAML.
const yamlReader = "pkg/values/strictyaml"

// yamlAllowed are the names of those packages that decode nothing: trees that were read, and writing.
var yamlAllowed = []string{
	"Node", "AliasNode", "DocumentNode", "MappingNode", "ScalarNode", "SequenceNode", "Marshal", "JSONToYAML", "NewCodecFactory", "CodecFactory",
}

// foreignYAML complains about decoders of YAML beside the one reader. The charts' own files are decoded by Helm's loader, in a
// child process, after strictyaml has looked at them.
func foreignYAML(file source) []string {
	if !file.isProduct() || file.isTest() || file.room() == yamlReader {
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
		room, name, found := strings.Cut(selector(node), ".")
		if found && names[room] && !slices.Contains(yamlAllowed, name) {
			complaints = append(complaints, file.complain(node, "%s decodes YAML: foreign YAML has one reader, %s", selector(node), yamlReader))
		}
		return true
	})
	return complaints
}

func TestForeignYAMLHasOneReader(t *testing.T) { report(t, foreignYAML) }

func TestForeignYAMLCatches(t *testing.T) {
	catches(t, foreignYAML, []law{
		{"a kubeconfig", "pkg/cluster/a.go", "package x\nimport \"sigs.k8s.io/yaml\"\nvar x = yaml.UnmarshalStrict", "one reader"},
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
