package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring/verbs"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// isNeeded says whether a call needs a right that a verb declares.
func isNeeded(right cli.Right, arguments []string, hasName bool) bool {
	has := func(what string) bool { return what == "NAME" && hasName || slices.Contains(arguments, what) }
	if strings.HasPrefix(right.When, "for ") {
		return false
	}
	if _, what, is := strings.Cut(right.When, "without "); is {
		return !has(what)
	}
	_, what, is := strings.Cut(right.When, "with ")
	return !is || has(what)
}

// lines are the single rights in those of a verb.
func lines(rights []cli.Right) (all []rbacv1.PolicyRule) {
	for _, right := range rights {
		resource, group, isLong := strings.Cut(right.Resource, ".")
		if !isLong && resource != "configmaps" {
			group = v1.GroupVersion.Group
		}
		for _, verb := range right.Verbs {
			all = append(all, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
		}
	}
	return all
}

// Red when a verb that reads needs a right that it does not declare, declares one that it does not need, or does not name
// the one that is missing.
func TestReadingNeedsExactlyTheDeclaredRights(t *testing.T) {
	seed, namespace := cluster(t, "entitled", func(made *v1.AddonCatalogue) {
		made.Spec.Addons = []v1.Addon{given.Addon("prometheus", v1.AddonVersion{Version: "1.2.0"})}
	})
	inState(t, seed, given.Installation(namespace, "prometheus", "prometheus", "monitoring", given.In("1.2.0")), ready, at("1.2.0"))
	expect.Create(t, seed, given.Merged(namespace, v1.CatalogueCustom, given.Addon("prometheus", versioned("1.2.0", "*"))),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1.ConfigMapUsage}},
		&v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "monitoring"}, Spec: v1.AddonSetSpec{
			Type: v1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{},
			Addons: []v1.AddonSetItem{{Name: "prometheus", AddonRef: v1.AddonReference{Name: "prometheus"}, TargetNamespace: "monitoring"}},
		}})
	file := filepath.Join(t.TempDir(), "catalogue.yaml")
	expect.NoError(t, os.WriteFile(file, []byte("- name: web\n  versions: [{version: 1.0.0}]\n"), 0o600))
	root := cli.Command(cli.NewTool(genericiooptions.IOStreams{}), verbs.All()...)
	for at, call := range []struct {
		arguments []string
		code      int
	}{
		{[]string{"list", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"list", "-n", namespace}, cli.ExitDone},
		{[]string{"available", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"show", "prometheus", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"show", "prometheus", "--platform-namespace", namespace}, cli.ExitDone},
		{[]string{"why", "prometheus@1.2.0", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"tree", "-n", namespace}, cli.ExitDone},
		{[]string{"status", "-n", namespace}, cli.ExitDone},
		{[]string{"status", "prometheus", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"events", "-n", namespace}, cli.ExitDone},
		{[]string{"events", "prometheus", "--cluster", "entitled"}, cli.ExitDone},
		{[]string{"history", "prometheus", "-n", namespace}, cli.ExitDone},
		{[]string{"set", "list", "-n", namespace}, cli.ExitDone},
		{[]string{"set", "show", "monitoring", "-n", namespace}, cli.ExitDone},
		{[]string{"catalogue", "diff", file, "--catalogue", "web", "-n", namespace}, cli.ExitNo},
	} {
		command, rest, err := root.Find(call.arguments)
		expect.NoError(t, err)
		declared, _ := cli.Rights(command)
		hasName := len(rest) > 0 && !strings.HasPrefix(rest[0], "-")
		needed := lines(slices.DeleteFunc(declared, func(one cli.Right) bool { return !isNeeded(one, call.arguments, hasName) }))
		if len(needed) == 0 {
			t.Errorf("%q declares no right", call.arguments)
		}
		shell := as(t, userNamed(t, seed, namespace, fmt.Sprintf("call-%d", at), needed...))
		expect.Eventually(t, expect.Patience, func() error { // an API server knows a new right after a moment
			if got := shell.run(call.arguments...); got.code != call.code {
				return fmt.Errorf("%q with the declared rights: exit code %d: %s", call.arguments, got.code, got.err)
			}
			return nil
		})
		for i, lacking := range needed {
			user := userNamed(t, seed, namespace, fmt.Sprintf("call-%d-%d", at, i), slices.Delete(slices.Clone(needed), i, i+1)...)
			want := fmt.Sprintf("you lack the right to %s %s", lacking.Verbs[0], lacking.Resources[0])
			shell := as(t, user)
			expect.Eventually(t, expect.Patience, func() error {
				if got := shell.run(call.arguments...); got.code != cli.ExitForbidden || !strings.Contains(got.err, want) {
					return fmt.Errorf("%q: exit code %d: %s does not say %q", call.arguments, got.code, got.err, want)
				}
				return nil
			})
		}
	}
}
