package endtoend_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/test/audit"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/charts"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// listing has some of the managers begin their watches with a list, as they do where an API server does not stream one.
var listing = map[string][]string{
	sandbox.Master: {"KUBE_FEATURE_WatchListClient=false"}, sandbox.Seeds()[1]: {"KUBE_FEATURE_WatchListClient=false"},
}

const (
	byPolicies = "asked for by policies and no call, so that all writes here were refused without it"
	ofKKP      = "a kind that a lab without KKP has not: test/charts asks for it, TestPlatformUsesKindsAsTheyCome of pkg/cluster uses it"
	toldTwice  = "an event that is told twice within six minutes while its object stays as it is: test/charts asks for it"
)

// excused are rights that these tests can't use, with the reason and the test that does. One that is used does not belong here.
var excused = map[string]map[string]string{
	"trellis-master": {
		"create tokenreviews.authentication.k8s.io":               "metrics are plain here: TestMetricsAreForWhoMayGetThem of cmd/internal/manager",
		"create subjectaccessreviews.authorization.k8s.io":        "metrics are plain here: TestMetricsAreForWhoMayGetThem of cmd/internal/manager",
		"control addoncatalogues.kubermatic.k8c.io in kubermatic": byPolicies,
		"patch events.events.k8s.io":                              toldTwice,
		"patch addoncatalogues.kubermatic.k8c.io in kubermatic":   "an API server that counts another generation than was expected",
		"get addoncatalogues.kubermatic.k8c.io in kubermatic":     "a name that is taken: TestATakenNameHoldsUpItsAddonOnly of gitcatalogue",
		"get controllerrevisions.apps in kubermatic":              "a restart beside a wrong spec: TestKeepsTheLastValidSpecOverARestart of distributor",
		"update controllerrevisions.apps in kubermatic":           "a catalogue that is again as it was",
	},
	"trellis-seed": {
		"control addoncatalogues.kubermatic.k8c.io":          byPolicies,
		"control addoninstallations.kubermatic.k8c.io":       byPolicies,
		"delete addoncatalogues.kubermatic.k8c.io available": "asked for by an admission plugin of API servers, and no call: testOwnedAnew here",
		"control addonsets.kubermatic.k8c.io":                byPolicies,
		"patch events.events.k8s.io":                         toldTwice,
		"list addons.kubermatic.k8c.io":                      ofKKP,
		"watch addons.kubermatic.k8c.io":                     ofKKP,
		"list ipamallocations.kubermatic.k8c.io":             ofKKP,
		"watch ipamallocations.kubermatic.k8c.io":            ofKKP,
		"list kubermaticconfigurations.kubermatic.k8c.io":    ofKKP,
		"watch kubermaticconfigurations.kubermatic.k8c.io":   ofKKP,
		"update configmaps in kubermatic":                    "a user cluster that was replaced: tests of identities in pkg/cluster",
		"delete configmaps in kubermatic":                    "a Cluster that is gone for a while: TestIdentitiesOfClustersThatAreGone of pkg/cluster",
	},
	"trellis-distributor": {
		"control addoncatalogues.kubermatic.k8c.io in addon-catalogue": byPolicies,
		"control addonsets.kubermatic.k8c.io in addon-catalogue":       byPolicies,
		"get addoncatalogues.kubermatic.k8c.io in addon-catalogue":     "an add-on that becomes Core: TestReportsDuplicatesOnBothSides of distributor",
		"patch addoncatalogues.kubermatic.k8c.io in addon-catalogue":   "a seed that stores it otherwise: TestAnOlderSeedIsToldAndNotLooped of distributor",
		"patch addonsets.kubermatic.k8c.io in addon-catalogue":         "a seed that stores a copy otherwise than it was sent",
		"update secrets addon-catalogue-key in kubermatic":             "a key that was damaged",
	},
}

// sometimes are excused rights that a manager uses where it is killed, or slow, at an unlucky moment: such a run is no worse.
var sometimes = map[string][]string{
	"trellis-master": {
		"patch events.events.k8s.io", "patch addoncatalogues.kubermatic.k8c.io in kubermatic", "get addoncatalogues.kubermatic.k8c.io in kubermatic",
	},
	"trellis-seed": {"patch events.events.k8s.io"},
	"trellis-distributor": {
		"get addoncatalogues.kubermatic.k8c.io in addon-catalogue", "patch addoncatalogues.kubermatic.k8c.io in addon-catalogue",
		"patch addonsets.kubermatic.k8c.io in addon-catalogue",
	},
}

// testRights replays all calls that the managers made in these tests against the roles of the charts, and of deploy/seed. It turns red
// when one call was refused, when one went through by a right of somebody else, and when a right is left that no call used.
func testRights(t *testing.T, box *sandbox.Sandbox) {
	for _, of := range accounts(t, box) {
		t.Run(of.name, func(t *testing.T) {
			rights, err := audit.Granted(of.objects, sandbox.Namespace+":"+of.name)
			if err != nil {
				t.Fatal(err)
			}
			refused, foreign, spare := audit.Replay(of.events, "system:serviceaccount:"+sandbox.Namespace+":"+of.name, rights)
			for _, event := range refused {
				t.Errorf("it was refused a call: %s", event)
			}
			for _, event := range foreign {
				t.Errorf("no role of it allows what was let through: %s", event)
			}
			unused := map[string]bool{}
			for _, right := range spare {
				unused[right.String()] = true
				if excused[of.name][right.String()] == "" {
					t.Errorf("nobody used the right to %s", right)
				}
			}
			for right := range excused[of.name] {
				if !unused[right] && !slices.Contains(sometimes[of.name], right) {
					t.Errorf("the right to %s is used, or is no right: it needs no excuse", right)
				}
			}
			t.Logf("%d events, %d rights, %d of them excused", len(of.events), len(rights), len(excused[of.name]))
		})
	}
}

// account is a ServiceAccount, what grants it rights, and the calls on all API servers that it has them on.
type account struct {
	name    string
	objects []*unstructured.Unstructured
	events  []audit.Event
}

func accounts(t *testing.T, box *sandbox.Sandbox) []account {
	t.Helper()
	rendered := func(chart, cluster string) []*unstructured.Unstructured {
		_, objects, err := charts.Render(chart, sandbox.Namespace, box.ChartValues(cluster))
		if err != nil {
			t.Fatal(err)
		}
		return objects
	}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "deploy", "seed", "rights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	distributor, err := charts.Documents("rights.yaml", string(content))
	if err != nil {
		t.Fatal(err)
	}
	onSeeds := events(t, box, sandbox.Seeds()...)
	return []account{
		{"trellis-master", rendered("trellis-master", sandbox.Master), events(t, box, sandbox.Master)},
		{"trellis-seed", rendered("trellis-seed", sandbox.Seeds()[0]), onSeeds},
		{"trellis-distributor", distributor, onSeeds},
	}
}

func events(t *testing.T, box *sandbox.Sandbox, clusters ...string) []audit.Event {
	t.Helper()
	var all []audit.Event
	for _, cluster := range clusters {
		found, err := audit.Read(box.Fleet.Cluster(cluster).AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
