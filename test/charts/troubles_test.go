package charts

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// catalogueInGit has one add-on, in files as a repository of a catalogue has them.
var catalogueInGit = map[string]string{
	"addons/of-git/1.0.0/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-git}\n",
}

// expectFigures has something of everything that dashboards and alerts are about, and takes it back.
func expectFigures(t *testing.T, c client.Client, sources *fleet.Sources, metrics map[string]string) {
	t.Helper()
	reported := &figures{scraper: newScraper(t, c), metrics: metrics, scrapes: map[string][]scrape{}}
	selectNobody(t, c, func() { expect.NoError(t, reported.scrape(t)) })
	mend := makeTroubles(t, c, sources)
	expect.NoError(t, reported.scrape(t))
	reconnect := disconnect(t, c) // nothing in the cluster is known any more, so this is the last one
	reported.expectAnswers(t)
	reconnect()
	mend()
}

// selectNobody has a set select no cluster while something is done.
func selectNobody(t *testing.T, c client.Client, do func()) {
	t.Helper()
	set := given.Set(namespace, "nobody", "hello")
	set.Spec.ClusterSelector.MatchLabels = map[string]string{"nobody": "has-this"}
	set.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: set.Name}
	expect.Create(t, c, set)
	expect.HasCondition(t, c, set, expect.Is(kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonNoClusterSelected))
	do()
	expect.Delete(t, c, set)
	expect.Gone(t, c, set)
}

// makeTroubles gives what takes them back.
func makeTroubles(t *testing.T, c client.Client, sources *fleet.Sources) (mend func()) {
	t.Helper()
	if _, err := sources.Commit("catalogue", catalogueInGit); err != nil {
		t.Fatal(err)
	}
	taken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	lost := catalogue(sources)
	lost.Name, lost.Spec.Addons[0].Name = "lost", "lost"
	lost.Spec.Addons[0].Versions[0].Source.Git.Ref = &kubermaticv1.GitRef{Branch: "none"}
	agents := agentsInTrouble(sources)
	held := requestAddon("taken", "hello", taken.Name)
	waiting := requestAddon("waiting", "hello", "waiting")
	waiting.Spec.DependsOn = []kubermaticv1.InstallationName{"nothing"}
	made := []client.Object{
		taken,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: taken.Name}, Data: map[string]string{"cluster": "somebody's"}},
		inGit("in-git", "main", sources), inGit("nowhere", "none", sources), lost,
		&kkpv1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: "lost", Namespace: namespace},
			Spec:       kkpv1.SeedSpec{Kubeconfig: kkpv1.ObjectReference{Name: "no-kubeconfig", Namespace: namespace}},
		},
		held, waiting,
	}
	for _, object := range append(made, agents...) {
		expect.Create(t, c, object)
	}
	expectOffered(t, c, "lost")
	unfetched := requestAddon("unfetched", "lost", "unfetched")
	expect.Create(t, c, unfetched)
	askFor(t, c)
	askQuery(t)
	for installation, reason := range map[*kubermaticv1.AddonInstallation]string{
		held: kubermaticv1.ReasonObjectExists, waiting: kubermaticv1.ReasonDependencyMissing,
	} {
		expect.HasCondition(t, c, installation, expect.Is(kubermaticv1.ConditionReady, "False", reason))
	}
	return func() {
		t.Helper()
		for _, name := range []string{"agent", "denied", "misjudged"} {
			object := requestAddon(name, name, name)
			expect.Delete(t, c, object)
			expect.Gone(t, c, object)
		}
		for _, object := range append(append(made[2:], unfetched), agents...) {
			expect.Delete(t, c, object)
			expect.Gone(t, c, object)
		}
	}
}

func requestAddon(name, addon, place string) *kubermaticv1.AddonInstallation {
	return given.Installation("cluster-one", name, addon, place, given.NewNamespace)
}

// inGit is a catalogue on a branch of a repository.
func inGit(name, branch string, sources *fleet.Sources) *kubermaticv1.AddonCatalogue {
	made := given.InGit(namespace, name, sources.GitURL+"/catalogue.git", given.Authority)
	made.Spec.Git.Ref = &kubermaticv1.GitRef{Branch: branch}
	return made
}

// agentsInTrouble are add-ons with a credential for the hub, without one since it is not listed, and with a rule of health that can't be
// evaluated; and the list.
func agentsInTrouble(sources *fleet.Sources) []client.Object {
	list := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	objects := []client.Object{given.AgentRights("agents", list)}
	for name, change := range map[string]func(*kubermaticv1.Template){
		"agent":  func(template *kubermaticv1.Template) { template.Access = []kubermaticv1.Access{accessTo("configmaps")} },
		"denied": func(template *kubermaticv1.Template) { template.Access = []kubermaticv1.Access{accessTo("events")} },
		"misjudged": func(template *kubermaticv1.Template) {
			template.Health = &kubermaticv1.HealthCheck{Rules: []kubermaticv1.HealthRule{
				{APIVersion: "v1", Kind: "ConfigMap", Healthy: "int(self.data.cluster) > 0"},
			}}
		},
	} {
		made := catalogue(sources)
		made.Name, made.Spec.Addons[0].Name = name, kubermaticv1.AddonName(name)
		change(made.Spec.Addons[0].Versions[0].Template)
		objects = append(objects, made)
	}
	return objects
}

func accessTo(resource string) kubermaticv1.Access {
	return kubermaticv1.Access{Name: "hub", Rules: []kubermaticv1.AccessRule{
		{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}},
	}}
}

// askFor the add-ons of agentsInTrouble.
func askFor(t *testing.T, c client.Client) {
	t.Helper()
	for name, ready := range map[string][2]string{
		"agent": {"True", kubermaticv1.ReasonReady}, "denied": {"False", kubermaticv1.ReasonRightsRefused},
		"misjudged": {"False", kubermaticv1.ReasonRuleFailed},
	} {
		expectOffered(t, c, name)
		object := requestAddon(name, name, name)
		expect.Create(t, c, object)
		expect.HasCondition(t, c, object, expect.Is(kubermaticv1.ConditionReady, ready[0], ready[1]))
	}
}

func expectOffered(t *testing.T, c client.Client, addon string) {
	t.Helper()
	available := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: kubermaticv1.AvailableCatalogue, Namespace: "cluster-one"}}
	expect.Object(t, c, available, func(found *kubermaticv1.AddonCatalogue) error {
		for i := range found.Spec.Addons {
			if string(found.Spec.Addons[i].Name) == addon {
				return nil
			}
		}
		return fmt.Errorf("%q is not offered yet", addon)
	})
}

// disconnect has the kubeconfig of the cluster lead to where nothing answers.
func disconnect(t *testing.T, c client.Client) (reconnect func()) {
	t.Helper()
	secret := given.Kubeconfig("cluster-one", nil)
	expect.Read(t, c, secret)
	right := secret.Data["kubeconfig"]
	put := func(kubeconfig []byte) {
		t.Helper()
		secret.Data["kubeconfig"] = kubeconfig
		expect.Update(t, c, secret)
	}
	put(regexp.MustCompile(`server: \S+`).ReplaceAll(right, []byte("server: https://127.0.0.1:1")))
	return func() { put(right) }
}

var queryAddress = regexp.MustCompile(`the query endpoint listens.*address=(\S+)`)

// askQuery asks the query endpoint, as somebody whom it does not know.
func askQuery(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(logOf(rendering{chart: "trellis-seed"}))
	expect.NoError(t, err)
	found := queryAddress.FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("the log does not say where queries are answered")
	}
	stranger := &scraper{token: "invented", web: insecureClient(t)}
	_, err = stranger.get(t, "https://"+found[1]+"/api/v1/addons")
	if err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) {
		t.Errorf("a stranger's query: %v", err)
	}
}
