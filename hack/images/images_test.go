package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/oci"
	"github.com/trellis-addons/trellis/hack/images/output"
	"github.com/trellis-addons/trellis/hack/images/sbom"
)

// made is where `make images` wrote to; empty: a small program of the test's own is built.
var made = flag.String("made", "", "the folder of images to look at, as an absolute path; empty: those of a small program")

// tinyFiles are a checkout with a program that has a module of its own and one beside it.
var tinyFiles = map[string]string{
	"go.mod": "module example.com/tiny\n\ngo 1.26.6\n\ntoolchain " + runtime.Version() + "\n\n" +
		"require example.com/inner v0.0.0\n\nreplace example.com/inner => ./inner\n",
	"inner/go.mod":   "module example.com/inner\n\ngo 1.26.6\n",
	"inner/inner.go": "// Package inner tells.\npackage inner\n\n// Tell tells.\nfunc Tell(text string) { println(text) }\n",
	"cmd/tiny/main.go": "package main\n\nimport (\n\t\"example.com/inner\"\n\t\"example.com/tiny/pkg/base/buildinfo\"\n)\n\n" +
		"func main() { inner.Tell(buildinfo.Text()) }\n",
	"cmd/wiring/not.go": "// Package wiring is no program.\npackage wiring\n",
	"pkg/base/buildinfo/buildinfo.go": "// Package buildinfo tells.\npackage buildinfo\n\nvar version, commit, date string\n\n" +
		"// Text is all.\nfunc Text() string { return version + \" \" + commit + \" \" + date }\n",
}

// writeTiny makes the checkout in a folder.
func writeTiny(folder string) error {
	for file, text := range tinyFiles {
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

const platforms = "linux/amd64,linux/arm64"

// buildTiny builds a checkout in a folder.
func buildTiny(folder string) (oci.Build, error) {
	if err := writeTiny(folder); err != nil {
		return oci.Build{}, err
	}
	return build(context.Background(), options{module: folder, platforms: platforms, version: "v1.2.3"})
}

// tiny is what most tests look at, built once.
var tiny = sync.OnceValues(func() (oci.Build, error) {
	folder, err := os.MkdirTemp("", "trellis-tiny-")
	if err != nil {
		return oci.Build{}, err
	}
	defer os.RemoveAll(folder)
	return buildTiny(folder)
})

// written is a folder that a build was written to.
func written(t *testing.T, made oci.Build, to output.Registry) string {
	t.Helper()
	folder := t.TempDir()
	if err := write(t.Context(), options{folder: folder, registry: to}, made); err != nil {
		t.Fatal(err)
	}
	return folder
}

// writtenTiny is a folder with the images of the small program.
func writtenTiny(t *testing.T, to output.Registry) string {
	t.Helper()
	made, err := tiny()
	if err != nil {
		t.Fatal(err)
	}
	return written(t, made, to)
}

// Images of every program for both platforms start, say which build they are, hold nothing but the program
// and authorities, run as nobody, and have a list of all modules in them. With -made, those that `make images`
// built. Red when another file gets into a layer, the user is root, the linker does not write the version, or the
// list leaves a module out.
func TestImagesHoldOneProgram(t *testing.T) {
	folder := *made
	if folder == "" {
		folder = writtenTiny(t, output.Registry{})
	}
	programs, err := os.ReadDir(filepath.Join(folder, "oci"))
	if err != nil || len(programs) == 0 {
		t.Fatalf("no program in %q: %v", folder, err)
	}
	for _, program := range programs {
		path, err := layout.FromPath(filepath.Join(folder, "oci", program.Name()))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := path.ImageIndex()
		if err != nil {
			t.Fatal(err)
		}
		top, err := whole.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		index, err := whole.ImageIndex(top.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Errorf("%s: %v", program.Name(), err)
		}
		platforms, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, one := range platforms.Manifests {
			found[one.Platform.String()] = true
			t.Run(program.Name()+"/"+output.Dashed(*one.Platform), func(t *testing.T) {
				image, err := index.Image(one.Digest)
				if err != nil {
					t.Fatal(err)
				}
				look(t, program.Name(), image, listIn(t, whole, top, one.Digest))
			})
		}
		if want := map[string]bool{"linux/amd64": true, "linux/arm64": true}; !maps.Equal(found, want) {
			t.Errorf("%s is for %v", program.Name(), found)
		}
	}
}

// listIn finds the list of an image in a layout, by what it says its subject is.
func listIn(t *testing.T, whole v1.ImageIndex, top *v1.IndexManifest, subject v1.Hash) []byte {
	t.Helper()
	for _, one := range top.Manifests[1:] {
		image, err := whole.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if text := listOf(t, image, subject); text != nil {
			return text
		}
	}
	t.Fatalf("no list for %s", subject)
	return nil
}

// listOf is the content of a list, if it is one of that image.
func listOf(t *testing.T, image v1.Image, subject v1.Hash) []byte {
	t.Helper()
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Subject == nil || manifest.Subject.Digest != subject || manifest.ArtifactType != sbom.MediaType {
		return nil
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	return readAll(t, layers[0])
}

func readAll(t *testing.T, layer v1.Layer) []byte {
	t.Helper()
	reader, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func look(t *testing.T, program string, image v1.Image, list []byte) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != oci.User || !slices.Equal(config.Config.Entrypoint, []string{"/" + program}) || len(config.Config.Env) > 0 {
		t.Errorf("user %q, entrypoint %q, environment %q", config.Config.User, config.Config.Entrypoint, config.Config.Env)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Config.Labels, manifest.Annotations); diff != "" {
		t.Errorf("labels and annotations differ:\n%s", diff)
	}
	files := filesOf(t, image)
	names := slices.Sorted(maps.Keys(files))
	if want := []string{"etc/", "etc/ssl/", "etc/ssl/certs/", oci.AuthoritiesFile, program}; !slices.Equal(names, want) {
		t.Errorf("the image holds %q", names)
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(files[oci.AuthoritiesFile]) {
		t.Error("no authority in the image")
	}
	binary := filepath.Join(t.TempDir(), program)
	if err := os.WriteFile(binary, files[program], 0o700); err != nil {
		t.Fatal(err)
	}
	compareList(t, binary, list)
	if config.Architecture == runtime.GOARCH {
		text, err := exec.CommandContext(t.Context(), binary, "--version").CombinedOutput()
		if err != nil {
			t.Errorf("--version: %v", err)
		}
		for _, label := range []string{"version", "revision", "created"} {
			if part := config.Config.Labels["org.opencontainers.image."+label]; part == "" || !strings.Contains(string(text), part) {
				t.Errorf("label %s is %q, and the program says %q", label, part, text)
			}
		}
	}
}

// filesOf are the entries of all layers.
func filesOf(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, layer := range layers {
		for entries := tar.NewReader(bytes.NewReader(readAll(t, layer))); ; {
			header, err := entries.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if files[header.Name], err = io.ReadAll(entries); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

// compareList compares with what `go version -m` says.
func compareList(t *testing.T, binary string, list []byte) {
	t.Helper()
	var listed struct {
		Packages []struct {
			ID      string `json:"SPDXID"`
			Name    string `json:"name"`
			Version string `json:"versionInfo"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(list, &listed); err != nil {
		t.Fatal(err)
	}
	ids, names := map[string]bool{}, map[string]string{}
	for _, one := range listed.Packages {
		if ids[one.ID] {
			t.Errorf("two packages are %s", one.ID)
		}
		ids[one.ID], names[one.Name] = true, one.Version
	}
	reported, err := exec.CommandContext(t.Context(), "go", "version", "-m", binary).Output()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for line := range strings.Lines(string(reported)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "dep" && words[0] != "mod" && words[0] != "=>" {
			continue
		}
		compared++
		version, found := names[words[1]]
		switch local := strings.HasPrefix(words[1], "."); {
		case !found && !local:
			t.Errorf("the list lacks %s", words[1])
		case strings.HasPrefix(words[2], "v") && words[2] != "v0.0.0" && version != words[2] && !local:
			t.Errorf("the list has %s %s, in the program is %s", words[1], version, words[2])
		}
	}
	build, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if compared < 1+len(build.Deps) {
		t.Errorf("only %d lines of go version -m compared, and there are %d modules", compared, len(build.Deps))
	}
	if names["stdlib"] != strings.TrimPrefix(build.GoVersion, "go") {
		t.Errorf("the list has Go's library %s, and the program is of %s", names["stdlib"], build.GoVersion)
	}
}

// A folder elsewhere gives the same digests, archives included. Red without -trimpath, or when a time gets into
// an image.
func TestAnotherPathGivesTheSameDigests(t *testing.T) {
	again, err := buildTiny(filepath.Join(t.TempDir(), "deeper", "below"))
	if err != nil {
		t.Fatal(err)
	}
	one, other := treeOf(t, writtenTiny(t, output.Registry{})), treeOf(t, written(t, again, output.Registry{}))
	if diff := cmp.Diff(one, other); diff != "" {
		t.Errorf("what was written differs:\n%s", diff)
	}
}

// treeOf are the files of a folder.
func treeOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		hash, _, err := v1.SHA256(bytes.NewReader(content))
		files[strings.TrimPrefix(file, folder)] = hash.Hex
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A registry gets the index by its version, and the list of each image as what refers to it, whether it knows
// of referrers or not; what comes back has the digests of the folder. `docker load` gets the same image. Red
// when lists are not pushed, or when the tag leads to one platform only.
func TestARegistryGetsTheSame(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		server := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers)))
		t.Cleanup(server.Close)
		path := strings.TrimPrefix(server.URL, "http://") + "/lab"
		folder := writtenTiny(t, output.Registry{Path: path, Insecure: true})
		text, err := os.ReadFile(filepath.Join(folder, "digests.txt"))
		if err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag(path+"/tiny:1.2.3", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		index, err := remote.Index(tag, remote.WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		digests := pulled(t.Context(), t, tag, index)
		for _, line := range digests {
			if !strings.Contains(string(text), line) {
				t.Errorf("the registry has %q, which digests.txt has not:\n%s", line, text)
			}
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if strings.Count(string(text), "sha256:") != len(digests) || first != "# made by "+runtime.Version() {
			t.Errorf("the registry has %d things, and digests.txt:\n%s", len(digests), text)
		}

		loaded, err := tarball.ImageFromPath(filepath.Join(folder, "docker", "tiny-1.2.3-linux-arm64.tar"), &tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Image(loaded); err != nil {
			t.Error(err)
		}
	}
}

// pulled are the digests of what a registry has of a program, as digests.txt has them.
func pulled(ctx context.Context, t *testing.T, tag name.Tag, index v1.ImageIndex) []string {
	t.Helper()
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{digest.String() + "  tiny index\n"}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range manifest.Manifests {
		lines = append(lines, one.Digest.String()+"  tiny "+one.Platform.String()+"\n")
		referring, err := remote.Referrers(tag.Digest(one.Digest.String()), remote.WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		found, err := referring.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range found.Manifests {
			list, err := remote.Image(tag.Digest(other.Digest.String()), remote.WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			if listOf(t, list, one.Digest) == nil {
				t.Errorf("%s refers to %s and is not a list of it", other.Digest, one.Digest)
			}
			lines = append(lines, other.Digest.String()+"  tiny "+one.Platform.String()+" sbom\n")
		}
	}
	return lines
}

// An archive of an earlier version would be loaded in place of the new one. Red when it stays.
func TestEarlierArchivesGo(t *testing.T) {
	made, err := tiny()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	earlier := filepath.Join(folder, "docker", "tiny-1.2.2-linux-amd64.tar")
	if err := os.MkdirAll(filepath.Dir(earlier), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(earlier, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), options{folder: folder}, made); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(folder, "docker", "*"))
	if err != nil || len(found) != 2 || slices.Contains(found, earlier) {
		t.Errorf("%v: there are %q", err, found)
	}
}

// Red when images are made by whichever Go there is: digests would differ, and nobody could tell why.
func TestAnotherGoIsRefused(t *testing.T) {
	folder := t.TempDir()
	text := strings.Replace(tinyFiles["go.mod"], runtime.Version(), "go1.99.1", 1)
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := oci.Make(t.Context(), folder, nil, checkout.Stamp{})
	if err == nil || !strings.Contains(err.Error(), "GOTOOLCHAIN=go1.99.1") {
		t.Errorf("made with another release of Go: %v", err)
	}
}
