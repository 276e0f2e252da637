package query_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/serve/query"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
)

// kubectl runs the program that users have, as docs/spec/query.md has its commands.
type kubectl struct {
	t                          *testing.T
	program, server, authority string
}

func (w *world) kubectl(t *testing.T) kubectl {
	t.Helper()
	cache, err := binaries.Cache()
	expect.NoError(t, err)
	program, err := binaries.Find(cache, "kubectl", "")
	expect.NoError(t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: query.CertificateSecret}}
	expect.Object(t, w.seed, secret, func(*corev1.Secret) error { return nil })
	authority := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(authority, secret.Data["ca.crt"], 0o600))
	return kubectl{t, program, "https://" + w.endpoint.Address(), authority}
}

// run gives what kubectl prints to both sides.
func (k kubectl) run(token, body string, arguments ...string) (output, said string) {
	k.t.Helper()
	arguments = append([]string{"--server", k.server, "--certificate-authority", k.authority, "--token", token}, arguments...)
	command := exec.CommandContext(k.t.Context(), k.program, arguments...)
	var out, problem bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(body), &out, &problem
	command.Env = []string{"HOME=" + k.t.TempDir()}
	_ = command.Run() // what it says tells more than its exit code
	return out.String(), strings.TrimSpace(problem.String())
}

// TestKubectlShowsWhatTheEndpointSays asks by the real kubectl: answers, the upgrade check, and
// every kind of refusal in words.
func TestKubectlShowsWhatTheEndpointSays(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.36.3")
	w.install(mine, "pinned", "web", "1.5.0", "1.5.0")
	w.start()
	tenant, admin := w.account("tenant"), w.account("admin")
	w.grant("tenant", mine, catalogues, "addoninstallations")
	w.grant("admin", w.catalogue, catalogues)
	k := w.kubectl(t)
	check := `{"namespace": "` + mine + `", "k8sVersion": "1.37.1"}`

	var listing catalogue.Listing
	out, said := k.run(tenant, "", "get", "--raw", "/api/v1/namespaces/"+mine+"/addons")
	if err := json.Unmarshal([]byte(out), &listing); err != nil || len(listing.Addons) != 1 || said != "" {
		t.Errorf("the listing: %v, %q, %q", err, out, said)
	}
	var answer upgradeAnswer
	out, said = k.run(tenant, check, "create", "--raw", "/api/v1/upgrade-check", "-f", "-")
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Breaks != 1 || said != "" {
		t.Errorf("the upgrade check: %v, %q, %q", err, out, said)
	}
	for _, test := range []struct {
		why, token, body string
		arguments        []string
		want             string
	}{
		{
			"a wrong parameter", admin, "", []string{"get", "--raw", "/api/v1/addons?k8sVersion=abc"},
			`Error from server (BadRequest): k8sVersion: "abc" is not a version: write one like 1.36.3`,
		},
		{
			"no right", tenant, "", []string{"get", "--raw", "/api/v1/addons?k8sVersion=1.36.3"},
			"Error from server (NotFound): there is nothing here that you may see",
		},
		{
			"a wrong token", "wrong", "", []string{"get", "--raw", "/api/v1/namespaces/" + mine + "/addons"},
			"error: You must be logged in to the server (send a valid token (Authorization: Bearer <token>) or client certificate of the seed's API server)",
		},
		{
			"a wrong body", tenant, "[]", []string{"create", "--raw", "/api/v1/upgrade-check", "-f", "-"},
			"Error from server (BadRequest): body: it is not the JSON object that the OpenAPI document describes",
		},
		{
			"a wrong verb", tenant, check, []string{"create", "--raw", "/api/v1/namespaces/" + mine + "/addons", "-f", "-"},
			"Error from server (MethodNotAllowed): use GET or HEAD",
		},
		{
			"a large body", tenant, strings.Repeat(" ", 20<<10) + check, []string{"create", "--raw", "/api/v1/upgrade-check", "-f", "-"},
			"Error from server (RequestEntityTooLarge): the body may have at most 16384 bytes",
		},
	} {
		if out, said := k.run(test.token, test.body, test.arguments...); said != test.want || out != "" {
			t.Errorf("%s:\n got %q, %q\nwant %q", test.why, out, said, test.want)
		}
	}
}

// TestBodiesWithoutATypeAreJSON holds beside it what is refused still.
func TestBodiesWithoutATypeAreJSON(t *testing.T) {
	w := newWorld(t)
	w.layOutWeb()
	mine := w.cluster("mine", "v1.36.3")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, catalogues, "addoninstallations")
	for kind, want := range map[string]int{
		"": http.StatusOK, "application/json": http.StatusOK, "application/json; charset=utf-8": http.StatusOK,
		"text/plain": http.StatusUnsupportedMediaType, "application/yaml": http.StatusUnsupportedMediaType, ";": http.StatusUnsupportedMediaType,
	} {
		headers := []string{"Content-Type", kind}
		if kind == "" {
			headers = []string{withoutType, ""}
		}
		got := w.ask(http.MethodPost, "/api/v1/upgrade-check", tenant, `{"namespace":"`+mine+`","k8sVersion":"1.37.0"}`, headers...)
		got.expectStatus(t, "type "+kind, want)
	}
}
