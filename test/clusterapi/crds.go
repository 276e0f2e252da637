package clusterapi

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
)

// program is the name of Cluster API's manager among the binaries.
const program = "cluster-api"

// InstallCRDs installs the CRDs of Cluster API and of the stand-in for tests that need no manager: objects stand as they are written, in
// the newest version, and the older ones are not to be asked for, since nobody converts.
func InstallCRDs(ctx context.Context, config *rest.Config) error {
	crds, err := definitions()
	if err != nil {
		return err
	}
	return fleet.InstallDefinitions(ctx, config, append(crds, providerCRDs()...)...)
}

// InstallOlderCRDs is InstallCRDs as with an older Cluster API: of its own kinds there is v1beta1 alone, which is stored too.
func InstallOlderCRDs(ctx context.Context, config *rest.Config) error {
	all, err := definitions()
	if err != nil {
		return err
	}
	var older []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range all {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name != "v1beta1"
		})
		if len(crd.Spec.Versions) == 0 {
			continue
		}
		crd.Spec.Versions[0].Storage = true
		older = append(older, crd)
	}
	return fleet.InstallDefinitions(ctx, config, append(older, providerCRDs()...)...)
}

// definitions are Cluster API's CRDs, which lie beside its manager.
func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	path, err := managerPath()
	if err != nil {
		return nil, err
	}
	return fleet.Definitions(filepath.Join(filepath.Dir(path), "crds"))
}

// managerPath is the path of the manager.
func managerPath() (string, error) {
	cache, err := binaries.Cache()
	if err != nil {
		return "", err
	}
	return binaries.Find(cache, program, "")
}

// convertAt has the CRDs' other versions converted by the manager that listens there.
func convertAt(crds []*apiextensionsv1.CustomResourceDefinition, server string, authority []byte) {
	url := server + "/convert"
	for _, crd := range crds {
		if len(crd.Spec.Versions) < 2 {
			continue
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: authority},
			},
		}
	}
}

func loopback(port int) string { return fmt.Sprintf("https://127.0.0.1:%d", port) }
