package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/test/binaries"
)

// CRDFolders are the folders of the checkout with the CRDs of our kinds and of our parts of KKP's.
func CRDFolders() ([]string, error) {
	root, err := binaries.Root()
	if err != nil {
		return nil, err
	}
	return []string{
		filepath.Join(root, "charts", "trellis-seed", "crds"),
		filepath.Join(root, "deploy", "standalone", "crds"),
	}, nil
}

// CRDs is CRDFolders for tests.
func CRDs(t testing.TB) []string {
	t.Helper()
	folders, err := CRDFolders()
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

// InstallCRDs creates or updates the CustomResourceDefinitions of all *.yaml files in the folders and waits until they
// are served.
func InstallCRDs(ctx context.Context, config *rest.Config, folders ...string) error {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, folder := range folders {
		found, err := Definitions(folder)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	return InstallDefinitions(ctx, config, all...)
}

// Definitions are the CustomResourceDefinitions of all *.yaml files in the folder.
func Definitions(folder string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(os.DirFS(folder), "*.yaml")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("no CustomResourceDefinitions in %q", folder), err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, fmt.Errorf("reading a CustomResourceDefinition: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("decoding %q: %w", file, err)
		}
		all = append(all, crd)
	}
	return all, nil
}

// InstallDefinitions is InstallCRDs for CustomResourceDefinitions that are in no file.
func InstallDefinitions(ctx context.Context, config *rest.Config, crds ...*apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, crd := range crds {
		if err := installCRD(ctx, client, crd); err != nil {
			return fmt.Errorf("installing CustomResourceDefinition %q: %w", crd.Name, err)
		}
	}
	for _, crd := range crds {
		if err := awaitEstablished(ctx, client, crd.Name); err != nil {
			return fmt.Errorf("waiting for CustomResourceDefinition %q: %w", crd.Name, err)
		}
	}
	return nil
}

func installCRD(ctx context.Context, client apiextensions.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	_, err := crds.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	crd.ResourceVersion = old.ResourceVersion
	_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})
	return err
}

func awaitEstablished(ctx context.Context, client apiextensions.Interface, name string) error {
	return wait.PollUntilContextTimeout(ctx, pollEvery, startDeadline, true, func(ctx context.Context) (bool, error) {
		crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
		return established && served(ctx, client, crd), nil
	})
}

// served returns true once discovery lists the kind, which happens a moment after Established.
func served(ctx context.Context, client apiextensions.Interface, crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list, err := client.Discovery().ServerResourcesForGroupVersion(crd.Spec.Group + "/" + version.Name)
		if err != nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == crd.Spec.Names.Plural
		}) {
			return false
		}
	}
	return ctx.Err() == nil
}
