package standins

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

func asked(clusterName, version string) *v1.AddonInstallation {
	return given.Installation(NamespaceOf(clusterName), "web", "web", "web", given.In(version))
}

// Clusters are such as the product finds them, and the player does on an API server what courses say: by cluster, and otherwise once it
// is directed so. Red when a Cluster isn't found, when a status is written though nothing changed, or when a dead cluster lets go.
func TestAPlatformOfStubs(t *testing.T) {
	config := fleet.Shared().Cluster("seed").Config
	clusters := NewClusters(t, config)
	rings := func(number int) map[string]string { return map[string]string{"ring": strconv.Itoa(number % 4)} }
	names := clusters.Make(t, Shape{Count: 40, Labels: rings})
	var list kkpv1.ClusterList
	if err := clusters.Client().List(t.Context(), &list, client.MatchingLabels{"ring": "1"}); err != nil || len(list.Items) != 10 {
		t.Fatalf("%d Clusters of 10, %v", len(list.Items), err)
	}
	if found := cluster.Describe(&list.Items[0]); !found.APIServerUp || found.KubernetesVersion != Kubernetes ||
		found.Namespace != NamespaceOf(found.Name) || ClusterOf(found.Namespace) != found.Name {
		t.Errorf("a Cluster is %+v", found)
	}
	dead := Rule{Of: InClusters(names[0]), Act: Act{Fate: Unreachable}}
	player := Play(t, config, dead, Rule{Of: InClusters(names[1]), Act: Act{Takes: time.Second}})
	for _, name := range names {
		expect.Create(t, clusters.Client(), asked(name, "1.0.0"))
	}
	settled(t, clusters, names[:1], "ClusterUnreachable")
	settled(t, clusters, names[1:], "Ready")
	want := Wrote{Finalizers: 40, Statuses: 41} // one of them in two steps
	if wrote := player.Wrote(); wrote != want {
		t.Errorf("the player wrote %+v, want %+v", wrote, want)
	}

	player.Direct(t, dead, Rule{Of: AtVersion("web", "2.0.0"), Act: Act{Fate: RollsBack, Takes: time.Second}})
	for _, name := range names {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"addonRef":{"version":"2.0.0"}}}`))
		expect.Patch(t, clusters.Client(), asked(name, ""), patch)
	}
	settled(t, clusters, names[1:], "RolledBack")
	for _, name := range names {
		expect.Delete(t, clusters.Client(), asked(name, ""))
	}
	for _, name := range names[1:] {
		expect.Gone(t, clusters.Client(), asked(name, ""))
	}
	settled(t, clusters, names[:1], "ClusterUnreachable")
	player.Direct(t)
	expect.Gone(t, clusters.Client(), asked(names[0], ""))
}

func settled(t *testing.T, clusters *Clusters, names []string, reason string) {
	t.Helper()
	for _, name := range names {
		expect.Object(t, clusters.Client(), asked(name, ""), func(found *v1.AddonInstallation) error {
			for _, state := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
				if expect.Condition(found, v1.ConditionReady, string(state), reason) == nil {
					return nil
				}
			}
			return expect.Condition(found, v1.ConditionReady, "any", reason)
		})
	}
}
