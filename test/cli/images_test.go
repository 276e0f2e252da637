package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/golden"
)

// Red when an image is looked for at another place than its mirror, or by its tag although it has a digest; when a missing one has no line,
// or a line that does not copy it; and when the exit code hides what is missing.
func TestImagesAreCheckedInAMirror(t *testing.T) {
	w := serve(t, "mirrored")
	public, mirror := fetchtest.ServeRegistry(t), fetchtest.ServeRegistry(t)
	there := public.Image("team/there", "v1", []byte("there"))
	absent := public.Image("team/absent", "v1", []byte("absent"))
	public.Image("team/tagged", "v1", []byte("tagged"))
	public.Image("team/new", "v2", []byte("new"))
	mirror.Image("hub/team/there", "v1", []byte("there"))
	mirror.Image("hub/team/tagged", "v1", []byte("tagged"))
	mirror.Image("hub/team/absent", "v1", []byte("another image"))
	var containers []string
	for i, image := range []string{
		public.Host + "/team/there:v1@" + there.Digest.String(), public.Host + "/team/absent:v1@" + absent.Digest.String(),
		public.Host + "/team/tagged:v1", public.Host + "/team/new:v2", mirror.Host + "/hub/team/moved:v1", "nginx",
	} {
		containers = append(containers, fmt.Sprintf("{name: c%d, image: '%s'}", i, image))
	}
	files := map[string]string{"pods.yaml": "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: pods, namespace: " + w.space + "}\n" +
		"template: {spec: {containers: [" + strings.Join(containers, ", ") + "]}}\n"}
	w.publish("pods", files, files)
	w.at("https://" + w.leader.Address())
	clusterUser(t, w.seed, w.namespace).run("install", "pods", "--cluster", "mirrored", "--yes", "--wait").works(t)

	authority := filepath.Join(t.TempDir(), "ca.crt")
	expect.NoError(t, os.WriteFile(authority, mirror.CA, 0o600))
	admin := on(t, "seed")
	check := func(code int, arguments ...string) string {
		t.Helper()
		got := admin.run(append([]string{"images", "--cluster", "mirrored", "--registry-ca", authority}, arguments...)...)
		if got.code != code {
			t.Errorf("%v: exit code %d, want %d", arguments, got.code, code)
		}
		return got.out + got.err
	}
	hide := func(text string) string {
		lines := strings.SplitAfter(digests.ReplaceAllString(strings.NewReplacer(public.Host, "PUBLIC", mirror.Host, "MIRROR").Replace(text), "ID"), "\n")
		slices.Sort(lines) // the command sorts by registry, and a registry's port is another one each time
		return strings.Join(lines, "")
	}
	rule := []string{"--check", public.Host + "=" + mirror.Host + "/hub"}
	for _, format := range []string{"wide", "crane", "skopeo", "name"} {
		golden.Match(t, "testdata/images-check-"+format+".txt", hide(check(cli.ExitNo, append(rule, "-o", format)...)))
	}
	golden.Match(t, "testdata/images-check-all.txt", hide(check(cli.ExitNo, "--check", mirror.Host+"/hub")))

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(mirror.CA)
	trusted.AppendCertsFromPEM(public.CA)
	with := crane.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}})
	copied := 0
	for line := range strings.Lines(check(cli.ExitNo, append(rule, "-o", "crane")...)) {
		if words := strings.Fields(line); words[0] == "crane" && strings.HasPrefix(words[2], public.Host) && !strings.Contains(words[2], "moved") {
			expect.NoError(t, crane.Copy(words[2], words[3], with))
			copied++
		}
	}
	if text := check(cli.ExitNo, rule...); copied != 2 || strings.Count(text, "Missing") != 1 || !strings.Contains(text, "moved") {
		t.Errorf("after %d copies:\n%s", copied, text)
	}

	admin.run("images", "-o", "crane", "--cluster", "mirrored").fails(t, cli.ExitUsage, "--check")
	for _, wrong := range []string{"https://x", "a=b=c", ""} {
		admin.run("images", "--cluster", "mirrored", "--check", wrong).fails(t, cli.ExitUsage, "--check")
	}
	mirror.Close()
	if text := check(cli.ExitNo, rule...); !strings.Contains(text, "Unknown") {
		t.Errorf("of a mirror that does not answer:\n%s", text)
	}
}
