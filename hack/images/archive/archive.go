// Package archive writes tar archives of which equal content gives equal bytes: whatever machine
// wrote them, when, and in which order it found the files.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// File is one regular file of an archive.
type File struct {
	// Name is the slash-separated path without a leading slash.
	Name string
	Data []byte
	// Executable files have mode 0755, others 0644.
	Executable bool
}

// Folders says whether an archive has entries for the folders of its files.
type Folders bool

const (
	// WithFolders is what layers of images have: without them, who unpacks decides on their modes.
	WithFolders Folders = true
	// WithoutFolders is how Helm writes charts.
	WithoutFolders Folders = false
)

// Write writes a tar archive as WritePlain does, compressed by gzip.
func Write(writer io.Writer, files []File, folders Folders, modified time.Time) error {
	compressed := gzip.NewWriter(writer)
	if err := WritePlain(compressed, files, folders, modified); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

// WritePlain writes a tar archive. All of it belongs to root and has one time, 1970 for the zero
// one: a layer whose files stay the same stays the same from release to release.
func WritePlain(writer io.Writer, files []File, folders Folders, modified time.Time) error {
	if modified.IsZero() {
		modified = time.Unix(0, 0)
	}
	entries := tar.NewWriter(writer)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if folders {
		for _, folder := range foldersOf(sorted) {
			header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: modified.UTC(), Format: tar.FormatUSTAR}
			if err := entries.WriteHeader(header); err != nil {
				return fmt.Errorf("writing folder %q: %w", folder, err)
			}
		}
	}
	for _, file := range sorted {
		if err := writeFile(entries, file, modified); err != nil {
			return fmt.Errorf("writing %q: %w", file.Name, err)
		}
	}
	if err := entries.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}

func writeFile(entries *tar.Writer, file File, modified time.Time) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: file.Name, Size: int64(len(file.Data)), Mode: 0o644, ModTime: modified.UTC(), Format: tar.FormatUSTAR,
	}
	if file.Executable {
		header.Mode = 0o755
	}
	if err := entries.WriteHeader(header); err != nil {
		return err
	}
	_, err := entries.Write(file.Data)
	return err
}

// foldersOf are the folders above files, parents first.
func foldersOf(files []File) []string {
	var found []string
	for _, file := range files {
		for folder := path.Dir(file.Name); folder != "."; folder = path.Dir(folder) {
			found = append(found, folder)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
