package gitcatalogue_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestEachAddonBecomesACatalogue(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0", "tempo", "1.0.0"), "deep/b.yaml": file("mimir", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	object.Spec.Type, object.Spec.Priority = v1.CatalogueCore, 7
	expect.Create(w.t, w.client, object)
	children := w.expectAddons(object, first, "loki", "1.0.0", "tempo", "1.0.0", "mimir", "1.0.0")
	w.expectFetched(object, "True", v1.ReasonFetched)
	loki := children["loki"]
	if !regexp.MustCompile(`^platform-loki-[0-9a-f]{6}$`).MatchString(loki.Name) {
		t.Errorf("name %q", loki.Name)
	}
	if loki.Spec.Type != v1.CatalogueCore || loki.Spec.Priority != 7 || loki.Annotations[v1.AnnotationRevision] != first {
		t.Errorf("spec %+v, annotations %v", loki.Spec, loki.Annotations)
	}

	// A commit writes what it changes and nothing else.
	second := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0", "tempo", "1.0.0"), "deep/b.yaml": file("thanos", "1.0.0")})
	w.look(object)
	after := w.expectAddons(object, second, "loki", "2.0.0", "tempo", "1.0.0", "thanos", "1.0.0")
	if after["tempo"].ResourceVersion != children["tempo"].ResourceVersion || after["loki"].UID != children["loki"].UID {
		t.Error("what did not change was written, or what changed was made again")
	}
	expect.Eventually(t, expect.Patience, func() error {
		if events := w.events(object); !slices.Contains(events, v1.EventFetched) {
			return fmt.Errorf("events %v", events)
		}
		return nil
	})

	// Edits of what was generated are put back; so is what was deleted.
	edited := after["loki"]
	edited.Spec.Addons[0].Versions[0].Version = "6.6.6"
	expect.Update(t, w.client, edited)
	w.expectAddons(object, second, "loki", "2.0.0", "tempo", "1.0.0", "thanos", "1.0.0")
	expect.Delete(t, w.client, after["tempo"])
	w.expectAddons(object, second, "loki", "2.0.0", "tempo", "1.0.0", "thanos", "1.0.0")

	// Idle writes nothing, and a catalogue that leaves git loses what was generated.
	before := w.resourceVersions(w.children(object))
	before["parent"] = object.ResourceVersion
	w.steady(func() error {
		now := w.resourceVersions(w.children(object))
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		now["parent"] = object.ResourceVersion
		if diff := cmp.Diff(before, now); diff != "" {
			return fmt.Errorf("something was written: %s", diff)
		}
		return nil
	})
	expect.Change(t, w.client, object, func(object *v1.AddonCatalogue) { object.Spec.Git = nil })
	expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
		if left := len(w.children(object)); left != 0 || object.Status.Revision != "" || len(object.Status.Conditions) != 0 {
			return fmt.Errorf("%d add-ons are left, status %+v", left, object.Status)
		}
		return nil
	})
}

func TestFollowsEveryKindOfReference(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.repository.Annotate("v1.4.0", first)
	second := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0")})
	w.repository.Ref("refs/tags/v1.10.0", second)
	third := w.commit(map[string]string{"a.yaml": file("loki", "3.0.0")})
	w.repository.Ref("refs/tags/v2.0.0", third)
	fourth := w.repository.Commit("next", map[string]string{"catalogue/a.yaml": file("loki", "4.0.0")})
	w.start("", "")
	for name, test := range map[string]struct {
		ref               *v1.GitRef
		revision, version string
	}{
		"default": {nil, third, "3.0.0"},
		"branch":  {&v1.GitRef{Branch: "next"}, fourth, "4.0.0"},
		"tag":     {&v1.GitRef{Tag: "v1.4.0"}, first, "1.0.0"},
		"commit":  {&v1.GitRef{Commit: third}, third, "3.0.0"},
		"semver":  {&v1.GitRef{Semver: "1.x"}, second, "2.0.0"},
	} {
		object := w.catalogue("by-"+name, func(git *v1.CatalogueGit) { git.Ref = test.ref })
		expect.Create(w.t, w.client, object)
		w.expectAddons(object, test.revision, "loki", test.version)
	}
}

// Anchors, merge keys with overrides and closed documents are read in a repository as kubectl reads them in a manifest. Red when the commit
// is refused, or a version is another than with all of it written out.
func TestYAMLOfARepositoryIsReadWhole(t *testing.T) {
	w := newWorld(t)
	anchored := `- name: cat-anchor
  versions:
  - &one {version: 1.0.0, template: {method: go-template}, source: {git: {remote: "https://git.example.com/a.git", ref: {branch: main}, path: a}}}
  - {<<: *one, version: 1.1.0}
  - {<<: *one, version: 1.2.0, source: {git: {remote: "https://git.example.com/a.git", ref: {branch: next}, path: a}}}
- name: cat-other
  versions:
  - <<: [*one, {version: 9.9.9, deprecated: it was a trial}]
    values: &v {a: 1, b: 2}
  - {<<: *one, version: 2.0.0, values: {<<: *v, b: 3}}
`
	written := func(version, branch, more string) string {
		return fmt.Sprintf("  - {version: %s, template: {method: go-template}, source: {git: {remote: \"https://git.example.com/a.git\", "+
			"ref: {branch: %s}, path: a}}%s}\n", version, branch, more)
	}
	plain := "- name: plain-anchor\n  versions:\n" + written("1.0.0", "main", "") + written("1.1.0", "main", "") + written("1.2.0", "next", "") +
		"- name: plain-other\n  versions:\n" + written("1.0.0", "main", ", deprecated: it was a trial, values: {a: 1, b: 2}") +
		written("2.0.0", "main", ", values: {a: 1, b: 3}")
	commit := w.commit(map[string]string{"anchored.yaml": anchored + "---\n", "plain.yaml": "---\n" + plain})
	w.start("", "")
	object := w.catalogue("anchors")
	expect.Create(w.t, w.client, object)
	children := w.expectAddons(object, commit, "cat-anchor", "1.0.0", "cat-other", "1.0.0", "plain-anchor", "1.0.0", "plain-other", "1.0.0")
	for _, name := range []string{"anchor", "other"} {
		want, got := children["plain-"+name].Spec.Addons[0].Versions, children["cat-"+name].Spec.Addons[0].Versions
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-written out +got):\n%s", name, diff)
		}
	}
}

// AG01: A version that asks for Secrets of the seed has the whole commit refused.
func TestACommitIsTakenWholeOrNotAtAll(t *testing.T) {
	w := newWorld(t)
	good := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0", "tempo", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	before := w.resourceVersions(w.expectAddons(object, good, "loki", "1.0.0", "tempo", "1.0.0"))
	for _, test := range []struct{ why, file, want string }{
		{"no YAML", "- name: [\n", "b.yaml line 1: is not valid YAML"},
		{"an unknown field", "- name: mimir\n  verions: []\n", `b.yaml line 2: unknown field "verions" in addons[]`},
		{"a duplicate in the repository", file("loki", "v2.0.0"), `b.yaml line 3: add-on "loki" has version "v2.0.0" in a.yaml line 3 already`},
		{"what validation refuses", "- name: mimir\n  versions:\n  - version: a\n  - version: b\n    constraints: {k8sVersion: nonsense}\n",
			`b.yaml line 5: addon "mimir" version "b": constraints.k8sVersion`},
		{"a valuesTemplate that does not parse", "- name: mimir\n  versions:\n  - version: a\n    valuesTemplate: |\n      a: 1\n      {{-  := len .x }}\n",
			`b.yaml line 4: addon "mimir" version "a": valuesTemplate: line 2: unexpected ":="`},
		{"a rule of health over another root", "- name: mimir\n  versions:\n  - version: a\n    template:\n      method: helm\n" +
			"      health: {rules: [{apiVersion: v1, kind: A, healthy: other.ready}]}\n    source: {helm: {url: https://charts.example.com, chart: a, version: 1.0.0}}\n",
			`b.yaml line 6: addon "mimir" version "a": template.health.rules[0].healthy: it is not a CEL expression over self`},
		{"Secrets of the hub", "- name: mimir\n  versions:\n  - version: a\n    template:\n      method: helm\n" +
			"      access: [{name: hub, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}]\n" +
			"    source: {helm: {url: https://charts.example.com, chart: a, version: 1.0.0}}\n",
			`b.yaml line 6: addon "mimir" version "a": template.access[0].rules[0].resources[0]: agents can't get rights for "secrets"`},
		{"what only the API server refuses", "\n- name: mimir\n  documentationURL: gopher://x\n  versions: [{version: a}]\n",
			`b.yaml line 2: add-on "mimir": spec.addons[0].documentationURL`},
	} {
		bad := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0", "tempo", "1.0.0"), "b.yaml": test.file})
		w.look(object)
		expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
			if err := expect.Condition(object, v1.ConditionFetched, "False", v1.ReasonInvalid); err != nil {
				return fmt.Errorf("%s: %w", test.why, err)
			}
			for _, condition := range object.Status.Conditions {
				for _, part := range []string{bad, test.want, "the add-ons of commit " + good + " stay"} {
					if !strings.Contains(condition.Message, part) {
						return fmt.Errorf("%s: %q lacks %q", test.why, condition.Message, part)
					}
				}
			}
			return nil
		})
		if diff := cmp.Diff(before, w.resourceVersions(w.children(object))); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
		if object.Status.Revision != good {
			t.Errorf("%s: revision %s", test.why, object.Status.Revision)
		}
	}
	mended := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0", "tempo", "1.0.0")})
	w.look(object)
	w.expectAddons(object, mended, "loki", "2.0.0", "tempo", "1.0.0")
	w.expectFetched(object, "True", v1.ReasonFetched)
}

func TestMuchThatGoesNeedsApproval(t *testing.T) {
	w := newWorld(t)
	many := []string{}
	for i := range 10 {
		many = append(many, fmt.Sprintf("addon-%d", i), "1.0.0")
	}
	first := w.commit(map[string]string{"a.yaml": file(many...)})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, first, many...)

	// Five of ten are not more than half.
	second := w.commit(map[string]string{"a.yaml": file(many[:10]...)})
	w.look(object)
	w.expectAddons(object, second, many[:10]...)

	// An emptied repository takes all of them.
	empty := w.commit(map[string]string{"a.yaml": "# nothing any more\n"})
	w.look(object)
	message := w.expectFetched(object, "False", v1.ReasonRevisionNeedsApproval)
	if !strings.Contains(message, "removes 5 of 5 add-ons") || !strings.Contains(message, v1.AnnotationApproveRevision+"="+empty) {
		t.Errorf("message %q", message)
	}
	expect.Annotate(w.t, w.client, object, v1.AnnotationApproveRevision, first)
	w.steady(func() error {
		if have := len(w.children(object)); have != 5 {
			return fmt.Errorf("%d add-ons after the approval of another commit", have)
		}
		return nil
	})
	// Red when the short form of the right commit is passed over without a word.
	expect.Annotate(w.t, w.client, object, v1.AnnotationApproveRevision, empty[:7])
	expect.Eventually(t, expect.Patience, func() error {
		if message := w.expectFetched(object, "False", v1.ReasonRevisionNeedsApproval); !strings.Contains(message, "first characters") {
			return fmt.Errorf("message %q", message)
		}
		return nil
	})
	expect.Annotate(w.t, w.client, object, v1.AnnotationApproveRevision, empty)
	w.expectAddons(object, empty)
	w.expectFetched(object, "True", v1.ReasonFetched)
}

// Red when the one who is to approve a commit is not told which installations lose their version. An
// add-on that another catalogue has too loses none, and one that is another's lost them before.
func TestWhatACommitTakesFromInstallationsIsReported(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("a", "1.0.0", "b", "1.0.0", "c", "1.0.0", "d", "1.0.0", "e", "1.0.0", "f", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	children := w.expectAddons(object, first, "a", "1.0.0", "b", "1.0.0", "c", "1.0.0", "d", "1.0.0", "e", "1.0.0", "f", "1.0.0")
	other := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "other"}, Spec: children["f"].Spec}
	expect.Create(w.t, w.client, other)

	empty := w.commit(map[string]string{"a.yaml": "# nothing any more\n"})
	w.look(object)
	w.expectApprovable(object, empty, "not known whether installations use the removed versions: no seed was counted yet")

	north := catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{
		{Addon: "a", Version: "1.0.0"}: 2, {Addon: "b", Version: "1.0.0"}: 1, {Addon: "c", Version: "1.0.0"}: 4,
		{Addon: "d", Version: "1.0.0"}: 1, {Addon: "f", Version: "1.0.0"}: 9, {Addon: "elsewhere", Version: "1.0.0"}: 7,
	}}
	south := catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{{Addon: "a", Version: "1.0.0"}: 3, {Addon: "e"}: 1}}
	book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapUsage}}
	book.Data = map[string]string{"north": north.Encode(), "south": south.Encode()}
	expect.Create(w.t, w.client, book)
	w.look(object)
	w.expectApprovable(object, empty,
		"12 installations on 2 counted seeds use the removed versions (5 of a 1.0.0, 4 of c 1.0.0, 1 of b 1.0.0 and 2 more); nothing is uninstalled")

	owner := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "owner"}, Spec: *children["c"].Spec.DeepCopy()}
	owner.Spec.Addons[0].Versions[0].Version = "2.0.0"
	expect.Create(w.t, w.client, owner)
	expect.Create(w.t, w.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapOwners}, Data: catalogue.Owners{"c": {"owner"}}.Encode(),
	})
	w.look(object)
	w.expectApprovable(object, empty,
		"8 installations on 2 counted seeds use the removed versions (5 of a 1.0.0, 1 of b 1.0.0, 1 of d 1.0.0 and 1 more); nothing is uninstalled")

	book.Data = map[string]string{"north": catalogue.SeedUsage{}.Encode()}
	expect.Update(t, w.client, book)
	w.look(object)
	w.expectApprovable(object, empty, "no installation on 1 counted seed uses the removed versions")
	expect.Annotate(w.t, w.client, object, v1.AnnotationApproveRevision, empty)
	w.expectAddons(object, empty)
}

// Red when a conflict names a generated catalogue alone, which nobody wrote, or tells the catalogue
// in git that wins that it loses.
func TestAConflictNamesTheCatalogueInGit(t *testing.T) {
	w := aloneInWorld(t)
	commit := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", w.platform+"-merged")
	team := w.catalogue("team")
	team.Spec.Priority, team.Spec.Type = 10, v1.CatalogueCore
	expect.Create(w.t, w.client, team)
	generated := w.expectAddons(team, commit, "loki", "1.0.0")["loki"]
	hand := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "hand"}, Spec: *generated.Spec.DeepCopy()}
	hand.Spec.Priority = 0
	expect.Create(w.t, w.client, hand)
	for object, want := range map[*v1.AddonCatalogue]string{
		hand: fmt.Sprintf("catalogue %q in git (generated: %q) has this version too, and has precedence", "team", generated.Name),
		team: "this one has precedence", generated: "this one has precedence",
	} {
		expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
			found := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionConflicting)
			if found == nil || found.Status != metav1.ConditionTrue || !strings.Contains(found.Message, want) {
				return fmt.Errorf("%s: %+v, want %q", object.Name, found, want)
			}
			return nil
		})
	}
}

// expectApprovable waits until a commit waits for an approval, and the condition says that, too.
func (w *world) expectApprovable(object *v1.AddonCatalogue, commit, reported string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		message := w.expectFetched(object, "False", v1.ReasonRevisionNeedsApproval)
		if !strings.Contains(message, reported) || !strings.Contains(message, v1.AnnotationApproveRevision+"="+commit) {
			return fmt.Errorf("message %q, want %q", message, reported)
		}
		return nil
	})
}

func TestTroubleTakesNothing(t *testing.T) {
	w := newWorld(t)
	good := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	before := w.resourceVersions(w.expectAddons(object, good, "loki", "1.0.0"))
	other := w.repository.Commit("other", map[string]string{"README.md": "no catalogue here"})
	for _, test := range []struct {
		why, tip, reason, want string
		answer                 http.HandlerFunc
	}{
		{"the host hangs up", good, v1.ReasonFetchFailed, "", hangUp},
		{"the host is in trouble", good, v1.ReasonFetchFailed, "502", status(http.StatusBadGateway)},
		{"it wants credentials", good, v1.ReasonFetchFailed, "asks for credentials", status(http.StatusUnauthorized)},
		{"a login page", good, v1.ReasonArtifactRefused, "", loginPage},
		{"the path is gone", other, v1.ReasonArtifactNotFound, `path "catalogue"`, nil},
		{"the branch is gone", "", v1.ReasonArtifactNotFound, `branch "main"`, nil},
	} {
		w.gate.set(test.answer)
		w.setMain(test.tip)
		w.look(object)
		expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
			if err := expect.Condition(object, v1.ConditionFetched, "False", test.reason); err != nil {
				return fmt.Errorf("%s: %w", test.why, err)
			}
			for _, condition := range object.Status.Conditions {
				if !strings.Contains(condition.Message, test.want) || !strings.Contains(condition.Message, good+" stay") {
					return fmt.Errorf("%s: message %q", test.why, condition.Message)
				}
			}
			return nil
		})
		if diff := cmp.Diff(before, w.resourceVersions(w.children(object))); diff != "" {
			t.Errorf("%s: %s", test.why, diff)
		}
		w.gate.set(nil)
		w.setMain(good)
		w.look(object)
		w.expectFetched(object, "True", v1.ReasonFetched)
	}
}

// setMain forces branch main to a commit; "" takes the branch away.
func (w *world) setMain(commit string) {
	w.t.Helper()
	if commit == "" {
		if err := os.Remove(filepath.Join(w.repository.Folder, "refs", "heads", "main")); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.repository.Ref("refs/heads/main", commit)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func loginPage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<html>log in</html>"))
}

func TestAForcedPushIsTaken(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.commit(map[string]string{"a.yaml": file("loki", "1.1.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	unrelated := w.repository.Commit("elsewhere", map[string]string{"catalogue/a.yaml": file("loki", "0.9.0")})
	w.setMain(unrelated)
	w.look(object)
	w.expectAddons(object, unrelated, "loki", "0.9.0")

	// Back to a commit seen before: it is not fetched again.
	w.setMain(first)
	w.look(object)
	w.expectAddons(object, first, "loki", "1.0.0")
	packs := w.server.Count("POST", "/catalogue.git/git-upload-pack")
	w.setMain(unrelated)
	w.look(object)
	w.expectAddons(object, unrelated, "loki", "0.9.0")
	if again := w.server.Count("POST", "/catalogue.git/git-upload-pack"); again != packs {
		t.Errorf("a commit seen before took %d packs", again-packs)
	}
}

func TestAnEndlessPackIsRefused(t *testing.T) {
	w := newWorld(t)
	good := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, good, "loki", "1.0.0")
	w.gate.set(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = fmt.Fprint(w, pkt("# service=git-upload-pack\n")+"0000"+
				pkt(strings.Repeat("a", 40)+" refs/heads/main\x00side-band-64k shallow allow-reachable-sha1-in-want ofs-delta\n")+"0000")
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = fmt.Fprint(w, pkt("shallow "+strings.Repeat("a", 40)+"\n")+"0000"+pkt("NAK\n"))
		for noise := pkt("\x02" + strings.Repeat("x", 60_000)); ; {
			if _, err := fmt.Fprint(w, noise); err != nil {
				return
			}
		}
	})
	w.look(object)
	message := w.expectFetched(object, "False", v1.ReasonArtifactRefused)
	if !strings.Contains(message, "MiB") || !strings.Contains(message, good+" stay") {
		t.Errorf("message %q", message)
	}
	w.gate.set(nil)
	w.look(object)
	w.expectFetched(object, "True", v1.ReasonFetched)
}

func pkt(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

func TestARestartWithTheHostDownLosesNothing(t *testing.T) {
	w := aloneInWorld(t)
	seed := w.seed()
	good := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0"), "b.yaml": file("tempo", "1.0.0")})
	merged := w.platform + "-merged"
	stop := w.start("", merged)
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	before := w.resourceVersions(w.expectAddons(object, good, "loki", "1.0.0", "tempo", "1.0.0"))
	loki := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: merged, Name: "loki"}}
	expect.Object(t, w.client, loki, func(*v1.AddonCatalogue) error { return nil })
	w.expectRow(object, seed.Name)
	stop()
	expect.Read(t, w.client, loki) // its status came last

	w.gate.set(hangUp)
	w.start("", merged) // with an empty store
	message := w.expectFetched(object, "False", v1.ReasonFetchFailed)
	if !strings.Contains(message, "the add-ons of commit "+good+" stay") {
		t.Errorf("message %q", message)
	}
	expect.HasCondition(t, w.client, object, expect.Is(v1.ConditionReady, "False", v1.ReasonFetchFailed))
	version := loki.ResourceVersion
	w.manager.Stays(func() error {
		if diff := cmp.Diff(before["loki"], w.children(object)["loki"].ResourceVersion); diff != "" && len(w.children(object)) != 2 {
			return fmt.Errorf("generated: %s", diff)
		}
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(loki), loki); err != nil || loki.ResourceVersion != version {
			return fmt.Errorf("merged: %s instead of %s, %w", loki.ResourceVersion, version, err)
		}
		return nil
	}, "gitcatalogue", "distributor")
	w.expectRow(object, seed.Name)

	w.gate.set(nil)
	w.expectFetched(object, "True", v1.ReasonFetched)
	expect.HasCondition(t, w.client, object, expect.Is(v1.ConditionReady, "True", v1.ReasonDistributed))
}

// seed makes the master its own seed.
func (w *world) seed() *kkpv1.Seed {
	w.t.Helper()
	expect.Create(w.t, w.client, given.SeedSecret(w.platform, "local", fleet.Shared().Cluster("master").Kubeconfig))
	seed := given.ListedSeed(w.platform, "local")
	expect.Create(w.t, w.client, seed)
	return seed
}

// expectRow waits until the catalogue in git has the row of a seed, and what was generated from it
// has none.
func (w *world) expectRow(object *v1.AddonCatalogue, seed string) {
	w.t.Helper()
	expect.Object(w.t, w.client, object, func(object *v1.AddonCatalogue) error {
		if rows := object.Status.Seeds; len(rows) != 1 || rows[0].Name != seed || !rows[0].Synced {
			return fmt.Errorf("rows %+v", rows)
		}
		for name, child := range w.children(object) {
			if err := expect.Condition(child, v1.ConditionReady, "True", v1.ReasonMerged); err != nil || len(child.Status.Seeds) != 0 {
				return fmt.Errorf("%s: rows %+v, %w", name, child.Status.Seeds, err)
			}
		}
		return nil
	})
}

func TestLogsIn(t *testing.T) {
	w := newWorld(t)
	commit := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	const canary = "correct horse"
	w.gate.set(func(response http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "robot" || password != canary {
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.gate.next.ServeHTTP(response, r)
	})
	w.start("", "")
	login := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: "login", Annotations: map[string]string{v1.AnnotationUsedBy: "AddonCatalogue/platform"},
		},
		StringData: map[string]string{"username": "robot", "password": "wrong " + canary},
	}
	object := w.catalogue("platform", func(git *v1.CatalogueGit) { git.SecretRef = &v1.LocalReference{Name: "login"} })
	expect.Create(w.t, w.client, object)
	messages := []string{w.expectFetched(object, "False", v1.ReasonArtifactNotFound)}
	expect.Create(w.t, w.client, login)
	messages = append(messages, w.expectFetched(object, "False", v1.ReasonArtifactRefused))
	if !strings.Contains(messages[1], v1.LabelUse+"="+v1.UseSource) {
		t.Errorf("unmarked: %q", messages[1])
	}
	change := func(set func()) {
		before := login.DeepCopy()
		set()
		expect.Patch(t, w.client, login, client.MergeFrom(before))
	}
	change(func() { login.Labels = map[string]string{v1.LabelUse: v1.UseSource} })
	expect.Object(t, w.client, object, func(object *v1.AddonCatalogue) error {
		if message := object.Status.Conditions[0].Message; !strings.Contains(message, v1.AnnotationHosts) {
			return fmt.Errorf("without hosts: %q", message)
		}
		return nil
	})
	change(func() { login.Annotations[v1.AnnotationHosts] = "127.0.0.1" })
	messages = append(messages, w.expectFetched(object, "False", v1.ReasonFetchFailed))
	change(func() { login.Data["password"] = []byte(canary) })
	w.expectAddons(object, commit, "loki", "1.0.0")
	for _, message := range messages {
		if strings.Contains(message, canary) {
			t.Errorf("a secret in %q", message)
		}
	}
}

// F7: Red when a catalogue reads a repository with a login that is not for it, or when one that did before the upgrade does not go on.
func TestALoginIsForTheCataloguesThatItNames(t *testing.T) {
	w := newWorld(t)
	commit := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	login := given.SourceSecret(w.platform, "login", map[string][]byte{"username": []byte("robot"), "password": []byte("S3CRET")})
	expect.Create(w.t, w.client, login)
	named := func(name string) *v1.AddonCatalogue {
		object := w.catalogue(name, func(git *v1.CatalogueGit) { git.SecretRef = &v1.LocalReference{Name: "login"} })
		expect.Create(w.t, w.client, object)
		return object
	}
	previous := named("former")
	noted := catalogue.PreviousUsers{}
	noted.Note(catalogue.CatalogueUser(previous), login)
	expect.Create(w.t, w.client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapSeeds}, Data: map[string]string{v1.PreviousSecretUsers: noted.String()},
	})
	w.start("", "")
	w.expectAddons(previous, commit, "loki", "1.0.0")
	thief := named("thief")
	if message := w.expectFetched(thief, "False", v1.ReasonArtifactRefused); !strings.Contains(message, v1.AnnotationUsedBy+"=AddonCatalogue/thief") {
		t.Errorf("message %q", message)
	}
	before := login.DeepCopy()
	login.Annotations[v1.AnnotationUsedBy] = "AddonCatalogue/thief"
	expect.Patch(t, w.client, login, client.MergeFrom(before))
	w.expectFetched(previous, "False", v1.ReasonArtifactRefused)
	w.expectFetched(thief, "True", v1.ReasonFetched)
}

func TestLogsInBySSH(t *testing.T) {
	w := newWorld(t)
	server, repository := fetchtest.ServeGitSSH(t, "catalogue")
	commit := repository.Commit("main", map[string]string{"catalogue/a.yaml": file("loki", "1.0.0")})
	other, _ := fetchtest.ServeGitSSH(t, "other")
	w.start("", "")
	key := given.MarkedSecret(v1.UseSource, w.platform, "key", map[string][]byte{
		// The address is the server's, its host key another one's.
		"ssh-privatekey": server.Key, "known_hosts": []byte(strings.ReplaceAll(string(other.KnownHosts), port(other), port(server))),
	})
	key.Annotations = map[string]string{v1.AnnotationHosts: server.Address, v1.AnnotationUsedBy: "AddonCatalogue/platform"}
	expect.Create(w.t, w.client, key)
	object := w.catalogue("platform", func(git *v1.CatalogueGit) {
		git.Remote, git.CASecretRef, git.SecretRef = v1.GitRemote(repository.URL), nil, &v1.LocalReference{Name: "key"}
	})
	expect.Create(w.t, w.client, object)
	message := w.expectFetched(object, "False", v1.ReasonArtifactRefused)
	if !strings.Contains(message, "host key") {
		t.Errorf("message %q", message)
	}
	before := key.DeepCopy()
	key.Data["known_hosts"] = server.KnownHosts
	expect.Patch(t, w.client, key, client.MergeFrom(before))
	w.expectAddons(object, commit, "loki", "1.0.0")
}

func port(server *fetchtest.SSH) string {
	return server.Address[strings.LastIndex(server.Address, ":")+1:]
}

// Red when a catalogue that is stuck tells it in its status alone, or at every look, or once more
// after a restart.
func TestACatalogueThatIsStuckIsReportedOnce(t *testing.T) {
	w := aloneInWorld(t)
	w.seed()
	merged := w.platform + "-merged"
	stop := w.start("", merged)
	object := w.catalogue("platform")
	w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	expect.Create(w.t, w.client, object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	w.commit(map[string]string{"a.yaml": "- name: loki\n  versions: nonsense\n"})
	w.look(object)
	w.expectFetched(object, "False", v1.ReasonInvalid)
	reported := func(want ...string) {
		t.Helper()
		expect.Eventually(t, expect.Patience, func() error {
			warnings := slices.DeleteFunc(w.events(object), func(reason string) bool { return reason == v1.EventFetched })
			if diff := cmp.Diff(want, warnings); diff != "" {
				return fmt.Errorf("events (-want +got):\n%s", diff)
			}
			return nil
		})
	}
	reported(v1.ReasonInvalid)
	stop()
	w.start("", merged)
	w.look(object)

	empty := w.commit(map[string]string{"a.yaml": "# nothing any more\n"})
	w.look(object)
	w.expectFetched(object, "False", v1.ReasonRevisionNeedsApproval)
	reported(v1.ReasonInvalid, v1.ReasonRevisionNeedsApproval)
	expect.Annotate(w.t, w.client, object, v1.AnnotationApproveRevision, empty)
	reported(v1.ReasonDistributed, v1.ReasonInvalid, v1.ReasonRevisionNeedsApproval)
}

// AC76: an add-on of a repository stays with it: while the repository can't be read, while what is generated is made again, and where a
// commit changes the add-on. A commit without it gives it up, after a while. Red when a child is the owner and not its catalogue, or when what a repository
// that can't be read does not show counts as given up.
func TestARepositoryOwnsWhatItBrought(t *testing.T) {
	w := aloneInWorld(t)
	now := kit.RunningClock(t)
	w.clock = now
	commit := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0", "tempo", "1.0.0")})
	w.start("", w.platform+"-merged")
	team := w.catalogue("team")
	expect.Create(w.t, w.client, team)
	generated := w.expectAddons(team, commit, "loki", "1.0.0", "tempo", "1.0.0")["loki"]
	owned := func(owner string) {
		t.Helper()
		kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapOwners}}
		expect.Object(t, w.client, kept, func(kept *corev1.ConfigMap) error {
			if kept.Data["loki"] != owner {
				return fmt.Errorf("loki belongs to %q, want %q", kept.Data["loki"], owner)
			}
			return nil
		})
	}
	owned("team")
	shadow := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "shadow"}, Spec: *generated.Spec.DeepCopy()}
	shadow.Spec.Priority, shadow.Spec.Addons[0].Versions[0].Version = 1000, "1.0.1"
	expect.Create(w.t, w.client, shadow)
	leftOut := func() error {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(shadow), shadow); err != nil {
			return err
		}
		return expect.Condition(shadow, v1.ConditionConflicting, "True", v1.ReasonOwnedByOther)
	}
	expect.Eventually(t, expect.Patience, leftOut)

	// The repository is away, and what came of it is deleted meanwhile.
	w.gate.set(hangUp)
	w.look(team)
	w.expectFetched(team, "False", v1.ReasonFetchFailed)
	expect.Delete(t, w.client, generated)
	w.manager.Stays(leftOut, "distributor", "gitcatalogue")
	owned("team")
	w.gate.set(nil)
	w.look(team)
	w.expectAddons(team, commit, "loki", "1.0.0", "tempo", "1.0.0")
	w.manager.Stays(leftOut, "distributor", "gitcatalogue")
	owned("team")

	// Another commit has another version; one without it gives it up.
	commit = w.commit(map[string]string{"a.yaml": file("loki", "1.1.0", "tempo", "1.0.0")})
	w.look(team)
	w.expectAddons(team, commit, "loki", "1.1.0", "tempo", "1.0.0")
	w.manager.Stays(leftOut, "distributor", "gitcatalogue")
	owned("team")
	commit = w.commit(map[string]string{"a.yaml": file("tempo", "1.0.0")})
	w.look(team)
	w.expectAddons(team, commit, "tempo", "1.0.0")
	w.manager.Stays(leftOut, "distributor", "gitcatalogue")
	owned("team")
	now.Step(10 * time.Minute)
	w.look(shadow)
	owned("shadow")
}
