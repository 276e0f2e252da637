package cli_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

// completions are what a shell gets for the last argument.
func (c *terminal) completions(arguments ...string) []string {
	c.t.Helper()
	got := c.run(append([]string{"__complete"}, arguments...)...).works(c.t)
	names, rest, _ := strings.Cut(got.out, ":")
	if !strings.HasPrefix(rest, "4\n") {
		c.t.Errorf("%q: directive %q", arguments, rest)
	}
	return strings.Fields(names)
}

// Red when names, versions, clusters or sets are not completed, or those of a neighbour are, or a hostile name is.
func TestNamesAreCompleted(t *testing.T) {
	seed, namespace := cluster(t, "completed", func(made *v1.AddonCatalogue) {
		made.Spec.Addons = []v1.Addon{
			given.Addon("podinfo", v1.AddonVersion{Version: "6.0.0"}),
			given.Addon("prometheus", v1.AddonVersion{Version: "1.2.0"}, v1.AddonVersion{Version: "1.1.0"}, v1.AddonVersion{Version: "0.9.0"}),
		}
	})
	expect.Create(t, seed, given.Installation(namespace, "prometheus", "prometheus", "monitoring"),
		given.Installation(namespace, "podinfo", "podinfo", "apps"), world.Namespace("completing"),
		&v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "completing", Name: "monitoring"}, Spec: v1.AddonSetSpec{
			Type: v1.AddonSetCustom, ClusterSelector: &metav1.LabelSelector{},
			Addons: []v1.AddonSetItem{{Name: "prometheus", AddonRef: v1.AddonReference{Name: "prometheus"}, TargetNamespace: "monitoring"}},
		}})
	for _, name := range []string{"ash", "oak"} {
		offered(t, seed, client.ObjectKey{Namespace: "completing", Name: "available-" + name})
		expect.Create(t, seed, given.Installation("completing", name+".web", "podinfo", "web", func(made *v1.AddonInstallation) {
			made.Spec.ClusterName = name
		}))
	}
	shell := on(t, "seed")
	for _, test := range []struct{ arguments, want []string }{
		{[]string{"list", "--cluster", "complet"}, []string{"completed"}},
		{[]string{"list", "-n", "completing", "--cluster", ""}, []string{"ash", "completed", "oak"}},
		{[]string{"status", "--cluster", "completed", "p"}, []string{"podinfo", "prometheus"}},
		{[]string{"pause", "--cluster", "completing/oak", ""}, []string{"web"}},
		{[]string{"pause", "--cluster", "completed", "podinfo", ""}, nil},
		{[]string{"uninstall", "--cluster", "completed", "podinfo", ""}, []string{"prometheus"}},
		{[]string{"install", "--cluster", "completed", ""}, []string{"podinfo", "prometheus"}},
		{[]string{"install", "--cluster", "completed", "prometheus@1"}, []string{"prometheus@1.1.0", "prometheus@1.2.0"}},
		{[]string{"why", "-n", namespace, "pro"}, []string{"prometheus"}},
		{[]string{"set", "show", "-n", "completing", ""}, []string{"monitoring"}},
		{[]string{"set", "approve", "-n", "completing", "x"}, nil},
	} {
		got := shell.completions(test.arguments...)
		if test.arguments[1] == "-n" && test.arguments[0] == "list" { // other tests have clusters too
			got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(test.want, name) })
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.arguments, got, test.want)
		}
	}
}

// Red when an error is shown, or a shell waits for a server that does not answer.
func TestACompletionThatFailsIsEmpty(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts and says nothing
	expect.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	shell := on(t, "seed")
	for _, arguments := range [][]string{
		{"status", "--cluster", "none", ""}, {"status", "--server", "https://" + silent.Addr().String(), "-n", "a", ""},
		{"status", "--context", "none", ""},
	} {
		got := shell.run(append([]string{"__complete"}, arguments...)...).works(t)
		if got.out != ":4\n" || strings.Contains(got.err, "error:") || strings.Contains(got.err, "none") {
			t.Errorf("%q: output %q, errors %q", arguments, got.out, got.err)
		}
	}
}
