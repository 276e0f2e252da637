package laws

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// tiers are the folders of the product, the lowest first. Imports run downward only: folders of one tier do not import each other.
var tiers = [][]string{
	{"apis/clusterapi", "apis/kkp", "apis/kubermatic", "charts"},
	{"pkg/base"},
	{"pkg/values"},
	{"pkg/catalogue"},
	{"pkg/clusters", "pkg/fetch", "pkg/render", "pkg/fleet"},
	{"pkg/install"},
	{"pkg/serve"},
	{"pkg/cli", "pkg/controllers", "pkg/web"},
	{"cmd"},
	{"hack", "test"},
}

// contracts are folders whose own package does not import its parts, and whose parts do not import each other.
var contracts = []string{"pkg/cli", "pkg/controllers", "pkg/fetch", "pkg/render"}

// foundations are parts of contracts, or parts of such parts, that the other parts of the same may import.
var foundations = []string{
	"pkg/cli/endpoint", "pkg/controllers/distributor/copies", "pkg/controllers/distributor/seed", "pkg/controllers/distributor/usage",
	"pkg/fetch/archive", "pkg/fetch/outbound", "pkg/fetch/registry", "pkg/render/manifest", "pkg/render/redact",
}

// folderOf gives the folder of tiers that a package belongs to, and its tier; -1 for a package outside of them.
func folderOf(pkg string) (name string, tier int) {
	for tier, folders := range tiers {
		for _, folder := range folders {
			if within(pkg, []string{folder}) {
				return folder, tier
			}
		}
	}
	return "", -1
}

// webImports are the folders whose packages the web view may import beside its own: it has no rights, and reads only what pages show.
var webImports = []string{"apis/kubermatic", "pkg/base", "pkg/clusters/target", "pkg/serve/view", "pkg/values", "pkg/web"}

// importLaws complains about imports of our own packages that run upward, sideways or past a contract.
func importLaws(file source) []string {
	var complaints []string
	from, tier := folderOf(file.pkg())
	if tier < 0 {
		return []string{file.complain(file.tree, "folder %q has no tier: add it to ARCHITECTURE.md and to this test", file.pkg())}
	}
	if file.isTest() || from == "test" || from == "hack" {
		return nil
	}
	for name, spec := range file.imports() {
		imported, ours := strings.CutPrefix(name, module+"/")
		if !ours {
			continue
		}
		if why := refusal(file.pkg(), from, tier, imported); why != "" {
			complaints = append(complaints, file.complain(spec, "%s must not import %s: %s", file.pkg(), imported, why))
		}
	}
	return complaints
}

// refusal says why an import is wrong, or "".
func refusal(pkg, from string, tier int, imported string) string {
	to, below := folderOf(imported)
	switch {
	case isKit(imported) && to != "test":
		return "a kit for tests is no part of the product"
	case from == to:
		return refusalInside(pkg, from, imported)
	case below > tier:
		return "imports run downward only"
	case below == tier:
		return "folders of one tier do not import each other"
	case from == "pkg/web" && !within(imported, webImports):
		return "the web view shows what others decide: it imports only " + strings.Join(webImports, ", ")
	case imported != to && from != "cmd" && slices.Contains([]string{"pkg/fetch", "pkg/render"}, to):
		return "implementations are named in cmd and in tests only; import the contract " + to
	}
	return ""
}

// refusalInside says why an import between packages of one folder is wrong. A part of a contract may have parts of its own, which no other
// package of the folder imports.
func refusalInside(pkg, folder, imported string) string {
	whole := path.Dir(imported)
	switch {
	case !slices.Contains(contracts, folder), imported == folder, pkg == imported, pkg == whole && whole != folder:
		return ""
	case slices.Contains(foundations, imported) && within(pkg, []string{whole}):
		return ""
	}
	if pkg == folder {
		return "a contract does not know its implementations"
	}
	return "parts of a contract do not import each other"
}

func TestImportsRunDownward(t *testing.T) { report(t, importLaws) }

func TestImportLawsCatch(t *testing.T) {
	code := func(imported string) string { return "package x\nimport _ \"" + module + "/" + imported + "\"\n" }
	catches(t, importLaws, []law{
		{"a controller uses a contract", "pkg/controllers/addon/a.go", code("pkg/fetch"), ""},
		{"cmd names implementations", "cmd/seed-controller-manager/a.go", code("pkg/fetch/git"), ""},
		{"packages of one folder", "pkg/install/hooks/a.go", code("pkg/install/apply"), ""},
		{"an implementation knows its contract", "pkg/fetch/git/a.go", code("pkg/fetch"), ""},
		{"implementations share a foundation", "pkg/fetch/git/a.go", code("pkg/fetch/archive"), ""},
		{"tests may use anything", "pkg/install/apply/a_test.go", code("test/fleet"), ""},
		{"a folder below", "pkg/serve/query/a.go", code("pkg/install/rendering"), ""},
		{"a verb uses what verbs share", "pkg/cli/list/a.go", code("pkg/cli"), ""},
		{"a controller uses parts of its own", "pkg/controllers/distributor/a.go", code("pkg/controllers/distributor/report"), ""},
		{"parts of a controller share a foundation", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor/usage"), ""},
		{"a rendering that knows a controller", "pkg/install/rendering/a.go", code("pkg/controllers/addoninstallation"), "downward only"},
		{"a rendering by one method", "pkg/install/rendering/a.go", code("pkg/render/chart"), "import the contract pkg/render"},
		{"a contract that installs", "pkg/render/a.go", code("pkg/install/rendering"), "downward only"},
		{"values that know catalogues", "pkg/values/a.go", code("pkg/catalogue"), "downward only"},
		{"a catalogue that installs", "pkg/catalogue/a.go", code("pkg/install/apply"), "downward only"},
		{"product uses test code", "pkg/install/apply/a.go", code("test/fleet"), "downward only"},
		{"product uses a kit for tests", "pkg/fetch/git/a.go", code("pkg/fetch/fetchtest"), "kit for tests"},
		{"a rollout that connects", "pkg/fleet/waves/a.go", code("pkg/clusters/cluster"), "one tier"},
		{"a rendering that fetches", "pkg/render/chart/a.go", code("pkg/fetch"), "one tier"},
		{"an API that knows another API", "apis/kubermatic/v1/a.go", code("apis/kkp/v1"), "one tier"},
		{"a verb that calls a controller", "pkg/cli/list/a.go", code("pkg/controllers/addon"), "one tier"},
		{"past the contract", "pkg/controllers/addon/a.go", code("pkg/fetch/git"), "import the contract pkg/fetch"},
		{"a contract that knows an implementation", "pkg/render/a.go", code("pkg/render/chart"), "does not know"},
		{"controllers call each other", "pkg/controllers/addon/a.go", code("pkg/controllers/standalone"), "do not import"},
		{"verbs call each other", "pkg/cli/list/a.go", code("pkg/cli/status"), "do not import"},
		{"the store fetches by itself", "pkg/fetch/store/a.go", code("pkg/fetch/git"), "do not import"},
		{"a foundation of another controller", "pkg/controllers/addon/a.go", code("pkg/controllers/distributor/usage"), "do not import"},
		{"a part of another controller", "pkg/controllers/addon/a.go", code("pkg/controllers/distributor/report"), "do not import"},
		{"a part that knows its controller", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor"), "do not import"},
		{"parts of a controller call each other", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor/report"), "do not import"},
		{"a page that shows a preview", "pkg/web/pages/a.go", code("pkg/serve/view/preview"), ""},
		{"a page that installs", "pkg/web/pages/a.go", code("pkg/install/rendering"), "the web view shows"},
		{"a page that serves queries", "pkg/web/pages/a.go", code("pkg/serve/query"), "the web view shows"},
		{"a page that calls a verb", "pkg/web/pages/a.go", code("pkg/cli"), "one tier"},
		{"a folder without a tier", "pkg/misc/a.go", "package misc", "has no tier"},
	})
}

// pure packages decide and do nothing else.
var pure = []string{
	"pkg/base/addresses", "pkg/base/conditions", "pkg/base/text", "pkg/base/times", "pkg/catalogue", "pkg/catalogue/health",
	"pkg/clusters/access/rights", "pkg/clusters/fieldsets", "pkg/clusters/ownership", "pkg/clusters/platformvalues",
	"pkg/clusters/target", "pkg/fleet/addonset", "pkg/fleet/installation", "pkg/fleet/rollout", "pkg/fleet/upgrade", "pkg/serve/view",
	"pkg/values", "pkg/values/templatedata", "pkg/values/templatenodes",
}

// impure are the packages, with everything below them, that do something.
var impure = []string{
	"net/http", "os", "io/fs", "log", "github.com/go-logr/logr", "k8s.io/klog", "k8s.io/client-go",
	"sigs.k8s.io/controller-runtime", "math/rand", "crypto/rand",
}

// purity complains about effects in packages that only decide: they take what they need, the clock included, as arguments.
func purity(file source) []string {
	if !within(file.pkg(), pure) || file.isTest() {
		return nil
	}
	var complaints []string
	for name, spec := range file.imports() {
		if within(name, impure) {
			complaints = append(complaints, file.complain(spec, "a pure package must not import %q", name))
		}
	}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if called := selector(node); called == "time.Now" || called == "time.Since" || called == "metav1.Now" {
			complaints = append(complaints, file.complain(node, "a pure package takes the clock as an argument instead of calling %s", called))
		}
		return true
	})
	return complaints
}

func within(name string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return name == root || strings.HasPrefix(name, root+"/") })
}

// selector gives "package.Name" of a selector expression, or "".
func selector(node ast.Node) string {
	expression, ok := node.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	owner, ok := expression.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return owner.Name + "." + expression.Sel.Name
}

func TestPurePackagesDoNothing(t *testing.T) { report(t, purity) }

func TestPurityCatches(t *testing.T) {
	catches(t, purity, []law{
		{"text is pure", "pkg/values/a.go", "package x\nimport _ \"strings\"", ""},
		{"other packages act", "pkg/install/apply/a.go", "package x\nimport _ \"os\"", ""},
		{"the environment", "pkg/values/a.go", "package x\nimport _ \"os\"", `must not import "os"`},
		{"a server", "pkg/catalogue/a.go", "package x\nimport _ \"net/http\"", `must not import "net/http"`},
		{"a look at the cluster", "pkg/clusters/ownership/a.go", "package x\nimport _ \"k8s.io/client-go/metadata\"", "must not import"},
		{"a client", "pkg/base/conditions/a.go", "package x\nimport _ \"k8s.io/client-go/dynamic\"", "must not import"},
		{"a clock", "pkg/base/conditions/a.go", "package x\nimport \"time\"\nvar x = time.Now()", "takes the clock"},
	})
}
