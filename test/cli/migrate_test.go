package cli_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/world"
)

// storedRelease is a Secret of a Helm release with this content.
func storedRelease(name string, revision int, content string) *corev1.Secret {
	var packed bytes.Buffer
	packer := gzip.NewWriter(&packed)
	_, _ = packer.Write([]byte(content)) // a buffer does not fail
	_ = packer.Close()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "helmed", Name: fmt.Sprintf("sh.helm.release.v1.%s.v%d", name, revision),
			Labels: map[string]string{"owner": "helm", "name": name, "version": fmt.Sprint(revision)},
		},
		Type: "helm.sh/release.v1",
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}
}

// releaseOf is the content of a release.
func releaseOf(name string, revision int, status, chart, config string) string {
	of, version, _ := strings.Cut(chart, "@")
	return fmt.Sprintf(`{"name":%q,"namespace":"helmed","version":%d,"info":{"status":%q},"chart":{"metadata":{"name":%q,"version":%q}},`+
		`"config":%s}`,
		name, revision, status, of, version, config)
}

// Red when a release that can't be carried over has no reason, a newer revision is not read, one of ours is planned, a hostile
// release ends the command, or anything is created.
func TestMigratePlansHelmReleases(t *testing.T) {
	seed, namespace := shop(t, "moving")
	user, err := client.New(fleet.Shared().Cluster("other").Config, client.Options{}) // it has no kinds of Trellis
	expect.NoError(t, err)
	expect.Create(t, user, world.Namespace("helmed"))
	ours := storedRelease("ours", 1, releaseOf("ours", 1, "deployed", "podinfo@6.0.0", `{}`))
	ours.Labels[v1.LabelInstallation] = "id"
	broken := storedRelease("broken", 1, "")
	broken.Data = map[string][]byte{"release": []byte("none")}
	for _, one := range []*corev1.Secret{
		ours, broken,
		storedRelease("web", 9, releaseOf("web", 9, "superseded", "podinfo@5.0.0", `{"replicas":1}`)),
		storedRelease("web", 10, releaseOf("web", 10, "deployed", "podinfo@6.0.0", `{"replicas":2,"password":"`+secretCanary+`"}`)),
		storedRelease("failed", 1, releaseOf("failed", 1, "failed", "podinfo@6.0.0", `null`)),
		storedRelease("old", 1, releaseOf("old", 1, "deployed", "prometheus@0.9.0", `null`)),
		storedRelease("misnamed", 1, releaseOf("other", 1, "deployed", "podinfo@6.0.0", `null`)),
		storedRelease("slip", 1, releaseOf("slip", 1, "deployed", "promethus@1.2.0", `null`)),
		storedRelease("hostile", 1, strings.Replace(releaseOf("hostile", 1, "deployed", "pod@6.0.0", `null`), "pod", `a\u001b[2J`, 1)),
		storedRelease("bomb", 1, strings.Repeat(" ", 65<<20)),
		storedRelease("reserved", 1, releaseOf("reserved", 1, "deployed", "podinfo@6.0.0", `{"kkp":{"a":1}}`)),
		storedRelease("there", 1, releaseOf("there", 1, "deployed", "podinfo@6.0.0", `null`)),
	} {
		expect.Create(t, user, one)
	}
	expect.Create(t, seed, given.Installation(namespace, "there", "podinfo", "helmed"))
	shell, other := on(t, "seed"), on(t, "other")
	call := []string{"migrate", "--cluster", "moving", "--user-kubeconfig", other.kubeconfig}
	got := shell.run(call...).works(t)
	golden.Match(t, "testdata/migrate.txt", got.out+got.err)
	golden.Match(t, "testdata/migrate.yaml", shell.run(append(call, "-o", "yaml")...).works(t).out)
	if strings.Contains(got.out, secretCanary) {
		t.Errorf("a value is in the table:\n%s", got.out)
	}
	shell.run(append(call, "--apply", "-o", "yaml", "--yes")...).fails(t, cli.ExitUsage, "-o")
	shell.run(append(call, "--apply")...).fails(t, cli.ExitRefused, "--yes")
	shell.run("migrate", "--cluster", "moving", "--user-kubeconfig", "/none").fails(t, cli.ExitUsage, "--user-kubeconfig")
	if got := shell.answering("n\n").run(append(call, "--apply")...); !strings.Contains(got.err, "what "+fleet.Shared().Cluster("other").Config.Host+" has") {
		t.Errorf("the question does not name the user cluster: %q", got.err)
	}
	var all v1.AddonInstallationList
	if expect.List(t, seed, &all, client.InNamespace(namespace)); len(all.Items) != 1 {
		t.Errorf("%d installations without an answer", len(all.Items))
	}
}

// Red when the installation of an Addon with another name than its add-on is not paused: the manager would not wait for the Addon.
func TestMigratePausesForAnAddonOfAnotherName(t *testing.T) {
	seed, namespace := shop(t, "renamed")
	config := sharedSeed().Config
	expect.NoError(t, fleet.InstallCRDs(t.Context(), config, "../../pkg/clusters/cluster/testdata/kkp"))
	for _, name := range []string{"podinfo", "metrics"} {
		made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"name": name}}}
		made.SetAPIVersion(v1.GroupVersion.String())
		made.SetKind("Addon")
		made.SetNamespace(namespace)
		made.SetName(name)
		expect.Create(t, seed, made)
	}
	on(t, "seed").run("migrate", "--cluster", "renamed", "--map", "metrics=prometheus", "--apply", "-y").works(t)
	if read(t, seed, namespace, "podinfo").Spec.Paused || !read(t, seed, namespace, "metrics").Spec.Paused {
		t.Error("podinfo is paused, or metrics is not")
	}
}
