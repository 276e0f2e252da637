package cli_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/golden"
)

const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: %s}\n" +
	"data: {version: '%s', replicas: '{{ .Variables.replicas }}'}\n"

// identities are labels of installations, which depend on the UID of their Cluster.
var identities = regexp.MustCompile(`"[0-9a-f]{16}"`)

// canary is in a Secret of the content, and secretly in a value.
const canary = "canary-3vJq8"

const secretManifest = "apiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: %s}\nstringData: {password: " + canary + "-%s}\n"

// shown publishes add-on web in a served seed, and has it asked by a user of the cluster.
func shown(t testing.TB, name string) (*served, *terminal) {
	t.Helper()
	w := serve(t, name)
	files := func(version string) map[string]string {
		return map[string]string{"settings.yaml": fmt.Sprintf(settings, w.space, version), "login.yaml": fmt.Sprintf(secretManifest, w.space, version)}
	}
	first := files("1.0.0")
	first["old.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old, namespace: " + w.space + "}\n"
	w.publish("web", first, files("2.0.0"), func(made *v1.Addon) {
		for i := range made.Versions {
			made.Versions[i].Values = cli.RawValues(map[string]any{"replicas": 1})
		}
	})
	w.at("https://" + w.leader.Address())
	return w, clusterUser(t, w.seed, w.namespace)
}

// Red when the command asks something else than its arguments say, or shows another answer of the endpoint; when the exit code hides what
// breaks; or when the error for a caller without the right does not name it.
func TestTheEndpointAnswersAboutSourcesAndUpgrades(t *testing.T) {
	_, shell := shown(t, "asked")
	shell.run("install", "web@1.0.0", "--cluster", "asked", "--yes", "--wait").works(t)
	admin := on(t, "seed")
	for file, arguments := range map[string][]string{
		"images.txt": {"images", "--cluster", "asked", "-o", "wide"}, "upgrade-check.txt": {"upgrade-check", "--cluster", "asked", "--to", "1.37.9"},
	} {
		got := admin.run(arguments...)
		golden.Match(t, "testdata/"+file, digests.ReplaceAllString(got.out+got.err, "ID"))
	}
	admin.run("images", "-A", "-o", "json").works(t)
	admin.run("upgrade-check", "--cluster", "asked", "--to", "one").fails(t, cli.ExitRefused, "k8sVersion")
	shell.run("upgrade-check", "--cluster", "asked", "--to", "1.37.9").works(t)
	shell.run("images", "--cluster", "asked").fails(t, cli.ExitForbidden, "addoncatalogues.kubermatic.k8c.io in the catalogue namespace")
}

// digests differ from run to run, as do the addresses of sources.
var digests = regexp.MustCompile(`sha256:[0-9a-f]{64}|127\.0\.0\.1:\d+|[0-9a-f]{40} | {2,}`)

// Red when a verb shows something else than what a reconciliation makes, when the exit code of diff is wrong, when install and upgrade ask
// without a preview, or when a secret value is shown.
func TestPreviewsAreShown(t *testing.T) {
	w, shell := shown(t, "shown")
	var all []string
	run := func(file string, code int, arguments ...string) {
		t.Helper()
		got := shell.run(append(arguments, "--cluster", "shown")...)
		if got.code != code {
			t.Errorf("%v: exit code %d, want %d: %s", arguments, got.code, code, got.err)
		}
		all = append(all, got.out, got.err)
		if file != "" {
			golden.Match(t, "testdata/"+file, identities.ReplaceAllString(got.out+got.err, `"ID"`))
		}
	}
	run("preview-render-new.txt", cli.ExitDone, "render", "web@1.0.0", "--set", "replicas=3")
	asked := shell.answering("n\n").run("install", "web@1.0.0", "--cluster", "shown")
	golden.Match(t, "testdata/preview-install.txt", asked.out+asked.err)
	shell.answering("y\n").run("install", "web@1.0.0", "--cluster", "shown").works(t)
	object := read(t, w.seed, w.namespace, "web")
	expect.HasCondition(t, w.seed, object, expect.Is(v1.ConditionReady, "True", ""))
	run("preview-diff-same.txt", cli.ExitDone, "diff", "web")
	run("preview-values.txt", cli.ExitDone, "values", "web", "--origin")
	run("preview-values-plain.txt", cli.ExitDone, "values", "web")
	run("preview-render.txt", cli.ExitDone, "render", "web", "--set", "replicas=3")
	asked = shell.answering("n\n").run("upgrade", "web", "--cluster", "shown", "--version", "2.0.0")
	golden.Match(t, "testdata/preview-upgrade.txt", asked.out+asked.err)
	all = append(all, asked.err)
	// A paused installation keeps what is applied, and diff shows what would change.
	expect.Change(t, w.seed, object, func(now *v1.AddonInstallation) { now.Spec.Paused, now.Spec.AddonRef.Version = true, "2.0.0" })
	run("preview-diff.txt", cli.ExitNo, "diff", "web")
	run("", cli.ExitNo, "diff", "web", "-o", "json")
	expect.Change(t, w.seed, object, func(now *v1.AddonInstallation) { now.Spec.AddonRef.Version = "9.0.0" })
	run("preview-refused.txt", cli.ExitNo, "diff", "web")
	for _, text := range all {
		if strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))[:12]) {
			t.Errorf("a secret is shown:\n%s", text)
		}
	}
	shell.run("diff", "wob", "--cluster", "shown").fails(t, cli.ExitNotFound, `"web"`)
	on(t, "seed").run("diff", "web", "--cluster", "shown", "--as", "alice").fails(t, cli.ExitUsage, "--as")
	// A user who may only read.
	expect.Change(t, w.seed, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "user"}}, func(now *rbacv1.Role) {
		now.Rules = []rbacv1.PolicyRule{{
			Verbs: []string{"get", "list"}, APIGroups: []string{v1.GroupVersion.Group}, Resources: []string{"addoncatalogues", "addoninstallations"},
		}}
	})
	expect.Eventually(t, expect.Patience, func() error { // the authorizer follows roles
		if got := shell.run("diff", "web", "--cluster", "shown"); got.code != cli.ExitForbidden {
			return fmt.Errorf("exit code %d: %s", got.code, got.err)
		}
		return nil
	})
	shell.run("diff", "web", "--cluster", "shown").fails(t, cli.ExitForbidden, "update addoninstallations.kubermatic.k8c.io", w.namespace)
}

// Red when values by valuesFrom, or leaves that a template derives from them, are shown.
func TestPreviewsHideValuesOfSecrets(t *testing.T) {
	w, shell := shown(t, "hidden")
	expect.Create(t, w.seed, given.MarkedSecret(v1.UseValues, w.namespace, "given", map[string][]byte{"values": []byte("replicas: " + canary)}))
	object := given.Installation(w.namespace, "web", "web", w.space, given.In("1.0.0"), given.NewNamespace)
	object.Spec.ValuesFrom = []v1.ValuesSource{{SecretRef: &v1.KeyReference{Name: "given", Key: "values"}}}
	object.Spec.Paused = true
	expect.Create(t, w.seed, object)
	for file, arguments := range map[string][]string{
		"preview-hidden-values.txt": {"values", "web", "--origin"}, "preview-hidden-diff.txt": {"diff", "web"}, "": {"render", "web", "-o", "yaml"},
	} {
		got := shell.run(append(arguments, "--cluster", "hidden")...)
		if file != "" {
			golden.Match(t, "testdata/"+file, got.out+got.err)
		}
		if text := got.out + got.err; strings.Contains(text, canary) || !strings.Contains(text, "valuesFrom") {
			t.Errorf("%v shows a secret, or does not say what is hidden:\n%s", arguments, text)
		}
	}
}

// admin is a terminal of a user who may do anything, with the credentials of a change.
func admin(t testing.TB, change func(*clientcmdapi.AuthInfo)) *terminal {
	t.Helper()
	config, err := clientcmd.Load(fleet.Shared().Cluster("seed").Kubeconfig)
	expect.NoError(t, err)
	for _, one := range config.AuthInfos {
		change(one)
	}
	encoded, err := clientcmd.Write(*config)
	expect.NoError(t, err)
	return as(t, encoded)
}

// Red when a kind of credentials does not reach the endpoint.
func TestTheEndpointIsCalledWithTheCallersCredentials(t *testing.T) {
	w, _ := shown(t, "credentials")
	expect.Create(t, w.seed, given.Installation(w.namespace, "web", "web", w.space, given.In("1.0.0"), given.NewNamespace))
	folder := t.TempDir()
	write := func(name, content string) string {
		file := filepath.Join(folder, name)
		expect.NoError(t, os.WriteFile(file, []byte(content), 0o700))
		return file
	}
	call := []string{"values", "web", "--cluster", "credentials"}
	admin(t, func(*clientcmdapi.AuthInfo) {}).run(call...).works(t)
	admin(t, func(one *clientcmdapi.AuthInfo) { one.TokenFile, one.Token = write("token", one.Token), "" }).run(call...).works(t)
	admin(t, func(one *clientcmdapi.AuthInfo) {
		answer := `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"` + one.Token + `"}}`
		one.Token, one.Exec = "", &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1", Command: "cat", Args: []string{write("credential", answer)},
			InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		}
	}).run(call...).works(t)
}

// Red when a credential goes over a connection that the published authority does not verify, when a follower's answer ends the search for
// the leader, when a broken port-forward is no error, or when an error does not say what was tried.
func TestTheEndpointIsReachedByItsPods(t *testing.T) {
	w, user := shown(t, "pods")
	expect.Create(t, w.seed, given.Installation(w.namespace, "web", "web", w.space, given.In("1.0.0"), given.NewNamespace))
	call := []string{"values", "web", "--cluster", "pods"}
	address, got := strangers(t)
	w.at(address)
	shell := on(t, "seed")
	shell.run(call...).fails(t, cli.ExitUnreachable, address, "certificate", "query", "query.url")
	w.pods()
	w.kubelet(false)
	shell.run(call...).works(t)
	w.at("https://" + fleet.Address(t))
	shell.run(call...).works(t)
	user.run(call...).fails(t, cli.ExitUnreachable, "list endpointslices.discovery.k8s.io", "refused")
	w.kubelet(true)
	shell.run(call...).fails(t, cli.ExitUnreachable, "a port-forward to pod a-follower", "a port-forward to pod b-leader")
	if got.Len() > 0 {
		t.Errorf("a server with another authority was sent %s", got)
	}
	expect.Merge(t, w.seed, published(), []byte(`{"data":{"ca.crt":null}}`))
	shell.run(call...).fails(t, cli.ExitUnreachable, "no certificate authority yet")
}
