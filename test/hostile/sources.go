package hostile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/given"
)

const (
	indexesAct, movingAct = "many-indexes", "moving-repository"
	// indexesEach is the number of indexes that a catalogue names, movedAddons and movedVersions those that a commit
	// changes.
	indexesEach                = 100
	movedAddons, movedVersions = 60, 100
)

// LargeIndex is the index of a Helm repository with one usable chart and so many MiB that can't be dropped early.
func LargeIndex(megabytes int) string {
	address := strings.Repeat("x", 500<<10)
	return "apiVersion: v1\nentries:\n  web:\n  - version: 1.0.0\n    urls: [web.tgz]\n" +
		strings.Repeat("  - version: 2.0.0\n    urls: ["+address+"]\n", 2*megabytes)
}

// beginIndexes adds an index of 7 MiB to the sources.
func beginIndexes(_ context.Context, by *Attackers) {
	folder := filepath.Join(by.Sources.ChartsFolder, indexesAct)
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "index.yaml"), []byte(LargeIndex(7)), 0o644)
	}
	if err != nil {
		by.note(err)
	}
}

// nameIndexes makes one of two catalogues name other indexes than before. Each is the same file under another name.
func nameIndexes(ctx context.Context, by *Attackers, number int) {
	folder := filepath.Join(by.Sources.ChartsFolder, indexesAct)
	var versions []kubermaticv1.AddonVersion
	for at := range indexesEach {
		name := fmt.Sprintf("%d-%d", number, at)
		err := os.MkdirAll(filepath.Join(folder, name), 0o755)
		if err == nil {
			err = os.Link(filepath.Join(folder, "index.yaml"), filepath.Join(folder, name, "index.yaml"))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			by.note(err)
		}
		versions = append(versions, given.Version(fmt.Sprintf("1.0.%d", at), &kubermaticv1.Source{Helm: &kubermaticv1.HelmSource{
			URL: fmt.Sprintf("%s/%s/%s", by.Sources.ChartsURL, indexesAct, name), Chart: "web", Version: "1.0.0",
			CASecretRef: &kubermaticv1.LocalReference{Name: by.CASecret},
		}}))
	}
	by.write(ctx, by.Author, by.catalogue(indexesAct, fmt.Sprintf("%s-%d", indexesAct, number%2), versions...))
}

// beginMoving creates a catalogue in git with the minimum interval.
func beginMoving(ctx context.Context, by *Attackers) {
	by.move(0)
	made := by.catalogue(movingAct, movingAct)
	made.Spec.Addons = nil
	made.Spec.Git = &kubermaticv1.CatalogueGit{
		Remote:      kubermaticv1.GitRemote(by.Sources.GitURL + "/" + movingAct + ".git"),
		CASecretRef: &kubermaticv1.LocalReference{Name: by.CASecret},
		Interval:    &metav1.Duration{Duration: 10 * time.Second},
	}
	by.write(ctx, by.Author, made)
}

// move commits content that has no part in common with the previous commit.
func (a *Attackers) move(number int) {
	files := map[string]string{}
	for addon := range movedAddons {
		var text strings.Builder
		for version := range movedVersions {
			fmt.Fprintf(&text, "- name: moving-%d\n  versions:\n  - version: \"1.%d.%d\"\n    template: {method: go-template}\n"+
				"    source: {git: {remote: \"https://git.example/x.git\", path: %q}}\n", addon, number, version, strings.Repeat("x", 200))
		}
		files[fmt.Sprintf("%d.yaml", addon)] = text.String()
	}
	_, err := a.Sources.Commit(movingAct, files)
	a.note(err)
}
