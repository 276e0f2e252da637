package cli_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// platform makes a platform namespace with catalogues "team", "other" and "repository" in git, their owners, and counts of two seeds.
func platform(t testing.TB, namespace string) client.Client {
	t.Helper()
	made := world.Client(t, fleet.Shared().Cluster("seed").Config)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	web := given.Addon("web", v1.AddonVersion{Version: "1.0.0"}, v1.AddonVersion{Version: "1.1.0"})
	git := given.InGit(namespace, "repository", "https://git.example.com/addons.git", "authority")
	expect.Create(t, made, world.Namespace(namespace), git,
		given.Catalogue(namespace, "team", web, given.Addon("cache", v1.AddonVersion{Version: "1.0.0"})),
		given.Catalogue(namespace, "other", given.Addon("db", v1.AddonVersion{Version: "1.0.0"})))
	generated := given.Catalogue(namespace, "repository-mail-1", given.Addon("mail", v1.AddonVersion{Version: "1.0.0"}))
	generated.Labels = map[string]string{v1.LabelRole: v1.RoleGenerated}
	generated.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(git, v1.GroupVersion.WithKind("AddonCatalogue"))}
	used := func(addon, version string) catalogue.UsedVersion {
		return catalogue.UsedVersion{Addon: addon, Version: version}
	}
	near := catalogue.SeedUsage{Installations: map[catalogue.UsedVersion]int{
		used("web", "1.0.0"): 3, used("web", "1.1.0"): 2, used("cache", ""): 1, used("cache", "1.0.0"): 4, used("mail", "1.0.0"): 5,
	}}
	far := catalogue.SeedUsage{
		Installations: map[catalogue.UsedVersion]int{used("web", "1.0.0"): 1}, LastSeen: time.Unix(1_700_000_000, 0), Others: 7,
	}
	expect.Create(t, made, generated,
		&corev1.ConfigMap{ObjectMeta: named(v1.ConfigMapOwners), Data: catalogue.Owners{
			"web": {"team"}, "cache": {"team"}, "db": {"other"}, "mail": {"repository"},
		}.Encode()},
		&corev1.ConfigMap{ObjectMeta: named(v1.ConfigMapUsage), Data: map[string]string{"far": far.Encode(), "near": near.Encode()}})
	return made
}

// folderWith is a folder with one file.
func folderWith(t testing.TB, content string) string {
	t.Helper()
	folder := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "catalogue.yaml"), []byte(content), 0o600))
	return folder
}

const teamCatalogue = `apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: team}
spec:
  addons:
  - name: web
    versions:
    - {version: "1.1.0", deprecated: Take 2.0.0.}
    - version: "2.0.0"
  - name: db
    versions: [{version: "2.0.0"}]
`

// Red when a difference, the installations that use it, or what is not known is not shown, or something is changed.
func TestCatalogueDiffShowsWhatAMergeWouldChange(t *testing.T) {
	hub := platform(t, "platform-diff")
	shell := on(t, "seed")
	for file, arguments := range map[string][]string{
		"diff.txt": {folderWith(t, teamCatalogue)}, "diff-json.txt": {folderWith(t, teamCatalogue), "-o", "json"},
		"diff-new.txt": {folderWith(t, "- name: fresh\n  versions: [{version: \"1\"}]\n- name: web\n  versions: [{version: \"9\"}]\n"), "--catalogue", "new"},
		"diff-git.txt": {folderWith(t, "- name: post\n  versions: [{version: \"1.0.0\"}]\n"), "--catalogue", "repository"},
	} {
		got := shell.run(append([]string{"catalogue", "diff", "-n", "platform-diff"}, arguments...)...)
		if got.code != cli.ExitNo {
			t.Errorf("%s: exit code %d: %s", file, got.code, got.err)
		}
		golden.Match(t, "testdata/"+file, got.out+got.err)
	}
	same := shell.runWith("- name: mail\n  versions: [{version: \"1.0.0\"}]\n", "catalogue", "diff", "-", "-n", "platform-diff", "--catalogue", "repository")
	golden.Match(t, "testdata/diff-none.txt", same.works(t).out+same.err)
	var all v1.AddonCatalogueList
	expect.NoError(t, hub.List(t.Context(), &all, client.InNamespace("platform-diff")))
	if len(all.Items) != 4 || all.Items[3].Name != "team" || all.Items[3].Generation != 1 {
		t.Errorf("catalogues were changed: %+v", all.Items)
	}
}

// Red when a wrong call is not one line, a seed counts as a master, or a missing right is not named.
func TestCatalogueDiffIsRefusedInOneLine(t *testing.T) {
	hub := platform(t, "platform-refusing")
	shell, right := on(t, "seed"), folderWith(t, teamCatalogue)
	for _, test := range []struct {
		why       string
		arguments []string
		code      int
		says      string
	}{
		{"a file that is missing", []string{"none.yaml"}, cli.ExitUsage, `"none.yaml" can't be read`},
		{"a folder without catalogues", []string{t.TempDir()}, cli.ExitUsage, "no AddonCatalogue"},
		{"a list without a name", []string{folderWith(t, "- name: web\n  versions: [{version: \"1\"}]\n")}, cli.ExitUsage, "--catalogue"},
		{"a wrong field", []string{folderWith(t, "- nam: web\n"), "--catalogue", "team"}, cli.ExitUsage, "line 1: unknown field"},
		{"what admission refuses", []string{folderWith(t, "- name: Web\n  versions: [{version: \"1\"}]\n"), "--catalogue", "team"}, cli.ExitUsage, "line 1: "},
		{"an unknown format", []string{right, "-o", "wide"}, cli.ExitUsage, "table, json"},
		{"a seed that is no master", []string{right, "-n", "default"}, cli.ExitContext, "context of the master"},
	} {
		t.Run(test.why, func(t *testing.T) {
			shell.run(append([]string{"catalogue", "diff", "-n", "platform-refusing"}, test.arguments...)...).fails(t, test.code, test.says)
		})
	}
	poor := as(t, user(t, hub, "platform-refusing", rbacv1.PolicyRule{
		APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"addoncatalogues"}, Verbs: []string{"list"},
	}))
	poor.run("catalogue", "diff", right, "-n", "platform-refusing").fails(t, cli.ExitForbidden, "get configmaps", "platform-refusing")
}
