package sandbox

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// repositories of the samples, and the folders of deploy/sandbox that they hold.
func repositories() map[string]string { return map[string]string{"samples": "samples", "core": "core"} }

// catalogueRepository holds a catalogue in git, of folder git-catalogue.
const catalogueRepository = "catalogue"

// sampleArchives are the chart archives that the sandbox puts into the Helm repository.
func sampleArchives() []string { return []string{"web-1.0.0.tgz", "web-1.1.0.tgz"} }

// distributeSamples publishes the content of deploy/sandbox and waits until the catalogue has reached every user cluster.
func (s *Sandbox) distributeSamples(ctx context.Context) error {
	if err := s.publishContent(); err != nil {
		return err
	}
	var made []*kubermaticv1.AddonCatalogue
	for _, file := range s.catalogues() {
		one := &kubermaticv1.AddonCatalogue{}
		if err := s.Manifest(file, one); err != nil {
			return err
		}
		if err := s.create(ctx, Master, one); err != nil {
			return err
		}
		made = append(made, one)
	}
	if err := s.listCore(ctx); err != nil {
		return err
	}
	catalogue, core := made[0], made[len(made)-1]
	for _, cluster := range s.UserClusters() {
		available := AvailableIn(cluster)
		err := s.Await(ctx, cluster.Seed, available, func(client.Object) error { return offers(available, catalogue) })
		if err != nil {
			return err
		}
		s.progress.Printf("%s is offered %s", cluster.Name, strings.Join(Offered(available), ", "))
		err = s.Await(ctx, cluster.Seed, available, func(client.Object) error { return hasCore(available, len(core.Spec.Addons)) })
		if err != nil {
			return err
		}
		s.progress.Printf("%s has its %d core add-ons", cluster.Name, available.Status.Core.Ready)
	}
	return nil
}

// AvailableIn is the catalogue of what a user cluster is offered, to be read.
func AvailableIn(cluster UserCluster) *kubermaticv1.AddonCatalogue {
	name := kubermaticv1.AvailableCatalogue
	if cluster.shared != "" {
		name += "-" + cluster.Name
	}
	return &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster.Namespace()}}
}

// catalogues are files of deploy/sandbox, the samples first and the core add-ons last.
func (s *Sandbox) catalogues() []string {
	if s.clusters == ClusterAPI {
		return []string{"catalogue.yaml", "cluster-api/catalogue.yaml"}
	}
	return []string{"catalogue.yaml", "git-catalogue.yaml", "core-catalogue.yaml"}
}

func (s *Sandbox) publishContent() error {
	for repository, folder := range repositories() {
		if repository == "core" && s.clusters == ClusterAPI {
			folder = "cluster-api/core"
		}
		files, err := filesBelow(filepath.Join(s.root, "deploy", "sandbox", folder))
		if err != nil {
			return err
		}
		if _, err := s.Sources.Commit(repository, files); err != nil {
			return err
		}
	}
	files, err := filesBelow(filepath.Join(s.root, "deploy", "sandbox", "git-catalogue"))
	if err != nil {
		return err
	}
	for path, content := range files {
		files[path] = s.filled(content)
	}
	if _, err := s.Sources.Commit(catalogueRepository, files); err != nil {
		return err
	}
	for _, archive := range sampleArchives() {
		name, version, _ := strings.Cut(strings.TrimSuffix(archive, ".tgz"), "-")
		files, err := filesBelow(filepath.Join(s.root, "deploy", "sandbox", "charts", name, version))
		if err != nil {
			return err
		}
		if err := s.Sources.Chart(files); err != nil {
			return err
		}
	}
	return nil
}

func filesBelow(folder string) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(folder, path))
		files[path] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	return files, nil
}

// Manifest reads a file of deploy/sandbox into an object, with the variables of .sandbox/env filled in.
func (s *Sandbox) Manifest(path string, object client.Object) error {
	content, err := os.ReadFile(filepath.Join(s.root, "deploy", "sandbox", path))
	if err != nil {
		return fmt.Errorf("reading a sample: %w", err)
	}
	if err := yaml.UnmarshalStrict([]byte(s.filled(string(content))), object); err != nil {
		return fmt.Errorf("decoding %q: %w", path, err)
	}
	return nil
}

// filled has the variables of .sandbox/env filled in.
func (s *Sandbox) filled(text string) string {
	variables := map[string]string{}
	for _, variable := range s.environment() {
		variables[variable[0]] = variable[1]
	}
	return os.Expand(text, func(name string) string { return variables[name] })
}

// offers holds when every version of the catalogue is either offered or said to be excluded.
func offers(available, catalogue *kubermaticv1.AddonCatalogue) error {
	known := map[string]bool{}
	for _, offered := range Offered(available) {
		known[offered] = true
	}
	for _, excluded := range available.Status.Excluded {
		known[excluded.Addon+" "+excluded.Version] = true
	}
	for _, want := range Offered(catalogue) {
		if !known[want] {
			return fmt.Errorf("%s is not offered yet: %w", want, errNotYet)
		}
	}
	return nil
}

// hasCore holds when that many core add-ons are ready.
func hasCore(available *kubermaticv1.AddonCatalogue, wanted int) error {
	if counts := available.Status.Core; counts == nil || int(counts.Ready) < wanted {
		return fmt.Errorf("status.core is %+v, of %d core add-ons: %w", counts, wanted, errNotYet)
	}
	return nil
}

// Offered lists the versions in a catalogue as "addon version".
func Offered(catalogue *kubermaticv1.AddonCatalogue) []string {
	var offered []string
	for _, addon := range catalogue.Spec.Addons {
		for _, version := range addon.Versions {
			offered = append(offered, string(addon.Name)+" "+version.Version)
		}
	}
	return offered
}
