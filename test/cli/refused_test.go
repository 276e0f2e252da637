package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
)

// Red when a wrong call is not one line, or has another exit code.
func TestWrongCallsAreRefusedInOneLine(t *testing.T) {
	cluster(t, "refusing")
	shell := on(t, "seed")
	for _, test := range []struct {
		why       string
		arguments []string
		code      int
		says      string
	}{
		{"an unknown verb", []string{"lst"}, cli.ExitUsage, "list"},
		{"an unknown flag", []string{"list", "--clusterr", "a"}, cli.ExitUsage, "--clusterr"},
		{"an argument too many", []string{"list", "a"}, cli.ExitUsage, "a"},
		{"an unknown format", []string{"list", "-o", "tabel"}, cli.ExitUsage, `"tabel"`},
		{"a broken path", []string{"list", "-o", "jsonpath={.items[}"}, cli.ExitUsage, "kubectl explain"},
		{"an unknown state", []string{"list", "--state", "Bad"}, cli.ExitUsage, "Ready, UnderWay"},
		{"a misspelt cluster", []string{"list", "--cluster", "refusin"}, cli.ExitNotFound, `did you mean "refusing"?`},
		{"no cluster", []string{"available"}, cli.ExitUsage, "--cluster"},
		{"a cluster and all", []string{"list", "-A", "--cluster", "refusing"}, cli.ExitUsage, "exclude each other"},
		{"a context that does not exist", []string{"list", "--context", "none"}, cli.ExitUsage, `"none"`},
		{"a server that does not answer", []string{"list", "--server", "https://" + fleet.Address(t)}, cli.ExitUnreachable, "check the context"},
	} {
		t.Run(test.why, func(t *testing.T) { shell.run(test.arguments...).fails(t, test.code, test.says) })
	}
}

// Red when a context that is no seed is used, or the error does not say what it is.
func TestOnlySeedsHaveInstallations(t *testing.T) {
	config := fleet.Shared().Cluster("other").Config
	shell := on(t, "other")
	shell.run("list").fails(t, cli.ExitContext, "neither a master nor a seed", "--context")
	var sets []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range fleet.CRDs(t) {
		found, err := fleet.Definitions(folder)
		expect.NoError(t, err)
		for _, one := range found {
			if one.Spec.Names.Plural == "addonsets" {
				sets = append(sets, one)
			}
		}
	}
	expect.NoError(t, fleet.InstallDefinitions(t.Context(), config, sets...))
	shell.run("available", "--cluster", "a").fails(t, cli.ExitContext, "is a master", "--context")
}

// Red when the missing right is not named, or a right of one namespace is not enough for it.
func TestAMissingRightIsNamed(t *testing.T) {
	seed, namespace := installed(t, "ours")
	shell := as(t, user(t, seed, namespace, rbacv1.PolicyRule{
		APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"addoninstallations", "addoncatalogues"}, Verbs: []string{"get", "list"},
	}))
	shell.run("list", "--cluster", "ours").works(t)
	shell.run("available", "--cluster", "ours").works(t)
	shell.run("list", "-A").fails(t, cli.ExitForbidden, "list addoninstallations.kubermatic.k8c.io in all namespaces")
	shell.run("list", "-n", "cluster-theirs").fails(t, cli.ExitForbidden,
		`list addoninstallations.kubermatic.k8c.io in namespace "cluster-theirs"`)
	shell.run("list", "--cluster", "theirs").fails(t, cli.ExitForbidden, `get addoncatalogues.kubermatic.k8c.io in namespace "cluster-theirs"`)
}

// Red when a name, a message or an error reaches the terminal with a control character.
func TestNoControlCharacterReachesTheTerminal(t *testing.T) {
	seed, _ := cluster(t, "hostile", func(made *v1.AddonCatalogue) {
		made.Spec.Addons[0].Description = "good\x1b[31m\u202e\u009b2J\nADDON   evil"
		made.Status.Excluded = []v1.ExcludedVersion{{Addon: "a", Version: "1", Reason: "K8s\x1b[2JVersion", Message: "needs\x1b]0;title\a more"}}
	})
	inState(t, seed, given.Installation("cluster-hostile", "broken", "podinfo", "apps"),
		notReady(v1.ReasonObjectExists, "object \x1b[1mexists\u202e\u009b2J"))
	shell := on(t, "seed")
	shell.width = 200
	var all []string
	for _, arguments := range [][]string{
		{"list", "--cluster", "hostile", "-o", "wide"}, {"available", "--cluster", "hostile"},
		{"available", "--cluster", "hostile", "-o", "yaml"}, {"list", "--cluster", "hostile", "-o", "json"},
		{"list", "--cluster", "hostile", "-o", "jsonpath={.items[0].status.conditions[0].message}"},
		{"status", "broken", "--cluster", "hostile"}, {"tree", "--cluster", "hostile"}, {"why", "a", "--cluster", "hostile"},
		{"list", "--cluster", "x\x1b[2J"}, {"\x1b[2J"},
	} {
		got := shell.run(arguments...)
		all = append(all, got.out+got.err)
	}
	for _, text := range all {
		if strings.ContainsAny(text, "\x1b\u202e\u009b\a") {
			t.Errorf("a control character is printed: %q", text)
		}
	}
	golden.Match(t, "testdata/hostile.txt", all[1])
}

// Red when the page lacks an exit code.
func TestThePageExplainsTheCommand(t *testing.T) {
	root, err := binaries.Root()
	expect.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "spec", "cli.md"))
	expect.NoError(t, err)
	for code, meaning := range cli.ExitCodes {
		if row := fmt.Sprintf("| %d | %s |\n", code, meaning); !strings.Contains(string(text), row) {
			t.Errorf("the page lacks %q", row)
		}
	}
}
