package endtoend_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// TestPlatformOfClusterAPI runs a platform whose user clusters are Cluster API's, on a management cluster that is master and seed, through
// what its managers do there, one after the other.
func TestPlatformOfClusterAPI(t *testing.T) {
	long.Turn(t, "endtoend", 3)
	manually := []string{"KUBE_FEATURE_WatchListClient=false"}
	box := start(t, sandbox.Options{
		Clusters: sandbox.ClusterAPI, Approve: approves, Elect: []string{sandbox.Master, sandbox.Management},
		Environment: map[string][]string{sandbox.Master: manually, sandbox.Management: manually},
	})
	m := &management{Client: box.Client(sandbox.Management), box: box, upgraded: sandbox.TeamClusters()[0], removed: sandbox.TeamClusters()[1]}
	t.Run("an upgrade is let go by hand", m.testRelease)
	t.Run("a set comes and goes", m.testSet)
	agents := m.agents(t)
	t.Run("agents of Clusters in one namespace log in, each by itself", agents.testLogIn)
	expectGone := m.remove(t) // which takes half a minute: one answer is not believed
	t.Run("what ClusterResourceSets brought is taken over", m.testResourceSets)
	t.Run("an add-on that a Cluster asks for comes and goes", m.testAskedFor)
	t.Run("the pull Secret comes and goes", func(t *testing.T) { testPullSecret(t, box, m.upgraded) })
	t.Run("a catalogue without its owner", func(t *testing.T) { testOwnedAgain(t, box, m.upgraded) })
	t.Run("queries are answered", m.testQuery)
	t.Run("metrics are for who may get them", func(t *testing.T) { testMetrics(t, box) })
	t.Run("an upgrade is held until its add-ons fit, and its workers until they are right", m.testUpgrade)
	t.Run("a Cluster goes with what was installed in it", expectGone)
	t.Run("the agent of a Cluster that went has nothing left", agents.testEnded)
	t.Run("no call is refused, and no right is spare", func(t *testing.T) { testRightsOfClusterAPI(t, box) })
}

// management is a management cluster of Cluster API with two user clusters: one is upgraded, the other one let go and removed.
type management struct {
	client.Client
	box               *sandbox.Sandbox
	upgraded, removed sandbox.UserCluster
}

// of is the Cluster of a user cluster.
func of(cluster sandbox.UserCluster) types.NamespacedName {
	return types.NamespacedName{Namespace: cluster.Namespace(), Name: cluster.Name}
}

// existing is an installation in a user cluster, to be read.
func existing(cluster sandbox.UserCluster, name string) *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(), Name: name}}
}

// annotate puts an annotation on a Cluster; "" takes it off.
func (m *management) annotate(t *testing.T, cluster sandbox.UserCluster, annotation, value string) {
	t.Helper()
	expect.NoError(t, clusterapi.Annotate(t.Context(), m, of(cluster), annotation, value))
}

func (m *management) testAskedFor(t *testing.T) {
	m.annotate(t, m.upgraded, kubermaticv1.AnnotationInitialInstallations,
		`[{"name":"asked","addonRef":{"name":"web","version":"1.0.0"},"targetNamespace":"default"}]`)
	installation := existing(m.upgraded, m.upgraded.Name+".asked")
	ready(t, m, installation)
	cluster := sandbox.TeamObject(m.upgraded)
	expect.Object(t, m, cluster, func(found *unstructured.Unstructured) error {
		if asked := found.GetAnnotations()[kubermaticv1.AnnotationInitialInstallations]; asked != "" {
			return fmt.Errorf("it asks for %s", asked)
		}
		return nil
	})
	web := &appsv1.DeploymentList{}
	user := m.box.Client(m.upgraded.Name)
	if err := user.List(t.Context(), web, client.InNamespace(metav1.NamespaceDefault)); err != nil || len(web.Items) != 1 {
		t.Fatalf("%d Deployments are there: %v", len(web.Items), err)
	}
	dropInstallation(t, m, installation)
	expect.Gone(t, user, &web.Items[0])
}

func (m *management) testSet(t *testing.T) {
	master, set := m.box.Client(sandbox.Master), &kubermaticv1.AddonSet{}
	expect.NoError(t, m.box.Manifest("sets/web.yaml", set))
	set.Spec.Rollout.Groups, set.Spec.Rollout.Soak = nil, &metav1.Duration{}
	set.Spec.Addons[0].TargetNamespace, set.Spec.Addons[0].CreateNamespace = metav1.NamespaceDefault, false
	expect.Ensure(t, master, set)
	expectComplete := func(clusters int32) {
		t.Helper()
		expect.Object(t, master, set.DeepCopy(), func(found *kubermaticv1.AddonSet) error {
			if counted := found.Status.Counts; counted == nil || counted.Selected != clusters {
				return fmt.Errorf("it counts %+v", counted)
			}
			return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonComplete)
		})
	}
	expectComplete(2)
	inUpgraded, inOther := existing(m.upgraded, m.upgraded.Name+".web"), existing(m.removed, m.removed.Name+".web")
	unlabelled := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, sandbox.LabelRing))
	expect.Patch(t, m, sandbox.TeamObject(m.removed), unlabelled)
	expect.Gone(t, m, inOther)
	expectComplete(1)
	dropSet(t, master, set)
	expect.Gone(t, m, inUpgraded)
}

func (m *management) testQuery(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", m.box.QueryKubeconfig(sandbox.Management))
	expect.NoError(t, err)
	if status, body := query(t, config, "/api/v1/namespaces/"+sandbox.Team+"/addons?cluster="+m.upgraded.Name); status != http.StatusOK {
		t.Errorf("got %d %s", status, body)
	}
}

func (m *management) awaitHeld(t *testing.T, cluster sandbox.UserCluster, status, reason string) {
	t.Helper()
	expect.HasCondition(t, m, sandbox.AvailableIn(cluster), expect.Is(kubermaticv1.ConditionUpgradeHeld, status, reason))
}

// testRelease is red when the annotation that holds upgrades stays, or does not come again.
func (m *management) testRelease(t *testing.T) {
	m.annotate(t, m.removed, kubermaticv1.AnnotationUpgradeHold, kubermaticv1.UpgradeHoldOff)
	m.awaitHeld(t, m.removed, "False", kubermaticv1.ReasonOverridden)
	m.awaitHook(t, false)
	m.annotate(t, m.removed, kubermaticv1.AnnotationUpgradeHold, "")
	m.awaitHook(t, true)
}

func (m *management) awaitHook(t *testing.T, want bool) {
	t.Helper()
	expect.Object(t, m, sandbox.TeamObject(m.removed), func(found *unstructured.Unstructured) error {
		if _, is := found.GetAnnotations()[capiv1.AnnotationBeforeUpgrade]; is != want {
			return fmt.Errorf("annotations are %v", found.GetAnnotations())
		}
		return nil
	})
}

// remove begins to remove a Cluster. What it returns is red when the Cluster does not go, or something that stands for it stays.
func (m *management) remove(t *testing.T) func(t *testing.T) {
	t.Helper()
	cluster := sandbox.TeamObject(m.removed)
	expect.Delete(t, m, cluster)
	return func(t *testing.T) {
		expect.Gone(t, m, cluster)
		expect.Gone(t, m, sandbox.AvailableIn(m.removed))
		expect.Eventually(t, expect.Patience, func() error {
			var left kubermaticv1.AddonInstallationList
			err := m.List(t.Context(), &left, client.InNamespace(sandbox.Team))
			for i := range left.Items {
				if one := &left.Items[i]; one.Spec.ClusterName == m.removed.Name {
					err = errors.Join(err, fmt.Errorf("%s stays: %v", one.Name, one.Status.Conditions))
				}
			}
			return err
		})
		ready(t, m, existing(m.upgraded, m.upgraded.Name+".cni"))
	}
}

// excusedWithClusterAPI are rights that these tests don't use, as in excused.
var excusedWithClusterAPI = map[string]map[string]string{
	"trellis-master": {
		"get controllerrevisions.apps in kubermatic":              "a spec that was brought back: testRevisionBroughtBack of TestPlatform",
		"update controllerrevisions.apps in kubermatic":           "a spec that was brought back: testRevisionBroughtBack of TestPlatform",
		"get addoncatalogues.kubermatic.k8c.io in kubermatic":     fromGit,
		"create addoncatalogues.kubermatic.k8c.io in kubermatic":  fromGit,
		"update addoncatalogues.kubermatic.k8c.io in kubermatic":  fromGit,
		"patch addoncatalogues.kubermatic.k8c.io in kubermatic":   fromGit,
		"delete addoncatalogues.kubermatic.k8c.io in kubermatic":  fromGit,
		"control addoncatalogues.kubermatic.k8c.io in kubermatic": byPolicies,
		"patch events.events.k8s.io":                              reportedTwice,
	},
	"trellis-seed": {
		"control addoncatalogues.kubermatic.k8c.io":    byPolicies,
		"control addoninstallations.kubermatic.k8c.io": byPolicies,
		"delete addoncatalogues.kubermatic.k8c.io":     byPlugin,
		"control addonsets.kubermatic.k8c.io":          byPolicies,
		"patch events.events.k8s.io":                   reportedTwice,
		"patch secrets":                                handedOut,
		toApprove:                                      byApproval,
		"delete certificatesigningrequests.certificates.k8s.io": "a request that waits for somebody while its add-on goes: " +
			"testAgents of TestPlatform",
	},
	"trellis-distributor": {
		"update secrets in addon-catalogue":                            "a Secret of a source that changes: testSourceSecret of TestPlatform",
		"delete secrets in addon-catalogue":                            "a Secret of a source that goes: testSourceSecret of TestPlatform",
		"get addoncatalogues.kubermatic.k8c.io in addon-catalogue":     "an add-on that becomes Core: testReserved of TestPlatform",
		"patch addoncatalogues.kubermatic.k8c.io in addon-catalogue":   "a digest that was damaged: testDamaged of TestPlatform",
		"patch addonsets.kubermatic.k8c.io in addon-catalogue":         "a seed that stores more: testStoresMore of TestPlatform",
		"update secrets addon-catalogue-key in kubermatic":             "a key that was damaged: testDamaged of TestPlatform",
		"control addoncatalogues.kubermatic.k8c.io in addon-catalogue": byPolicies,
		"control addonsets.kubermatic.k8c.io in addon-catalogue":       byPolicies,
	},
}

// fromGit is what uses rights on generated catalogues.
const fromGit = "a catalogue in git: testGenerated of TestPlatform"

// testRightsOfClusterAPI is testRights with the roles that the charts have here. It turns red when the manager of the seed may, or asks
// for, what is KKP's alone.
func testRightsOfClusterAPI(t *testing.T, box *sandbox.Sandbox) {
	for _, of := range accountsOn(t, box, []string{sandbox.Management}) {
		t.Run(of.name, func(t *testing.T) { of.expectRights(t, excusedWithClusterAPI[of.name], sometimes[of.name]) })
	}
}
