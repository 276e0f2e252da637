package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trellis-addons/trellis/hack/images/archive"
	"github.com/trellis-addons/trellis/hack/images/oci"
)

// refName is the annotation by which tools find a tag in a layout.
const refName = "org.opencontainers.image.ref.name"

// Layout writes a set into a folder in OCI's layout: the index under its version, and the lists of
// what is in the images beside it, where tools look for what refers to an image.
func Layout(folder string, set oci.Set) error {
	// What was there before is another build.
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("emptying the layout: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("making layout %q: %w", folder, err)
	}
	if err := path.AppendIndex(set.Index, layout.WithAnnotations(map[string]string{refName: set.Version})); err != nil {
		return fmt.Errorf("writing into layout %q: %w", folder, err)
	}
	for _, image := range set.Images {
		if err := path.AppendImage(image.SBOM); err != nil {
			return fmt.Errorf("writing into layout %q: %w", folder, err)
		}
	}
	return nil
}

// LayoutArchive writes what Layout does as one tar archive, which skopeo calls an oci-archive.
func LayoutArchive(file string, set oci.Set) error {
	folder, err := os.MkdirTemp("", "trellis-layout-")
	if err != nil {
		return fmt.Errorf("making a folder for a layout: %w", err)
	}
	defer os.RemoveAll(folder)
	if err := Layout(folder, set); err != nil {
		return err
	}
	var files []archive.File
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, archive.File{Name: filepath.ToSlash(name), Data: data})
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the layout of %s: %w", set.Program, err)
	}
	writer, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("writing the layout of %s: %w", set.Program, err)
	}
	return errors.Join(archive.WritePlain(writer, files, archive.WithFolders, time.Time{}), writer.Close())
}

// DefaultPath is where the charts look for images, as docker reads it.
const DefaultPath = "trellis-addons"

// Archives writes an archive for `docker load` for each platform of a set, and gives their names.
// Path is the registry's path that the images are called by; empty: the charts' own.
func Archives(folder, path string, set oci.Set) ([]string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making the archives' folder: %w", err)
	}
	tag, err := name.NewTag(cmp.Or(path, DefaultPath) + "/" + set.Program + ":" + set.Version)
	if err != nil {
		return nil, fmt.Errorf("naming the image: %w", err)
	}
	var files []string
	for _, image := range set.Images {
		file := fmt.Sprintf("%s-%s-%s.tar", set.Program, set.Version, Dashed(image.Platform))
		if err := tarball.WriteToFile(filepath.Join(folder, file), tag, image.Image); err != nil {
			return nil, fmt.Errorf("writing %q: %w", file, err)
		}
		files = append(files, file)
	}
	return files, nil
}

// Dashed is a platform as names of files have it: linux-amd64.
func Dashed(platform v1.Platform) string { return strings.ReplaceAll(platform.String(), "/", "-") }
