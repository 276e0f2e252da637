package pod

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
)

const robot, password = "robot", "a-word"

// TestAnImageIsPulledWithTheLoginOfThePod: that of its account, since the pod names none. The container's root has the image's files, and
// volumes beside them. Red when it is pulled by anybody else's login, or without one, and when a file of the image is missing.
func TestAnImageIsPulledWithTheLoginOfThePod(t *testing.T) {
	node, program := newNode(t)
	layOut(t, node.Client)
	sources := fleet.SourcesForTest(t)
	sources.RequireLogin(fleet.SourceRegistry, robot, password)
	trusts := sources.Transport(t)
	reference := pushProbe(t, sources, trusts, program)
	spec := probe()
	spec.Containers[0].Image = reference
	reported := filepath.Join(t.TempDir(), "log")
	container := Container{Name: "pulled", Namespace: namespace, Spec: spec, Log: reported}
	_, err := node.Pull(t.Context(), container, trusts)
	for _, word := range []string{reference, `pod "pulled" in namespace "pods" of cluster "one"`, "401"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("without a login it says %v, want %q in it", err, word)
		}
	}
	giveLogin(t, node.Client, sources.Registry)
	if container.Image, err = node.Pull(t.Context(), container, trusts); err != nil {
		t.Fatal(err)
	}
	process, err := node.Run(t.Context(), container)
	expect.NoError(t, err)
	t.Cleanup(node.Wait)
	t.Cleanup(process.Kill)
	for _, line := range []string{
		"Uid 65532", "arguments [/probe --limit=1073741824 $(ABSENT) /var/own/file /etc/secret/word]", "followed first <nil>",
	} {
		expect.Eventually(t, expect.Patience, func() error { return says(reported, line) })
	}
	container.Spec.SecurityContext.RunAsUser = new(int64(1))
	if _, err := node.Run(t.Context(), container); err == nil || !strings.Contains(err.Error(), "the pod runs as 1, its image as 65532") {
		t.Errorf("as another user than the image's it says %v", err)
	}
	node.Open = true
	if _, err := node.Run(t.Context(), container); err == nil || !strings.Contains(err.Error(), errPlain.Error()) {
		t.Errorf("an open node says %v", err)
	}
}

// pushProbe pushes an image of the probe, with a file beside its volumes.
func pushProbe(t *testing.T, sources *fleet.Sources, trusts http.RoundTripper, program string) (reference string) {
	t.Helper()
	content, err := os.ReadFile(program)
	expect.NoError(t, err)
	var archive bytes.Buffer
	files := tar.NewWriter(&archive)
	for path, data := range map[string][]byte{"probe": content, "etc/beside": []byte("x")} {
		expect.NoError(t, files.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}))
		if _, err := files.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	expect.NoError(t, files.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	expect.NoError(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err == nil {
		image, err = mutate.Config(image, v1.Config{User: "65532:65532", Entrypoint: []string{"/probe"}})
	}
	expect.NoError(t, err)
	to, err := name.ParseReference(sources.Registry + "/team/probe:1")
	expect.NoError(t, err)
	login := remote.WithAuth(&authn.Basic{Username: robot, Password: password})
	expect.NoError(t, remote.Write(to, image, remote.WithTransport(trusts), remote.WithContext(t.Context()), login))
	return to.String()
}

// giveLogin has the account of the probe name a Secret with the login.
func giveLogin(t *testing.T, c client.Client, registry string) {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte(robot + ":" + password))
	login := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, registry, auth)},
	}
	expect.Create(t, c, login)
	who := &corev1.ServiceAccount{}
	expect.Get(t, c, client.ObjectKey{Namespace: namespace, Name: account}, who)
	who.ImagePullSecrets = []corev1.LocalObjectReference{{Name: login.Name}}
	expect.Update(t, c, who)
}
