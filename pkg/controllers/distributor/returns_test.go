package distributor_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// repository is catalogue "team" in git, which nobody read yet.
func (w *world) repository() *v1.AddonCatalogue {
	w.t.Helper()
	team := w.catalogueOf("team", nil)
	team.Spec.Git = &v1.CatalogueGit{Remote: "https://git.example.com/team.git"}
	expect.Create(w.t, w.master, team)
	return team
}

// isRead has a repository with add-on web in one version.
func (w *world) isRead(team *v1.AddonCatalogue, version string) (child *v1.AddonCatalogue) {
	w.t.Helper()
	child = w.catalogueOf("team-web-"+string(team.UID[:6]), map[string][]string{"web": {version}})
	child.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	child.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue", Name: team.Name, UID: team.UID, Controller: new(true),
	}}
	expect.Create(w.t, w.master, child)
	expect.ChangeStatus(w.t, w.master, team, func(team *v1.AddonCatalogue) {
		team.Status.Addons, team.Status.Revision = 1, "abc"
		conditions.True(&team.Status.Conditions, team.Generation, v1.ConditionFetched, v1.ReasonFetched, "as tested")
	})
	return child
}

// lose a catalogue in git, and what the garbage collector deletes with it.
func (w *world) lose(team, child *v1.AddonCatalogue) {
	w.t.Helper()
	expect.Delete(w.t, w.master, team)
	expect.Delete(w.t, w.master, child)
}

// A catalogue in git is deleted and made again. Red when the seeds lose its add-ons before the new one was read, while the manager runs or
// over a restart; when they keep them for ever; and when they keep what a commit takes out.
func TestARepositoryThatIsMadeAgainLosesNothing(t *testing.T) {
	w := newWorld(t)
	w.seed("local", kubeconfigOf("master"))
	now := kit.RunningClock(t)
	clocked := func(options *distributor.Options) { options.Clock = now }
	stop := w.start(clocked)
	stays := func() error {
		return w.master.Get(t.Context(), client.ObjectKeyFromObject(w.merged("web")), w.merged("web"))
	}
	team := w.repository()
	child := w.isRead(team, "1.0.0")
	w.expectVersions("master", "web", "1.0.0")
	w.lose(team, child)
	team = w.repository()
	w.steady(stays)
	child = w.isRead(team, "2.0.0")
	w.expectVersions("master", "web", "2.0.0")

	stop()
	w.lose(team, child)
	team = w.repository()
	stop = w.start(clocked)
	w.steady(stays)
	child = w.isRead(team, "3.0.0")
	w.expectVersions("master", "web", "3.0.0")

	expect.Delete(t, w.master, child) // as by a commit
	expect.Gone(t, w.master, w.merged("web"))
	child = w.isRead(team, "4.0.0")
	w.expectVersions("master", "web", "4.0.0")
	w.lose(team, child)
	team = w.repository()
	w.steady(stays)
	now.Step(10 * time.Minute) // it is never read
	expect.Change(w.t, w.master, team, func(team *v1.AddonCatalogue) { team.Labels = map[string]string{"looked": "at"} })
	expect.Gone(t, w.master, w.merged("web"))
	stop()
}
