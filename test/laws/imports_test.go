package laws

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// tiers are the floors of the house, the lowest first; imports run downward only.
var tiers = [][]string{
	{"apis/clusterapi", "apis/kkp", "apis/kubermatic", "charts"},
	{"pkg/addresses", "pkg/budget", "pkg/buildinfo", "pkg/fieldsets", "pkg/lru", "pkg/ownership", "pkg/templatenodes", "pkg/text", "pkg/times", "pkg/tracing", "pkg/turns"},
	{"pkg/backoff", "pkg/catalogue", "pkg/certificate", "pkg/conditions", "pkg/fence", "pkg/health", "pkg/installation", "pkg/listcache", "pkg/remote", "pkg/rollout", "pkg/sharing", "pkg/target", "pkg/templatedata", "pkg/upgrade", "pkg/values"},
	{"pkg/addonset", "pkg/calls", "pkg/crds", "pkg/platformvalues"},
	{
		"pkg/access", "pkg/apply", "pkg/cluster", "pkg/fairqueue", "pkg/fetch", "pkg/helmrelease", "pkg/hooks", "pkg/loop", "pkg/mergedcatalogue",
		"pkg/pullsecret", "pkg/removal", "pkg/render", "pkg/revision", "pkg/survey", "pkg/waves",
	},
	compositions,
	{"pkg/controllers", "pkg/query", "pkg/webhook"},
	{"cmd"},
	{"hack", "test"},
}

// compositions are the rooms of the floor for composition: each puts together what rooms below do, one
// another included, for all callers above.
var compositions = []string{"pkg/installer", "pkg/rendering", "pkg/resolution"}

// neighbours are the rooms of its own tier that a room may import.
var neighbours = map[string][]string{
	"pkg/helmrelease": {"pkg/hooks"},
	"pkg/hooks":       {"pkg/apply"},
	"pkg/render":      {"pkg/fetch"},
	"pkg/revision":    {"pkg/helmrelease", "pkg/hooks"},
}

// foundations are inner parts of a room, or of a part of it, that the other parts of the same stand on.
var foundations = []string{
	"pkg/access/certificate", "pkg/access/rights",
	"pkg/controllers/distributor/copies", "pkg/controllers/distributor/seed", "pkg/controllers/distributor/usage",
	"pkg/fetch/archive", "pkg/fetch/outbound", "pkg/fetch/registry", "pkg/render/images", "pkg/render/manifest", "pkg/render/redact",
	"pkg/values/strictyaml",
}

// room gives the room that a folder belongs to and its floor; -1 for a folder outside of the house.
func room(folder string) (name string, floor int) {
	for floor, rooms := range tiers {
		for _, room := range rooms {
			if folder == room || strings.HasPrefix(folder, room+"/") {
				return room, floor
			}
		}
	}
	return "", -1
}

// importLaws complains about imports of our own packages that run upward or past a contract.
func importLaws(file source) []string {
	var complaints []string
	from, floor := room(file.room())
	if floor < 0 {
		return []string{file.complain(file.tree, "folder %q has no place in the house: add it to ARCHITECTURE.md and to this test", file.room())}
	}
	if file.isTest() || from == "test" || from == "hack" {
		return nil
	}
	for name, spec := range file.imports() {
		folder, ours := strings.CutPrefix(name, module+"/")
		if !ours {
			continue
		}
		if why := refusal(file.room(), from, floor, folder); why != "" {
			complaints = append(complaints, file.complain(spec, "%s must not import %s: %s", file.room(), folder, why))
		}
	}
	return complaints
}

// refusal says why an import is wrong, or "".
func refusal(folder, from string, floor int, imported string) string {
	to, below := room(imported)
	switch {
	case isKit(imported) && to != "test":
		return "a kit for tests is no part of the product"
	case from == to:
		return refusalInside(folder, from, imported)
	case below > floor:
		return "imports run downward only"
	case below == floor && !slices.Contains(neighbours[from], to) && !slices.Contains(compositions, from):
		return "rooms of one tier meet through contracts and API objects, not by imports"
	case imported != to && from != "cmd" && slices.Contains([]string{"pkg/fetch", "pkg/render"}, to):
		return "implementations are named in cmd and in tests only; import the contract " + to
	}
	return ""
}

// refusalInside judges imports between folders of one room. A part may have parts of its own, which nobody else
// in the room imports.
func refusalInside(folder, room, imported string) string {
	whole := path.Dir(imported)
	switch {
	case room == "cmd", imported == room, folder == imported, folder == whole && whole != room:
		return ""
	case slices.Contains(foundations, imported) && within(folder, []string{whole}):
		return ""
	}
	if folder == room {
		return "a contract does not know its implementations"
	}
	return "parts of a room do not call each other"
}

func TestImportsRunDownward(t *testing.T) { report(t, importLaws) }

func TestImportLawsCatch(t *testing.T) {
	code := func(imported string) string { return "package x\nimport _ \"" + module + "/" + imported + "\"\n" }
	catches(t, importLaws, []law{
		{"a controller uses a contract", "pkg/controllers/addon/a.go", code("pkg/fetch"), ""},
		{"cmd names implementations", "cmd/seed-controller-manager/a.go", code("pkg/fetch/git"), ""},
		{"hooks stand on apply", "pkg/hooks/a.go", code("pkg/apply"), ""},
		{"an implementation knows its contract", "pkg/fetch/git/a.go", code("pkg/fetch"), ""},
		{"implementations share a foundation", "pkg/fetch/git/a.go", code("pkg/fetch/archive"), ""},
		{"tests may use anything", "pkg/apply/a_test.go", code("test/fleet"), ""},
		{"a composition puts rooms together", "pkg/resolution/a.go", code("pkg/revision"), ""},
		{"callers of a composition", "pkg/webhook/a.go", code("pkg/resolution"), ""},
		{"a composition uses another", "pkg/rendering/a.go", code("pkg/resolution"), ""},
		{"whoever previews renders", "pkg/query/a.go", code("pkg/rendering"), ""},
		{"a rendering that knows a controller", "pkg/rendering/a.go", code("pkg/controllers/addoninstallation"), "downward only"},
		{"a rendering by one method", "pkg/rendering/a.go", code("pkg/render/chart"), "import the contract pkg/render"},
		{"a Keeper that composes", "pkg/render/a.go", code("pkg/rendering"), "downward only"},
		{"a controller installs", "pkg/controllers/addoninstallation/a.go", code("pkg/installer"), ""},
		{"an installer that knows its controller", "pkg/installer/a.go", code("pkg/controllers/addoninstallation"), "downward only"},
		{"a middle room uses a composition", "pkg/revision/a.go", code("pkg/resolution"), "downward only"},
		{"a composition calls a controller", "pkg/resolution/a.go", code("pkg/controllers/addon"), "downward only"},
		{"a composition past a contract", "pkg/resolution/a.go", code("pkg/fetch/git"), "import the contract pkg/fetch"},
		{"upward", "pkg/catalogue/a.go", code("pkg/apply"), "downward only"},
		{"product uses test code", "pkg/apply/a.go", code("test/fleet"), "downward only"},
		{"product uses a kit for tests", "pkg/fetch/git/a.go", code("pkg/fetch/fetchtest"), "kit for tests"},
		{"sideways", "pkg/apply/a.go", code("pkg/revision"), "one tier"},
		{"a removal that applies", "pkg/removal/a.go", code("pkg/apply"), "one tier"},
		{"an owner that calls", "pkg/ownership/a.go", code("pkg/calls"), "downward only"},
		{"a rollout that knows catalogues", "pkg/rollout/a.go", code("pkg/catalogue"), "one tier"},
		{"hooks that know records", "pkg/hooks/a.go", code("pkg/revision"), "one tier"},
		{"an API that knows another API", "apis/kubermatic/v1/a.go", code("apis/kkp/v1"), "one tier"},
		{"past the contract", "pkg/controllers/addon/a.go", code("pkg/fetch/git"), "import the contract pkg/fetch"},
		{"a contract that knows an implementation", "pkg/render/a.go", code("pkg/render/chart"), "does not know"},
		{"controllers call each other", "pkg/controllers/addon/a.go", code("pkg/controllers/standalone"), "do not call"},
		{"the store fetches by itself", "pkg/fetch/store/a.go", code("pkg/fetch/git"), "do not call"},
		{"a controller stands on parts of its own", "pkg/controllers/distributor/a.go", code("pkg/controllers/distributor/report"), ""},
		{"parts of a controller share a foundation", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor/usage"), ""},
		{"a foundation of another controller", "pkg/controllers/addon/a.go", code("pkg/controllers/distributor/usage"), "do not call"},
		{"a part of another controller", "pkg/controllers/addon/a.go", code("pkg/controllers/gitcatalogue/documents"), "do not call"},
		{"a part that knows its controller", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor"), "do not call"},
		{"parts of a controller call each other", "pkg/controllers/distributor/seed/a.go", code("pkg/controllers/distributor/report"), "do not call"},
		{"a folder without a place", "pkg/misc/a.go", "package misc", "no place in the house"},
	})
}

// pure rooms decide and do nothing else.
var pure = []string{
	"pkg/access/rights", "pkg/addonset", "pkg/addresses", "pkg/catalogue", "pkg/conditions", "pkg/fieldsets", "pkg/health", "pkg/installation", "pkg/ownership",
	"pkg/platformvalues", "pkg/rollout", "pkg/target", "pkg/templatedata", "pkg/templatenodes", "pkg/text", "pkg/times", "pkg/upgrade", "pkg/values",
}

// impure are the packages, with everything below them, that do something.
var impure = []string{
	"net/http", "os", "io/fs", "log", "github.com/go-logr/logr", "k8s.io/klog", "k8s.io/client-go",
	"sigs.k8s.io/controller-runtime", "math/rand", "crypto/rand",
}

// purity complains about effects in rooms that only decide: they take what they need, the clock included, as arguments.
func purity(file source) []string {
	if !within(file.room(), pure) || file.isTest() {
		return nil
	}
	var complaints []string
	for name, spec := range file.imports() {
		if within(name, impure) {
			complaints = append(complaints, file.complain(spec, "a pure room must not import %q", name))
		}
	}
	ast.Inspect(file.tree, func(node ast.Node) bool {
		if called := selector(node); called == "time.Now" || called == "time.Since" || called == "metav1.Now" {
			complaints = append(complaints, file.complain(node, "a pure room takes the clock as an argument instead of calling %s", called))
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

func TestPureRoomsDoNothing(t *testing.T) { report(t, purity) }

func TestPurityCatches(t *testing.T) {
	catches(t, purity, []law{
		{"text is pure", "pkg/values/a.go", "package x\nimport _ \"strings\"", ""},
		{"other rooms act", "pkg/apply/a.go", "package x\nimport _ \"os\"", ""},
		{"the environment", "pkg/values/a.go", "package x\nimport _ \"os\"", `must not import "os"`},
		{"a server", "pkg/catalogue/a.go", "package x\nimport _ \"net/http\"", `must not import "net/http"`},
		{"a look at the cluster", "pkg/ownership/a.go", "package x\nimport _ \"k8s.io/client-go/metadata\"", "must not import"},
		{"a client", "pkg/conditions/a.go", "package x\nimport _ \"k8s.io/client-go/dynamic\"", "must not import"},
		{"a clock", "pkg/conditions/a.go", "package x\nimport \"time\"\nvar x = time.Now()", "takes the clock"},
	})
}
