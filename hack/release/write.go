package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trellis-addons/trellis/hack/images/checkout"
	"github.com/trellis-addons/trellis/hack/images/oci"
	"github.com/trellis-addons/trellis/hack/images/output"
	"github.com/trellis-addons/trellis/hack/release/chart"
	"github.com/trellis-addons/trellis/hack/release/components"
	"github.com/trellis-addons/trellis/hack/release/notes"
)

// charts are the folders below charts/, and the program whose image each of them runs. The provider for clusterctl is made of those that
// are provided: the web view needs a configuration, which clusterctl can't pass.
var charts = []struct {
	name, program string
	isProvided    bool
}{
	{"trellis-master", "master-controller-manager", true}, {"trellis-seed", "seed-controller-manager", true},
	{"trellis-web", "trellis-web", false},
}

// release is what is written.
type release struct {
	// module is the checkout, folder an empty one, and registry where the charts find images; empty:
	// where they find them anyway.
	module, folder, registry string
	build                    oci.Build
	words                    words
	// plugin are the files of kubectl-addons.
	plugin map[string][]byte
}

// words are what people wrote of the version.
type words struct{ notes, metadata string }

// wordsOf reads the changelog.
func wordsOf(module string, stamp checkout.Stamp) (words, error) {
	text, err := os.ReadFile(filepath.Join(module, "CHANGELOG.md"))
	if err != nil {
		return words{}, fmt.Errorf("reading the changelog: %w", err)
	}
	log := notes.Changelog(text)
	releaseNotes, err := log.Notes(stamp)
	if err != nil {
		return words{}, err
	}
	metadata, err := components.Metadata(append(log.Versions(), stamp.Version))
	return words{releaseNotes, metadata}, err
}

// write writes all files, and their sums at last.
func (r release) write() error {
	digests, err := r.images()
	if err != nil {
		return err
	}
	provided, err := r.charts(digests)
	if err != nil {
		return err
	}
	provider, err := components.Provider(provided, filepath.Join(r.module, standalone))
	if err != nil {
		return err
	}
	files := map[string]string{"addon-components.yaml": provider, "metadata.yaml": r.words.metadata, "notes.md": r.words.notes}
	for name, folder := range map[string]string{"crds.yaml": "charts/trellis-seed/crds", "crds-standalone.yaml": standalone} {
		if files[name], err = components.Joined(filepath.Join(r.module, folder)); err != nil {
			return err
		}
	}
	if files["digests.txt"], err = output.Lines(r.build); err != nil {
		return err
	}
	rights, err := os.ReadFile(filepath.Join(r.module, "deploy/seed/rights.yaml"))
	if err != nil {
		return fmt.Errorf("reading the rights on seeds: %w", err)
	}
	files["seed-rights.yaml"] = string(rights)
	for name, text := range files {
		if err := r.file(name, []byte(text)); err != nil {
			return err
		}
	}
	for name, content := range r.plugin {
		if err := r.file(name, content); err != nil {
			return err
		}
	}
	return r.sums()
}

// standalone is the folder with KKP's kinds, for platforms without KKP.
const standalone = "deploy/standalone/crds"

// images writes archives of images, and gives the digest of each program's index.
func (r release) images() (map[string]string, error) {
	digests := map[string]string{}
	for _, set := range r.build.Sets {
		digest, err := set.Index.Digest()
		if err != nil {
			return nil, fmt.Errorf("making the digest of %s: %w", set.Program, err)
		}
		digests[set.Program] = digest.String()
		if err := output.LayoutArchive(filepath.Join(r.folder, set.Program+"-"+set.Version+"-oci.tar"), set); err != nil {
			return nil, err
		}
		if _, err := output.Archives(r.folder, r.registry, set); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// charts writes archives of charts, which run the images of this build and no others. It gives those that the provider is made of.
func (r release) charts(digests map[string]string) ([]chart.Chart, error) {
	var provided []chart.Chart
	for _, one := range charts {
		digest, found := digests[one.program]
		if !found {
			return nil, fmt.Errorf("chart %s runs %s, of which there is no image", one.name, one.program)
		}
		image := chart.Image{Repository: cmp.Or(r.registry, output.DefaultPath) + "/" + one.program, Digest: digest}
		made, err := chart.Read(filepath.Join(r.module, "charts", one.name), r.build.Stamp.Version, image)
		if err != nil {
			return nil, err
		}
		archived, err := made.Archive(r.build.Stamp.Date)
		if err != nil {
			return nil, err
		}
		if err := r.file(one.name+"-"+r.build.Stamp.Version+".tgz", archived); err != nil {
			return nil, err
		}
		if one.isProvided {
			provided = append(provided, made)
		}
	}
	return provided, nil
}

func (r release) file(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(r.folder, name), content, 0o644); err != nil {
		return fmt.Errorf("writing the release: %w", err)
	}
	return nil
}

// sums writes what `sha256sum --check` reads.
func (r release) sums() error {
	entries, err := os.ReadDir(r.folder)
	if err != nil {
		return fmt.Errorf("reading the release: %w", err)
	}
	var lines strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(r.folder, entry.Name()))
		if err != nil {
			return fmt.Errorf("reading the release: %w", err)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(sum[:]), entry.Name())
	}
	return r.file("SHA256SUMS", []byte(lines.String()))
}
