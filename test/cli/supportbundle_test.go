package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/world"
)

// secretCanary is in every place of the objects below that may have a secret value.
const secretCanary = "canary-7d1f0c93"

// bundled are the files of a bundle by name.
func bundled(t testing.TB, name string) map[string]string {
	t.Helper()
	file, err := os.Open(name)
	expect.NoError(t, err)
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	expect.NoError(t, err)
	found := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return found
		}
		expect.NoError(t, err)
		content, err := io.ReadAll(archive)
		expect.NoError(t, err)
		found[strings.TrimPrefix(header.Name, "trellis-support/")] = string(content)
	}
}

// managerOf is a manager's Deployment and Pod, with a secret in the environment.
func managerOf(namespace string) (*appsv1.Deployment, *corev1.Pod) {
	labels := map[string]string{"app.kubernetes.io/name": "trellis-seed"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "manager", Image: "registry.example/seed@sha256:" + strings.Repeat("a", 64), Args: []string{"--namespace=support"},
		Env: []corev1.EnvVar{{Name: "TOKEN", Value: secretCanary}},
	}}}
	named := metav1.ObjectMeta{Namespace: namespace, Name: "trellis", Labels: labels, Annotations: map[string]string{"by": secretCanary}}
	return &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
	}}, &corev1.Pod{ObjectMeta: named, Spec: pod}
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// Red when a secret value is in a bundle, also encoded, something that helps is not, or a file is overwritten or readable by others.
func TestSupportBundleHasNoSecretValue(t *testing.T) {
	seed, namespace := shop(t, "helped")
	values := `{"password":"` + secretCanary + `","list":["` + secretCanary + `"],"deep":{"token":"` + secretCanary + `"}}`
	raw := &runtime.RawExtension{Raw: []byte(values)}
	applied := map[string]string{corev1.LastAppliedConfigAnnotation: values, v1.AnnotationAdopt: "true"}
	expect.Create(t, seed, world.Namespace("support"))
	version := given.Version("1.0.0", given.Git("https://git.example/a", ""))
	version.Values, version.ValuesTemplate = raw, "password: "+secretCanary
	version.Template.FormSpec = []v1.FormField{{
		DisplayName: "P", InternalName: "p", Type: v1.FormText, Default: &runtime.RawExtension{Raw: []byte(`"` + secretCanary + `"`)},
	}}
	written := given.Catalogue("support", "written", given.Addon("secretive", version))
	written.Annotations = applied
	set := given.Set("support", "secretive", "secretive")
	set.Spec.Addons[0].Values = raw
	set.Spec.Overrides = []v1.AddonSetOverride{{ClusterSelector: &metav1.LabelSelector{}, Addon: set.Spec.Addons[0].Name, Values: raw}}
	deployment, pod := managerOf("support")
	expect.Create(t, seed, written, set, deployment, pod,
		given.Secret("support", "secret", map[string][]byte{"key": []byte(secretCanary)}),
		given.Secret(namespace, "secret", map[string][]byte{"key": []byte(secretCanary)}),
		configMap("support", v1.ConfigMapOwners, map[string]string{"secretive": "written"}),
		configMap("support", "other", map[string]string{"key": secretCanary}))
	inState(t, seed, given.Installation(namespace, "secretive", "secretive", "apps", given.Values(values), func(made *v1.AddonInstallation) {
		made.Spec.ValuesTemplate, made.Annotations = "password: "+secretCanary, applied
	}), notReady(v1.ReasonObjectExists, "a ConfigMap exists"))
	expect.Create(t, seed, event(namespace, "secretive", v1.EventApplied, "version 1.0.0", 0))

	expect.Create(t, seed, event(namespace, "secretive", v1.EventApplied, "from https://robot:p@"+secretCanary+"@git.example/a", 1))
	shell, folder := on(t, "seed"), t.TempDir()
	file := filepath.Join(folder, "all.tar.gz")
	call := []string{"support-bundle", "--platform-namespace", "support", "-f"}
	shell.run(append(call, file)...).works(t)
	found := bundled(t, file)
	for name, content := range found {
		for _, secret := range []string{secretCanary, base64.StdEncoding.EncodeToString([]byte(secretCanary))[:18]} {
			if strings.Contains(content, secret) {
				t.Errorf("file %q has a secret value", name)
			}
		}
	}
	for name, text := range map[string]string{
		"addoncatalogues.yaml": "name: written", "addoninstallations.yaml": "token: '***'", "addonsets.yaml": "name: secretive",
		"events.yaml": "version 1.0.0", "deployments.yaml": "--namespace=support", "pods.yaml": "kind: Pod",
		"configmap-addon-owners.yaml": "secretive: written", "versions.txt": "kubectl addons:",
		"customresourcedefinitions.yaml": "addoninstallations.kubermatic.k8c.io", "contents.txt": "logs/trellis/manager.log: ",
	} {
		if !strings.Contains(found[name], text) {
			t.Errorf("file %q has no %q:\n%.2000s", name, text, found[name])
		}
	}
	if about, err := os.Stat(file); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", about.Mode(), err)
	}
	shell.run(append(call, file)...).fails(t, cli.ExitRefused, "exists")

	one := filepath.Join(folder, "one.tar.gz")
	clusterUser(t, seed, namespace).run(append(call, one, "--cluster", "helped")...).works(t)
	found = bundled(t, one)
	contents, installations := found["contents.txt"], found["addoninstallations.yaml"]
	if !strings.Contains(contents, "you lack the right to list deployments.apps") || !strings.Contains(installations, "name: secretive") {
		t.Errorf("what a user may read:\n%s", contents)
	}
	var all v1.AddonInstallationList
	expect.List(t, seed, &all, client.InNamespace(namespace))
	if strings.Count(installations, "kind: AddonInstallation") != len(all.Items) {
		t.Errorf("installations of other clusters are in it:\n%s", installations)
	}
}
