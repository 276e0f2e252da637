package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/hack/release/components"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// helmCluster takes the charts, plainCluster and clusterctlCluster what clusterctl takes.
const (
	helmCluster, plainCluster, clusterctlCluster = "helm", "plain", "clusterctl"
	version                                      = "1.2.3-rc.1"
)

func TestMain(m *testing.M) {
	plain, clusterctl := fleet.ClusterOptions{Name: plainCluster}, fleet.ClusterOptions{Name: clusterctlCluster}
	fleet.Main(m, fleet.ClusterOptions{Name: helmCluster}, plain, clusterctl)
}

// program is what all programs are in the checkout of the tests, for the sake of minutes.
const program = "package main\n\nimport \"example.com/tiny/pkg/base/buildinfo\"\n\nfunc main() { println(buildinfo.Text()) }\n"

// makeCheckout makes one with this one's charts, folders and changelog, and small programs.
func makeCheckout(folder string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	for _, one := range []string{"charts", "deploy"} {
		if err := os.CopyFS(filepath.Join(folder, one), os.DirFS(filepath.Join(root, one))); err != nil {
			return err
		}
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"CHANGELOG.md":                          string(changelog),
		"go.mod":                                "module example.com/tiny\n\ngo 1.26.6\n\ntoolchain " + runtime.Version() + "\n",
		"cmd/master-controller-manager/main.go": program,
		"cmd/seed-controller-manager/main.go":   program,
		"cmd/kubectl-addons/main.go":            program,
		"cmd/trellis-web/main.go":               program,
		"LICENSE":                               "Apache License 2.0\n",
		"pkg/base/buildinfo/buildinfo.go": "package buildinfo\n\nvar version, commit, date string\n\n" +
			"func Text() string { return version + \" \" + commit + \" \" + date }\n",
	} {
		file = filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, arguments := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "One"}} {
		arguments = append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"}, arguments...)
		command := exec.CommandContext(context.Background(), "git", arguments...)
		const date = "2026-01-02T03:04:05Z"
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE="+date, "GIT_AUTHOR_DATE="+date, "GIT_CONFIG_GLOBAL=/dev/null")
		if text, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %w\n%s", arguments, err, text)
		}
	}
	return nil
}

// makeRelease makes one of a checkout of its own, and gives its files.
func makeRelease(folder string) (map[string][]byte, error) {
	module := filepath.Join(folder, "checkout")
	if err := makeCheckout(module); err != nil {
		return nil, err
	}
	made, err := run(context.Background(), options{
		module: module, folder: filepath.Join(folder, "out"), platforms: "linux/amd64,linux/arm64", version: "v" + version,
	})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(made)
	for _, entry := range entries {
		if files[entry.Name()], err = os.ReadFile(filepath.Join(made, entry.Name())); err != nil {
			return nil, err
		}
	}
	return files, err
}

// first is a release that is made once.
var first = sync.OnceValues(func() (map[string][]byte, error) {
	folder, err := os.MkdirTemp("", "trellis-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	return makeRelease(folder)
})

// released are the files of the release, and a folder that they are in.
func released(t *testing.T) (files map[string][]byte, folder string) {
	t.Helper()
	files, err := first()
	if err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files, folder
}

// A release of the same commit from another folder is the same to the last byte, and has these files. Red when
// charts are packed with the time of day, or when images have it.
func TestTheSameReleaseTwice(t *testing.T) {
	one, _ := released(t)
	other, err := makeRelease(filepath.Join(t.TempDir(), "deeper"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range one {
		names = append(names, name)
		if !bytes.Equal(one[name], other[name]) {
			t.Errorf("%s differs", name)
		}
	}
	slices.Sort(names)
	want := []string{"SHA256SUMS", "addon-components.yaml", "crds-standalone.yaml", "crds.yaml", "digests.txt"}
	for _, program := range []string{"master-controller-manager-", "seed-controller-manager-", "trellis-web-"} {
		for _, kind := range []string{"-linux-amd64.tar", "-linux-arm64.tar", "-oci.tar"} {
			want = append(want, program+version+kind)
		}
	}
	want = append(want, "metadata.yaml", "notes.md", "seed-rights.yaml")
	for _, chart := range []string{"trellis-master-", "trellis-seed-", "trellis-web-"} {
		want = append(want, chart+version+".tgz")
	}
	for _, platform := range []string{"darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64", "windows-amd64", "windows-arm64"} {
		want = append(want, "kubectl-addons-"+version+"-"+platform+".tar.gz")
	}
	want = append(want, "krew.yaml")
	slices.Sort(want)
	if diff := cmp.Diff(want, names); diff != "" || len(other) != len(one) {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// sha256sum itself is asked. Red when a file is written after its sum, or a file has none.
func TestSumsAreTrue(t *testing.T) {
	files, folder := released(t)
	command := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, output)
	}
	if got := strings.Count(string(files["SHA256SUMS"]), "\n"); got != len(files)-1 {
		t.Errorf("%d sums of %d files", got, len(files)-1)
	}
}

// Red when the manifest for krew names an archive that is not there, another sum, or a file that is not in the archive.
func TestKrewFindsTheArchives(t *testing.T) {
	files, folder := released(t)
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(files["krew.yaml"], &map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(files["krew.yaml"], &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Spec.Version != "v"+version || len(manifest.Spec.Platforms) != 6 {
		t.Errorf("version %q, %d platforms", manifest.Spec.Version, len(manifest.Spec.Platforms))
	}
	for _, one := range manifest.Spec.Platforms {
		name := path.Base(one.URI)
		sum := sha256.Sum256(files[name])
		labels := one.Selector.MatchLabels
		if files[name] == nil || one.SHA256 != hex.EncodeToString(sum[:]) || !strings.Contains(name, labels["os"]+"-"+labels["arch"]) ||
			one.URI != "https://example.com/tiny/releases/download/v"+version+"/"+name {
			t.Errorf("%v: %s with sum %s", labels, one.URI, one.SHA256)
		}
		listed, err := exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(folder, name)).Output()
		if members := strings.Fields(string(listed)); err != nil || !slices.Contains(members, one.Bin) || !slices.Contains(members, "LICENSE") {
			t.Errorf("%s has %q: %v", name, members, err)
		}
	}
}

// imageOf is the image that a chart of the release has to run.
func imageOf(t *testing.T, files map[string][]byte, program string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^(sha256:[0-9a-f]{64})  ` + program + ` index$`).FindSubmatch(files["digests.txt"])
	if found == nil {
		t.Fatalf("digests.txt has no index of %s:\n%s", program, files["digests.txt"])
	}
	return "trellis-addons/" + program + ":" + version + "@" + string(found[1])
}

// An archive of images is a layout whose first entry is the index that the charts name. Red when it is another one.
func TestArchivesHoldTheImagesOfTheCharts(t *testing.T) {
	files, folder := released(t)
	for _, program := range []string{"master-controller-manager", "seed-controller-manager", "trellis-web"} {
		unpacked := t.TempDir()
		tar := exec.CommandContext(t.Context(), "tar", "-xf", filepath.Join(folder, program+"-"+version+"-oci.tar"), "-C", unpacked)
		if output, err := tar.CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, output)
		}
		index, err := layout.ImageIndexFromPath(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		if got := manifest.Manifests[0].Digest.String(); !strings.HasSuffix(imageOf(t, files, program), "@"+got) {
			t.Errorf("the archive of %s has index %s", program, got)
		}
	}
}

// kubeconfig is a file that leads to a cluster.
func kubeconfig(t *testing.T, cluster string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fleet.Shared().Cluster(cluster).Kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func connect(t *testing.T, cluster string) client.Client {
	t.Helper()
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(fleet.Shared().Cluster(cluster).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// provided are the objects of the components YAML.
func provided(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	files, _ := released(t)
	var objects []*unstructured.Unstructured
	for part := range strings.SplitSeq(strings.TrimPrefix(string(files["addon-components.yaml"]), "---\n"), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// The components keep the rules of clusterctl's contract: one Namespace, all of what is namespaced in it, the label on
// everything, a container "manager" in each Deployment with the image of this build. Red when a label, or the namespace of
// an object, is missing.
func TestComponentsKeepTheContract(t *testing.T) {
	files, _ := released(t)
	kinds, images, seen := map[string]int{}, []string{}, map[string]bool{}
	for _, object := range provided(t) {
		kinds[object.GetKind()]++
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if object.GetLabels()["cluster.x-k8s.io/provider"] != "addon-trellis" {
			t.Errorf("%s has labels %v", key, object.GetLabels())
		}
		if namespace := object.GetNamespace(); namespace != "" && namespace != components.Namespace {
			t.Errorf("%s is in another namespace", key)
		}
		if object.GetKind() != "Deployment" {
			continue
		}
		var manager appsv1.Deployment
		if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &manager); err != nil {
			t.Fatal(err)
		}
		if container := manager.Spec.Template.Spec.Containers[0]; container.Name == "manager" {
			images = append(images, container.Image)
		}
	}
	if kinds["Namespace"] != 1 || kinds["CustomResourceDefinition"] != 5 {
		t.Errorf("kinds: %v", kinds)
	}
	const host = "docker.io/" // this release was pushed nowhere, and clusterctl takes no name without a host
	want := []string{host + imageOf(t, files, "master-controller-manager"), host + imageOf(t, files, "seed-controller-manager")}
	if diff := cmp.Diff(want, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

// clusterScoped are the kinds that clusterctl takes for cluster-wide (cmd/clusterctl/internal/util/objs.go of Cluster
// API, IsResourceNamespaced); it puts the namespace into all others, policies included.
var clusterScoped = []string{
	"Namespace", "Node", "PersistentVolume", "PodSecurityPolicy", "CertificateSigningRequest", "ClusterRoleBinding", "ClusterRole",
	"VolumeAttachment", "StorageClass", "CSIDriver", "CSINode", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
	"CustomResourceDefinition", "PriorityClass", "RuntimeClass",
}

// A bare API server takes the components, from kubectl, and as clusterctl creates them. Red when an object of the charts
// is one that a server refuses once it is labelled, or has a namespace that it can't have.
func TestComponentsAreTaken(t *testing.T) {
	_, folder := released(t)
	cache, err := binaries.Cache()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := binaries.Find(cache, "kubectl", "")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), kubectl, "apply", "--server-side", "-f", filepath.Join(folder, "addon-components.yaml"))
	command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + kubeconfig(t, plainCluster)}
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("kubectl apply: %v\n%s", err, output)
	}

	c := connect(t, clusterctlCluster)
	for _, object := range provided(t) {
		if !slices.Contains(clusterScoped, object.GetKind()) {
			object.SetNamespace(components.Namespace)
		}
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Errorf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("reading %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// Both files of CRDs together are the kinds that a platform without KKP needs. Red when one is left out.
func TestCRDsAreComplete(t *testing.T) {
	files, _ := released(t)
	names := regexp.MustCompile(`(?m)^  name: (\S+)$`)
	var found []string
	for _, file := range []string{"crds.yaml", "crds-standalone.yaml"} {
		for part := range strings.SplitSeq(string(files[file]), "---\n") {
			if name := names.FindStringSubmatch(part); name != nil {
				found = append(found, name[1])
			}
		}
	}
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, folder := range []string{"charts/trellis-seed/crds", "deploy/standalone/crds"} {
		crds, err := fs.Glob(os.DirFS(filepath.Join(root, folder)), "*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			group, plural, _ := strings.Cut(strings.TrimSuffix(crd, ".yaml"), "_")
			want = append(want, plural+"."+group)
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("CRDs (-want +got):\n%s", diff)
	}
}

// A release that can't be made leaves nothing that looks like one. Red when what is written stays.
func TestABrokenReleaseLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	module, out := filepath.Join(folder, "checkout"), filepath.Join(folder, "out")
	if err := makeCheckout(module); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(module, "deploy/seed/rights.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), options{module: module, folder: out, platforms: "linux/amd64", version: version}); err == nil {
		t.Error("a release without the rights on seeds was made")
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		t.Errorf("%v: there is %v", err, entries)
	}
}

// A registry that can't be pushed to is refused before anything is read or built. Red when a checkout is asked
// for first: there is none here.
func TestAWrongRegistryIsRefusedFirst(t *testing.T) {
	asked := options{module: t.TempDir(), folder: t.TempDir(), platforms: "linux/amd64"}
	asked.registry.Path = "https://registry.example.com/trellis"
	if _, err := run(t.Context(), asked); err == nil || !strings.Contains(err.Error(), `leave out "https://"`) {
		t.Errorf("got %v", err)
	}
}

// What is edited while a release is made gets into none under the commit's name: the go command edits the
// checkout here, before it builds. Red when a release is there, or when it is not said why not.
func TestACheckoutThatChangesMeanwhileIsRefused(t *testing.T) {
	asked := options{module: t.TempDir(), folder: t.TempDir(), platforms: "linux/amd64", version: version}
	if err := makeCheckout(asked.module); err != nil {
		t.Fatal(err)
	}
	command, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = build ]; then echo >>'%s'; fi\nexec '%s' \"$@\"\n",
		filepath.Join(asked.module, "charts/trellis-seed/templates/NOTES.txt"), command)
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if _, err := run(t.Context(), asked); err == nil || !strings.Contains(err.Error(), version+"-dirty") {
		t.Errorf("a checkout that was edited: %v", err)
	}
	if entries, err := os.ReadDir(asked.folder); err != nil || len(entries) > 0 {
		t.Errorf("%v: there is %v", err, entries)
	}
}
