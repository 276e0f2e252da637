package endtoend_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
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
	byPolicies    = "asked for by policies and no call: TestWhoMayWrite of test/admission"
	byPlugin      = "asked for by an admission plugin of API servers, and no call: testOwnedAgain here"
	byApproval    = "asked for by an admission plugin of API servers, and no call: testAgents, testLogIn"
	reportedTwice = "an event that is told twice within six minutes while its object stays as it is: " +
		"TestManagersHaveTheRightsTheyNeedAndNoOthers of test/charts"
)

// toApprove is the right to approve requests for the signer of approves.
const toApprove = "approve signers.certificates.k8s.io " + kubermaticv1.SignerAPIServer

// excused are rights that these tests can't use, with the reason and the test that does. One that is used does not belong here.
var excused = map[string]map[string]string{
	"trellis-master": {
		"control addoncatalogues.kubermatic.k8c.io in kubermatic": byPolicies,
		"patch events.events.k8s.io":                              reportedTwice,
	},
	"trellis-seed": {
		"control addoncatalogues.kubermatic.k8c.io":          byPolicies,
		"control addoninstallations.kubermatic.k8c.io":       byPolicies,
		"delete addoncatalogues.kubermatic.k8c.io available": byPlugin,
		"control addonsets.kubermatic.k8c.io":                byPolicies,
		"patch events.events.k8s.io":                         reportedTwice,
		"patch secrets":                                      handedOut,
		toApprove:                                            byApproval,
	},
	"trellis-distributor": {
		"control addoncatalogues.kubermatic.k8c.io in addon-catalogue": byPolicies,
		"control addonsets.kubermatic.k8c.io in addon-catalogue":       byPolicies,
	},
}

// sometimes are excused rights that a manager uses where it is killed, or slow, at an unlucky moment: such a run is no worse.
var sometimes = map[string][]string{"trellis-master": {"patch events.events.k8s.io"}, "trellis-seed": {"patch events.events.k8s.io"}}

// testRights replays all calls that the managers made in these tests against the roles of the charts, and of deploy/seed. It turns red
// when one call was refused, when one went through by a right of somebody else, and when a right is left that no call used.
func testRights(t *testing.T, box *sandbox.Sandbox) {
	for _, of := range accounts(t, box) {
		t.Run(of.name, func(t *testing.T) { of.expectRights(t, excused[of.name], sometimes[of.name]) })
	}
}

// expectRights holds that an account had each right that it needed and used each that it had, but for those that are excused.
func (a account) expectRights(t *testing.T, excused map[string]string, sometimes []string) {
	t.Helper()
	rights, err := audit.Granted(a.objects, sandbox.Namespace+":"+a.name)
	if err != nil {
		t.Fatal(err)
	}
	refused, foreign, spare := audit.Replay(a.events, "system:serviceaccount:"+sandbox.Namespace+":"+a.name, rights)
	for _, event := range refused {
		t.Errorf("it was refused a call: %s", event)
	}
	for _, event := range foreign {
		t.Errorf("no role of it allows what was let through: %s", event)
	}
	unused := map[string]bool{}
	for _, right := range spare {
		unused[right.String()] = true
		if excused[right.String()] == "" {
			t.Errorf("nobody used the right to %s", right)
		}
	}
	for right := range excused {
		if !unused[right] && !slices.Contains(sometimes, right) {
			t.Errorf("the right to %s is used, or is no right: it needs no excuse", right)
		}
	}
	t.Logf("%d events, %d rights, %d of them excused", len(a.events), len(rights), len(excused))
}

// account is a ServiceAccount, what grants it rights, and the calls on all API servers that it has them on.
type account struct {
	name    string
	objects []*unstructured.Unstructured
	events  []audit.Event
}

func accounts(t *testing.T, box *sandbox.Sandbox) []account {
	t.Helper()
	return accountsOn(t, box, sandbox.Seeds())
}

// accountsOn are those of a platform with these seeds, whose charts have the same values.
func accountsOn(t *testing.T, box *sandbox.Sandbox, seeds []string) []account {
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
	onSeeds := events(t, box, seeds...)
	return []account{
		{"trellis-master", rendered("trellis-master", sandbox.Master), events(t, box, sandbox.Master)},
		{"trellis-seed", rendered("trellis-seed", seeds[0]), onSeeds},
		{"trellis-distributor", distributor, onSeeds},
	}
}

func events(t *testing.T, box *sandbox.Sandbox, clusters ...string) []audit.Event {
	t.Helper()
	var all []audit.Event
	for _, cluster := range clusters {
		found, err := audit.Read(box.Server(cluster).AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
