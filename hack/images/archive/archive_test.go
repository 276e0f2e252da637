package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Equal files are equal bytes, in whatever order they are given; folders come before what is in them, all
// is root's, and only programs can be run. Red when files are not sorted, or when a mode is another one.
func TestEqualFilesAreEqualBytes(t *testing.T) {
	files := []File{{Name: "etc/ssl/a", Data: []byte("a")}, {Name: "b", Data: []byte("bb"), Executable: true}}
	var one, other bytes.Buffer
	for buffer, order := range map[*bytes.Buffer][]File{&one: files, &other: {files[1], files[0]}} {
		if err := Write(buffer, order, WithFolders, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), other.Bytes()) {
		t.Error("another order gives other bytes")
	}
	want := []string{"etc/ 755 0 0 0", "etc/ssl/ 755 0 0 0", "b 755 0 0 0 bb", "etc/ssl/a 644 0 0 0 a"}
	if diff := cmp.Diff(want, list(t, &one)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}

	var chart bytes.Buffer
	if err := Write(&chart, files, WithoutFolders, time.Unix(1700000000, 5)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b 755 0 0 1700000000 bb", "etc/ssl/a 644 0 0 1700000000 a"}, list(t, &chart)); diff != "" {
		t.Errorf("entries of a chart (-want +got):\n%s", diff)
	}
}

// list tells entries as "name mode owner group time content".
func list(t *testing.T, archive io.Reader) []string {
	t.Helper()
	unpacked, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for entries := tar.NewReader(unpacked); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %o %d %d %d", header.Name, header.Mode, header.Uid, header.Gid, header.ModTime.Unix())
		if len(content) > 0 {
			line += " " + string(content)
		}
		found = append(found, line)
	}
}
