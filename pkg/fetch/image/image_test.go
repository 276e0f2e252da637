package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client creates a source that reaches the servers of a test.
func client(t *testing.T) *image.Source {
	t.Helper()
	network := outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback})
	t.Cleanup(network.Close)
	return image.New(network)
}

func of(server *fetchtest.Registry, name, path string) fetch.Reference {
	return fetch.Reference{
		Location:    image.Location{Image: image.Name(server.Host + "/" + name), Path: path},
		Credentials: fetch.Credentials{CA: server.CA},
	}
}

func fetchInto(t *testing.T, source fetch.Source, reference fetch.Reference) (map[string]string, fetch.Revision, error) {
	t.Helper()
	revision, err := source.Resolve(t.Context(), reference)
	if err != nil {
		return nil, revision, err
	}
	into := fetchtest.Folder(t)
	_, err = source.Fetch(t.Context(), reference, revision, into)
	return fetchtest.Files(t, into), revision, err
}

func isRefused(err error) bool {
	var refusal *fetch.RefusedError
	return errors.As(err, &refusal)
}

func isMissing(err error) bool {
	var missing *fetch.NotFoundError
	return errors.As(err, &missing)
}

// layer packs names with content; names that end in "/" are folders, in "@" links to their content.
func layer(pairs ...string) []byte {
	var entries []fetchtest.File
	for i := 0; i < len(pairs); i += 2 {
		entry := fetchtest.File{Header: tar.Header{Name: pairs[i]}, Content: pairs[i+1]}
		if link, ok := strings.CutSuffix(pairs[i], "@"); ok {
			entry = fetchtest.File{Header: tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: pairs[i+1]}}
		}
		if strings.HasSuffix(pairs[i], "/") {
			entry.Header.Typeflag, entry.Header.Mode = tar.TypeDir, 0o755
		}
		entries = append(entries, entry)
	}
	return fetchtest.Archive(entries...)
}

func TestLayers(t *testing.T) {
	lower := layer("addons/", "", "addons/a", "old", "addons/b", "b", "addons/deep/c", "c", "addons/deep/d", "d", "bin/sh@", "busybox", "x", "x")
	for _, test := range []struct {
		why, path string
		layers    [][]byte
		want      map[string]string
	}{
		{"one", "addons", [][]byte{lower}, map[string]string{"a": "old", "b": "b", "deep/c": "c", "deep/d": "d"}},
		{"a path with dots and slashes", "./addons/", [][]byte{lower}, map[string]string{"a": "old", "b": "b", "deep/c": "c", "deep/d": "d"}},
		{"deeper", "addons/deep", [][]byte{lower}, map[string]string{"c": "c", "d": "d"}},
		{"the root", "", [][]byte{layer("a", "a", "b/c", "c")}, map[string]string{"a": "a", "b/c": "c"}},
		{"names with a dot in front", "addons", [][]byte{layer("./addons/", "", "./addons/a", "a")}, map[string]string{"a": "a"}},
		{"a file is changed", "addons", [][]byte{lower, layer("addons/a", "new")},
			map[string]string{"a": "new", "b": "b", "deep/c": "c", "deep/d": "d"}},
		{"a file is taken away", "addons", [][]byte{lower, layer("addons/.wh.a", "")}, map[string]string{"b": "b", "deep/c": "c", "deep/d": "d"}},
		{"a file is taken away and comes back", "addons", [][]byte{lower, layer("addons/.wh.a", ""), layer("addons/a", "new")},
			map[string]string{"a": "new", "b": "b", "deep/c": "c", "deep/d": "d"}},
		{"a folder is taken away", "addons", [][]byte{lower, layer("addons/.wh.deep", "")}, map[string]string{"a": "old", "b": "b"}},
		{"a folder is taken away and anew, in this order", "addons", [][]byte{lower, layer("addons/.wh.deep", "", "addons/deep/e", "e")},
			map[string]string{"a": "old", "b": "b", "deep/e": "e"}},
		{"and in the other", "addons", [][]byte{lower, layer("addons/deep/", "", "addons/deep/e", "e", "addons/.wh.deep", "")},
			map[string]string{"a": "old", "b": "b", "deep/e": "e"}},
		{"a folder is opaque", "addons", [][]byte{lower, layer("addons/deep/", "", "addons/deep/e", "e", "addons/deep/.wh..wh..opq", "")},
			map[string]string{"a": "old", "b": "b", "deep/e": "e"}},
		{"an opaque folder hides nothing of its own layer", "addons/deep",
			[][]byte{lower, layer("addons/deep/.wh..wh..opq", "", "addons/deep/e", "e")}, map[string]string{"e": "e"}},
		{"the folder above the path is opaque", "addons/deep", [][]byte{lower, layer("addons/.wh..wh..opq", "", "addons/deep/e", "e")},
			map[string]string{"e": "e"}},
		{"the root is opaque", "addons", [][]byte{lower, layer(".wh..wh..opq", "", "addons/e", "e")}, map[string]string{"e": "e"}},
		{"a folder becomes a file", "addons", [][]byte{lower, layer("addons/deep", "file")}, map[string]string{"a": "old", "b": "b", "deep": "file"}},
		{"a file becomes a folder", "addons", [][]byte{lower, layer("addons/a/", "", "addons/a/x", "x")},
			map[string]string{"a/x": "x", "b": "b", "deep/c": "c", "deep/d": "d"}},
		{"a link that is covered", "bin", [][]byte{lower, layer("bin/sh", "program")}, map[string]string{"sh": "program"}},
		{"a link that is taken away", "bin", [][]byte{lower, layer("bin/.wh.sh", "", "bin/x", "x")}, map[string]string{"x": "x"}},
		{"notes of storage drivers", "addons", [][]byte{layer("addons/a", "a", ".wh..wh.plnk", "", "addons/.wh..wh.aufs", "")},
			map[string]string{"a": "a"}},
		{"a folder beside that begins alike", "addons", [][]byte{layer("addons/a", "a", "addons-more/b@", "/etc")}, map[string]string{"a": "a"}},
		{"an empty folder", "addons", [][]byte{layer("addons/", "")}, map[string]string{}},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			pushed := server.Image("team/addons", "v1", test.layers...)
			got, revision, err := fetchInto(t, client(t), of(server, "team/addons:v1", test.path))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if revision.Name != pushed.Digest.String() {
				t.Errorf("revision %s, want the manifest's digest %s", revision.Name, pushed.Digest)
			}
		})
	}
}

// TestDigestIsThatOfTheFiles: The digest covers the content and does not depend on layers.
func TestDigestIsThatOfTheFiles(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	server.Image("x", "one", layer("a/x", "1", "a/y", "2"))
	server.Image("x", "two", layer("a/x", "old", "b", "b"), layer("a/y", "2", "a/x", "1"))
	digests := map[string]bool{}
	for _, name := range []string{"x:one", "x:two"} {
		reference := of(server, name, "a")
		revision, err := client(t).Resolve(t.Context(), reference)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := client(t).Fetch(t.Context(), reference, revision, fetchtest.Folder(t))
		if err != nil {
			t.Fatal(err)
		}
		digests[digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("equal content has the digests %v", digests)
	}
}

// TestRefusedLayers (AC31, AC32, V37): Layers that lead out, or through files and links, are refused.
func TestRefusedLayers(t *testing.T) {
	for _, test := range []struct {
		why, path, says string
		layers          [][]byte
	}{
		{"a link", "a", "links are refused", [][]byte{layer("a/x@", "y")}},
		{"a link that a layer above does not cover", "a", "links are refused", [][]byte{layer("a/x@", "y"), layer("a/y", "y")}},
		{"the path is a link", "a", "leads through this entry", [][]byte{layer("a@", "b", "b/x", "x")}},
		{"the path leads through a link", "a/b", "leads through this entry", [][]byte{layer("a@", "c", "c/b/x", "x")}},
		{"the path is a file", "a", "has to be a folder", [][]byte{layer("a", "a")}},
		{"the path leads through a file", "a/b", "has to be a folder", [][]byte{layer("a", "a")}},
		{"a file below what is a link in a layer below", "a", "but not in a lower layer", [][]byte{layer("a/x@", "/tmp"), layer("a/x/y", "y")}},
		{"the path lies below a link in a layer below", "a/b", "but not in a lower layer", [][]byte{layer("a@", "/tmp"), layer("a/b/x", "x")}},
		{"a name twice in one layer", "a", "occurs twice", [][]byte{layer("a/x", "1", "a/x", "2")}},
		{"a whiteout of dots", "a", "whiteout that names no file", [][]byte{layer("a/x", "x"), layer("a/.wh...", "")}},
		{"a whiteout of nothing", "a", "whiteout that names no file", [][]byte{layer("a/x", "x"), layer("a/.wh.", "")}},
		{"a folder named as a whiteout", "a", "is in a whiteout", [][]byte{layer("a/.wh.b/x", "x")}},
		{"a name that leads out, beside the path", "a", "leads out", [][]byte{layer("a/x", "x", "../x", "x")}},
	} {
		t.Run(test.why, func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			server.Image("x", "v1", test.layers...)
			_, _, err := fetchInto(t, client(t), of(server, "x:v1", test.path))
			if !isRefused(err) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), server.Host+"/x@sha256:") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPathThatIsNotThere(t *testing.T) {
	server := fetchtest.ServeRegistry(t)
	server.Image("x", "v1", layer("a/x", "x", "b/y", "y"), layer(".wh.b", ""))
	for _, path := range []string{"c", "a/c", "b", "b/y"} {
		if _, _, err := fetchInto(t, client(t), of(server, "x:v1", path)); !isMissing(err) {
			t.Errorf("%q: got %v", path, err)
		}
	}
	for _, path := range []string{"../a", "/a", "a/../b", `a\b`} {
		if _, _, err := fetchInto(t, client(t), of(server, "x:v1", path)); !isRefused(err) {
			t.Errorf("%q: got %v", path, err)
		}
	}
}

// TestHostileLayersAreRefused (AC31): Each archive of the hostile corpus, as a layer, is refused or stays within its
// folder and limits.
func TestHostileLayersAreRefused(t *testing.T) {
	for _, test := range fetchtest.Corpus() {
		t.Run(test.Name, func(t *testing.T) {
			if test.Name == "a folder beside that begins alike" { // entries outside of the path are not checked
				test.Refused, test.Files = false, map[string]string{"before.txt": "before", "zafter.txt": "after"}
			}
			server := fetchtest.ServeRegistry(t)
			if len(test.Archive) == 0 {
				test.Archive = []byte{0}
			}
			server.Image("x", "v1", test.Archive)
			got, _, err := fetchInto(t, client(t), of(server, "x:v1", "top"))
			if test.Refused {
				if !isRefused(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.Files, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func inflated(t *testing.T, archive []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func zstandard(t *testing.T, content []byte, options ...zstd.EOption) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(content, nil)
}

func TestPackingsOfLayers(t *testing.T) {
	packed := layer("a/x", "x")
	plain := inflated(t, packed)
	bomb := zstandard(t, inflated(t, layer("a/x", strings.Repeat("\x00", 64<<20))))
	for _, test := range []struct {
		mediaType types.MediaType
		content   []byte
		ok        bool
	}{
		{types.OCILayer, packed, true},
		{types.DockerLayer, packed, true},
		{types.OCIUncompressedLayer, plain, true},
		{types.DockerUncompressedLayer, plain, true},
		{types.OCILayerZStd, zstandard(t, plain), true},
		{types.OCILayerZStd, bomb, false},
		{types.OCILayerZStd, append(zstandard(t, plain), "garbage"...), false},
		{types.OCILayerZStd, packed, false},
		{types.OCILayer, plain, false},
		{types.OCIUncompressedLayer, packed, false},
		{types.OCILayer + "+encrypted", packed, false},
		{types.OCIRestrictedLayer, packed, false},
		{types.DockerForeignLayer, packed, false},
		{"application/x-something", packed, false},
	} {
		t.Run(string(test.mediaType), func(t *testing.T) {
			server := fetchtest.ServeRegistry(t)
			push(server, func(manifest *v1.Manifest) {
				manifest.Layers = []v1.Descriptor{server.Blob("x", test.mediaType, test.content)}
			})
			got, _, err := fetchInto(t, client(t), of(server, "x:v1", "a"))
			if test.ok && (err != nil || got["x"] != "x") || !test.ok && !isRefused(err) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// push stores an image that a test has changed.
func push(server *fetchtest.Registry, change func(*v1.Manifest)) v1.Descriptor {
	manifest := &v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: server.Blob("x", types.OCIConfigJSON, []byte("{}")),
		Layers: []v1.Descriptor{server.Blob("x", types.OCILayer, layer("a/x", "x"))},
	}
	change(manifest)
	return server.Manifest("x", "v1", manifest.MediaType, manifest)
}
