package download

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
)

// etcd is the program of the tests.
func etcd(t *testing.T) binaries.Program {
	t.Helper()
	for _, program := range binaries.Programs() {
		if program.Name == "etcd" {
			return program
		}
	}
	t.Fatal("etcd is not in the list")
	return binaries.Program{}
}

func archived(t *testing.T, member, content string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	packed := tar.NewWriter(zipped)
	for _, name := range []string{"README.md", member} {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(packed, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// serve starts a server with files by path.
func serve(t *testing.T, files map[string][]byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		content, found := files[request.URL.Path]
		if !found {
			http.NotFound(answer, request)
			return
		}
		_, _ = answer.Write(content)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func listOf(t *testing.T, entries ...Entry) string {
	t.Helper()
	content, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "downloads.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
func sha512Of(content []byte) string {
	sum := sha512.Sum512(content)
	return hex.EncodeToString(sum[:])
}

// TestAProgramIsTakenWhenItsChecksumIsRight downloads from a server on this machine. Red when a program is taken whose
// checksum is wrong or unknown, when anything is left of a refused one, or when an error does not name the other way.
func TestAProgramIsTakenWhenItsChecksumIsRight(t *testing.T) {
	const content = "a program"
	program := etcd(t)
	key := program.Release + "/" + runtime.GOARCH
	member := fmt.Sprintf("etcd-v%s-linux-%s/etcd", program.Release, runtime.GOARCH)
	archive := archived(t, member, content)
	url := serve(t, map[string][]byte{
		"/etcd.tar.gz": archive, "/etcd": []byte(content), "/other.tar.gz": archived(t, "other", content), "/broken": []byte("no archive"),
	})
	inArchive := Entry{Program: "etcd", URL: url + "/etcd.tar.gz", Member: "etcd-v{version}-linux-{arch}/etcd"}
	with := func(entry Entry, sum string) Entry {
		entry.Sums, entry.Published = map[string]string{key: sum}, "https://project.example/sums"
		return entry
	}
	plain := Entry{Program: "etcd", URL: url + "/etcd"}
	for _, test := range []struct {
		why     string
		entry   Entry
		taken   bool
		refused string // a part of the error
	}{
		{"SHA-256 of an archive", with(inArchive, sha256Of(archive)), true, ""},
		{"SHA-512 of an archive", with(inArchive, sha512Of(archive)), true, ""},
		{"the program itself", with(plain, sha256Of([]byte(content))), true, ""},
		{"a wrong checksum", with(inArchive, sha256Of(nil)), false, "https://project.example/sums says"},
		{"a checksum that is none", with(inArchive, "abc"), false, "neither SHA-256 nor SHA-512"},
		{"another program's archive", with(Entry{Program: "etcd", URL: url + "/other.tar.gz", Member: "x"}, sha256Of(archived(t, "other", content))), false, "has no file"},
		{"no archive", with(Entry{Program: "etcd", URL: url + "/broken", Member: "x"}, sha256Of([]byte("no archive"))), false, "unpacking"},
		{"a file that is not there", with(Entry{Program: "etcd", URL: url + "/gone"}, sha256Of(nil)), false, "404 Not Found"},
		{"a host that is not there", with(Entry{Program: "etcd", URL: "http://127.0.0.1:1/etcd"}, sha256Of(nil)), false, "connection refused"},
		{"no checksum", inArchive, false, ""},
		{"another program", Entry{Program: "helm"}, false, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			var out strings.Builder
			get, err := From(listOf(t, test.entry), &out)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			taken, err := get(t.Context(), program, filepath.Join(folder, "etcd"))
			checkError(t, err, test.refused)
			if err == nil && taken != test.taken {
				t.Errorf("taken: %v, said %q", taken, out.String())
			}
			checkFolder(t, folder, test.taken, content)
		})
	}
}

func checkError(t *testing.T, err error, part string) {
	t.Helper()
	if (err != nil) != (part != "") || err != nil && !strings.Contains(err.Error(), part) {
		t.Errorf("the error is %v, want one with %q", err, part)
	}
	_, wrong := errors.AsType[*SumError](err)
	_, unreachable := errors.AsType[*UnreachableError](err)
	if (wrong || unreachable) && !strings.Contains(err.Error(), otherWay) {
		t.Errorf("%q does not name the other way", err)
	}
}

func checkFolder(t *testing.T, folder string, taken bool, want string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if !taken {
		if len(files) > 0 {
			t.Errorf("of a program that was not taken %v is left", files)
		}
		return
	}
	content, err := os.ReadFile(filepath.Join(folder, "etcd"))
	if err != nil || string(content) != want || len(files) != 1 {
		t.Errorf("the program is %q, %v; there are %v", content, err, files)
	}
}

// TestChecksumsAreReadWhereProjectsPublishThem: red when a sum is taken that the project did not publish for this file, or
// when the list loses its sums because one can't be read.
func TestChecksumsAreReadWhereProjectsPublishThem(t *testing.T) {
	program := etcd(t)
	sum := sha256Of([]byte("published"))
	name := "etcd-v" + program.Release + "-linux-"
	url := serve(t, map[string][]byte{
		"/lines": []byte("# a comment\n" + sha256Of(nil) + "  other.tar.gz\n" + sum + "  ./" + name + "amd64.tar.gz\n" + sum + " *" + name + "arm64.tar.gz\n"),
		"/alone": []byte(sum + "\n"), "/none": []byte("<html>no sum</html>\n"),
	})
	entry := Entry{Program: "etcd", URL: "https://project.example/" + name + "{arch}.tar.gz"}
	for _, test := range []struct {
		why, published string
		read           bool
	}{
		{"lines with names", url + "/lines", true},
		{"the sum alone", url + "/alone", true},
		{"a page without one", url + "/none", false},
		{"no page", url + "/gone", false},
	} {
		t.Run(test.why, func(t *testing.T) {
			entry := entry
			entry.Published = test.published
			list := listOf(t, entry, Entry{Program: "kwok"})
			before, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			err = WriteSums(context.WithoutCancel(t.Context()), io.Discard, list)
			if (err == nil) != test.read {
				t.Fatal(err)
			}
			entries, err := read(list)
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := os.ReadFile(list); !test.read && !bytes.Equal(before, after) {
				t.Errorf("the list was changed to %s", after)
			}
			for _, arch := range architectures {
				if got := entries[0].Sums[program.Release+"/"+arch]; test.read && got != sum {
					t.Errorf("for %s the sum is %q", arch, got)
				}
			}
		})
	}
}

// TestTheListIsWhole: red when a program of the demo has no entry, or a sum can't be one.
func TestTheListIsWhole(t *testing.T) {
	root, err := binaries.Root()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := read(filepath.Join(root, "hack", "controlplanes", "downloads.json"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, entry := range entries {
		listed[entry.Program] = true
		for key, sum := range entry.Sums {
			if sumOrNone(sum) == "" || entry.Published == "" {
				t.Errorf("%s %s: %q is no published checksum", entry.Program, key, sum)
			}
		}
	}
	for _, program := range binaries.Programs() {
		if program.Need == binaries.Base && !listed[program.Name] {
			t.Errorf("%s is not in the list", program.Name)
		}
	}
}
