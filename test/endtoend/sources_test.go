package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// sourceSecret is a Secret of the platform with the credentials of one kind of source.
func sourceSecret(name string, data map[string][]byte) *corev1.Secret {
	made := given.SourceSecret(sandbox.Namespace, name, data)
	made.Annotations[kubermaticv1.AnnotationUsedBy] = "*"
	return made
}

func chartFiles(name, more string) map[string]string {
	return map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" + more,
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n" +
			"data: {value: \"of {{ .Chart.Name }}\"}\n",
	}
}

func below(folder string, files map[string]string) map[string]string {
	moved := map[string]string{}
	for path, content := range files {
		moved[folder+"/"+path] = content
	}
	return moved
}

// testEverySource installs from an image, a chart in a registry, charts in an image and in git, and git by ssh.
func testEverySource(t *testing.T, box *sandbox.Sandbox) {
	master := box.Client(sandbox.Master)
	expect.Ensure(t, master, sourceSecret("by-ssh", map[string][]byte{
		"ssh-privatekey": box.Sources.SSH.Key, "known_hosts": box.Sources.SSH.KnownHosts,
	}))
	image, err := box.Sources.Image("team/sourced", "v1", map[string]string{
		"plain/settings.yaml": settingsManifest("of-the-image"), "elsewhere/broken.yaml": "{{",
	})
	expect.NoError(t, err)
	if _, err := box.Sources.Image("team/charts", "v1", below("web", chartFiles("imaged", ""))); err != nil {
		t.Fatal(err)
	}
	if _, err := box.Sources.ChartInRegistry("charts", chartFiles("pushed", "")); err != nil {
		t.Fatal(err)
	}
	commit(t, box, "sourced", below("chart", chartFiles("committed", "")))
	commit(t, box, "byssh", map[string]string{"plain/settings.yaml": settingsManifest("by-ssh")})
	ca := &kubermaticv1.LocalReference{Name: sandbox.CASecret}
	docker := func(image, path string) *kubermaticv1.Source {
		return &kubermaticv1.Source{Docker: &kubermaticv1.ImageSource{Image: box.Sources.Registry + "/" + image, Path: path, CASecretRef: ca}}
	}
	for _, test := range []struct {
		name     string
		method   kubermaticv1.Method
		source   *kubermaticv1.Source
		value    string
		revision string
	}{
		{"of-image", kubermaticv1.MethodGoTemplate, docker("team/sourced:v1", "plain"), "of-the-image", image},
		{"of-digest", kubermaticv1.MethodGoTemplate, docker("team/sourced@"+image, "plain"), "of-the-image", image},
		{"of-image-chart", kubermaticv1.MethodHelm, docker("team/charts:v1", "web"), "of imaged", ""},
		{"of-oci-chart", kubermaticv1.MethodHelm, &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
			URL: "oci://" + box.Sources.Registry + "/charts", Chart: "pushed", Version: "1.0.0", CASecretRef: ca,
		}}, "of pushed", "1.0.0"},
		{"of-git-chart", kubermaticv1.MethodHelm, gitVersion(box, "sourced", "chart").Source, "of committed", ""},
		{"of-ssh", kubermaticv1.MethodGoTemplate, &kubermaticv1.Source{Git: &kubermaticv1.GitSource{
			Remote: kubermaticv1.GitRemote(box.Sources.SSH.URL + "/byssh.git"), Path: "plain",
			SecretRef: &kubermaticv1.LocalReference{Name: "by-ssh"},
		}}, "by-ssh", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Ensure(t, master, catalogueOf(test.name, kubermaticv1.AddonVersion{
				Version: "1.0.0", Template: &kubermaticv1.Template{Method: test.method}, Source: test.source,
			}))
			installation := newInstallation(test.name, test.name)
			expect.Ensure(t, box.Client(cluster.Seed), installation)
			found := ready(t, box.Client(cluster.Seed), installation)
			if got := settings(t, box.Client(cluster.Name), test.name).Data["value"]; got != test.value {
				t.Errorf("the value is %q", got)
			}
			if got := found.Status.Artifact; got == nil || test.revision != "" && got.Revision != test.revision || !strings.HasPrefix(got.Digest, "sha256:") {
				t.Errorf("the artifact is %+v", got)
			}
		})
	}
	testSourcesThatFail(t, box)
	t.Run("an image without tag or digest is refused at once", func(t *testing.T) {
		nameless := catalogueOf("no-word", kubermaticv1.AddonVersion{
			Version: "1.0.0", Template: &kubermaticv1.Template{Method: kubermaticv1.MethodHelm},
			Source: &kubermaticv1.Source{Docker: &kubermaticv1.ImageSource{Image: box.Sources.Registry + "/team/lacking"}},
		})
		err := box.Client(sandbox.Master).Create(t.Context(), nameless)
		if err == nil || !strings.Contains(err.Error(), "neither tag nor digest") {
			t.Errorf("it is answered with %v", err)
		}
	})
}

// testSourcesThatFail: each failure has its reason, and names what is wrong.
func testSourcesThatFail(t *testing.T, box *sandbox.Sandbox) {
	seed := box.Client(cluster.Seed)
	if _, err := box.Sources.Image("team/lacking", "v1", below("web", chartFiles("lacking", "dependencies: [{name: redis, version: 1.0.0}]\n"))); err != nil {
		t.Fatal(err)
	}
	ca := &kubermaticv1.LocalReference{Name: sandbox.CASecret}
	docker := func(image, path string) *kubermaticv1.Source {
		return &kubermaticv1.Source{Docker: &kubermaticv1.ImageSource{Image: box.Sources.Registry + "/" + image, Path: path, CASecretRef: ca}}
	}
	for _, test := range []struct {
		name, condition, reason string
		words                   []string
		source                  *kubermaticv1.Source
	}{
		{"no-tag", kubermaticv1.ConditionFetched, kubermaticv1.ReasonArtifactNotFound, []string{"v9", "/team/lacking"}, docker("team/lacking:v9", "web")},
		{"no-path", kubermaticv1.ConditionFetched, kubermaticv1.ReasonArtifactNotFound, []string{"nowhere", "/team/lacking@sha256:"},
			docker("team/lacking:v1", "nowhere")},
		{"no-dependencies", kubermaticv1.ConditionRendered, kubermaticv1.ReasonDependenciesMissing, []string{"redis"}, docker("team/lacking:v1", "web")},
		{"no-key", kubermaticv1.ConditionFetched, kubermaticv1.ReasonArtifactRefused, []string{"known_hosts"}, &kubermaticv1.Source{
			Git: &kubermaticv1.GitSource{Remote: kubermaticv1.GitRemote(box.Sources.SSH.URL + "/byssh.git")},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Ensure(t, box.Client(sandbox.Master), catalogueOf(test.name, kubermaticv1.AddonVersion{
				Version: "1.0.0", Template: &kubermaticv1.Template{Method: kubermaticv1.MethodHelm}, Source: test.source,
			}))
			installation := newInstallation(test.name, test.name)
			expect.Ensure(t, seed, installation)
			expect.Object(t, seed, installation.DeepCopy(), func(found *kubermaticv1.AddonInstallation) error {
				if err := expect.Condition(found, test.condition, "False", test.reason); err != nil {
					return err
				}
				for _, condition := range found.Status.Conditions {
					if condition.Type == test.condition {
						return expectWords(condition.Message, test.words)
					}
				}
				return fmt.Errorf("condition %s is gone", test.condition)
			})
		})
	}
}
