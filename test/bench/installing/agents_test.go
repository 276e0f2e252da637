package installing

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/bench/bar"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// agents is how many installations have a credential for the hub in BenchmarkAgents.
const agents = 1000

// BenchmarkAgents installs an add-on with a token 1,000 times, and starts the manager again. It fails unless that issues no token, writes
// nothing, and reads each credential once on the seed and once, without its content, in the user cluster.
func BenchmarkAgents(b *testing.B) {
	w := newWorld(b)
	if _, err := w.sources.Commit("four", map[string]string{"addon.yaml": addonTemplate}); err != nil {
		b.Fatal(err)
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}
	expect.Create(b, w.seed, given.AgentRights("agents", rule))
	w.offer(b, "four", &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate, Access: []kubermaticv1.Access{{
		Name: "hub", Rules: []kubermaticv1.AccessRule{{APIGroups: rule.APIGroups, Resources: rule.Resources, Verbs: rule.Verbs}},
	}}}, w.gitSource("four"))
	authorities := filepath.Join(b.TempDir(), "ca.crt")
	expect.NoError(b, os.WriteFile(authorities, w.both.Config.CAData, 0o600))
	flags := []string{"--hub-server", w.both.Config.Host, "--hub-ca-file", authorities}
	w.startManager(b, flags...)
	watching := w.watch(b)
	for b.Loop() {
		landed := w.measure(b, agents, func() time.Time {
			w.install(b, watching, "four", names("agent", agents))
			w.expectAccess(b)
			return time.Now()
		})
		b.Logf("%d installations with a credential: %s", agents, landed.calls.text(agents))
		w.calm(b)
		w.stopManager(b)
		again := w.measure(b, agents, func() time.Time {
			w.startManager(b, flags...)
			w.calm(b)
			pause(b, upgradeTime)
			return time.Now()
		})
		b.Logf("started again: %s", again.calls.text(1))
		bar.Exactly(b, "writes", float64(again.calls.writes()), 0)
		for name, count := range again.calls {
			verb, resource, _ := strings.Cut(name, " ")
			switch {
			case verb != "GET" && verb != "LIST" && resource != "events":
				b.Errorf("it writes: %d x %s", count, name)
			case name == "GET secrets" && count > 3*agents+agents/10: // each has a release record; those of sources besides
				b.Errorf("%d reads of Secrets, two for each credential at most", count)
			}
		}
	}
}

// expectAccess waits until each installation says that its credential is there.
func (w *world) expectAccess(b *testing.B) {
	b.Helper()
	expect.Eventually(b, patience, func() error {
		var list kubermaticv1.AddonInstallationList
		if err := w.seed.List(b.Context(), &list, client.InNamespace(clusterNamespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, kubermaticv1.ConditionAccessReady) {
				return fmt.Errorf("%q has no credential yet", list.Items[i].Name)
			}
		}
		return nil
	})
}
