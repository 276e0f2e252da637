package laws

import "testing"

// kkpKinds are KKP's kinds, which stand for clusters and seeds.
const kkpKinds = module + "/apis/kkp/v1"

// knowKKP are the rooms and files that read KKP's kinds: those that describe clusters and seeds to all others, templates, the rules
// for core add-ons, and what stands in for KKP. For the others a cluster is a target.Ref and a target.Description.
var knowKKP = []string{
	"pkg/clusters/cluster/describe.go", "pkg/clusters/cluster/kkp.go", "pkg/clusters/cluster/platform.go", "pkg/clusters/cluster/secrets.go",
	"pkg/clusters/cluster/seeds.go", "pkg/values/templatedata", "pkg/controllers/coreaddon/rules.go", "pkg/controllers/standalone",
}

// capiKinds are Cluster API's kinds, and knowCAPI the files that read them.
const capiKinds = module + "/apis/clusterapi/v1"

var knowCAPI = []string{
	"pkg/clusters/cluster/capi.go", "pkg/clusters/cluster/controlplanes.go", "pkg/clusters/cluster/describe.go", "pkg/clusters/cluster/describecapi.go", "pkg/clusters/cluster/finders.go",
	"pkg/clusters/cluster/hold.go", "pkg/clusters/cluster/platform.go", "pkg/clusters/cluster/secrets.go", "pkg/clusters/cluster/seen.go", "pkg/clusters/cluster/upgrades.go", "pkg/clusters/cluster/view.go", "pkg/values/templatedata",
}

// clusterKinds complains about files that read kinds of Clusters and are none of those that describe them.
func clusterKinds(file source) []string {
	if file.isTest() || within(file.pkg(), []string{"apis", "test", "hack"}) {
		return nil
	}
	var complaints []string
	for name, spec := range file.imports() {
		if name == capiKinds && !within(file.file, knowCAPI) {
			complaints = append(complaints, file.complain(spec, "%s must not know Cluster API's kinds: take a target.Ref or target.Description", file.file))
		}
		if name == kkpKinds && !within(file.file, knowKKP) {
			complaints = append(complaints, file.complain(spec, "%s must not know KKP's kinds: take a target.Ref or target.Description", file.file))
		}
	}
	return complaints
}

func TestFewKnowKindsOfClusters(t *testing.T) { report(t, clusterKinds) }

func TestKindsOfClustersCatches(t *testing.T) {
	const kkp = "package x\nimport kkpv1 \"" + kkpKinds + "\"\nvar _ kkpv1.Cluster"
	const capi = "package x\nimport capiv1 \"" + capiKinds + "\"\nvar _ capiv1.Cluster"
	const wrong = "must not know KKP's kinds"
	catches(t, clusterKinds, []law{
		{"what describes clusters", "pkg/clusters/cluster/describe.go", kkp, ""},
		{"what finds Cluster API's", "pkg/clusters/cluster/capi.go", capi, ""},
		{"what connects to them", "pkg/clusters/cluster/connections.go", capi, "must not know Cluster API's kinds"},
		{"templates are in KKP's words", "pkg/values/templatedata/a.go", kkp, ""},
		{"rules read a Cluster's fields", "pkg/controllers/coreaddon/rules.go", kkp, ""},
		{"what stands in for KKP", "pkg/controllers/standalone/a.go", kkp, ""},
		{"a test makes Clusters", "pkg/serve/webhook/a_test.go", kkp, ""},
		{"a kit makes Clusters", "test/sandbox/a.go", kkp, ""},
		{"our own kinds", "pkg/serve/webhook/a.go", "package x\nimport _ \"" + module + "/apis/kubermatic/v1\"", ""},
		{"what connects", "pkg/clusters/cluster/connections.go", kkp, wrong},
		{"another file beside the rules", "pkg/controllers/coreaddon/set.go", kkp, wrong},
		{"a controller", "pkg/controllers/addoninstallation/a.go", kkp, wrong},
		{"records", "pkg/install/revision/a.go", kkp, wrong},
		{"admission", "pkg/serve/webhook/a.go", kkp, wrong},
		{"wiring", "cmd/seed-controller-manager/a.go", kkp, wrong},
		{"under a name that hides it", "pkg/serve/query/a.go", "package x\nimport v1 \"" + kkpKinds + "\"\nvar _ v1.Seed", wrong},
		{"a room that begins like one", "pkg/templatedatamore/a.go", kkp, wrong},
	})
}
