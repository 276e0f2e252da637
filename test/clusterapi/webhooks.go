package clusterapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/expect"
)

// admitAt has Cluster API's objects admitted by the manager that listens there, as its own manifests say, but by URL.
func admitAt(ctx context.Context, c client.Client, path, server string, authority []byte) error {
	content, err := os.ReadFile(filepath.Join(filepath.Dir(path), "webhooks.yaml"))
	if err != nil {
		return fmt.Errorf("reading the webhooks of Cluster API: %w", err)
	}
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		var raw runtime.RawExtension
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("decoding the webhooks of Cluster API: %w", err)
		}
		configuration, err := admission(raw.Raw, server, authority)
		if err != nil {
			return err
		}
		if configuration == nil {
			continue
		}
		if err := createOrReplace(ctx, c, configuration); err != nil {
			return fmt.Errorf("installing the webhooks of Cluster API: %w", err)
		}
	}
}

// admission reads one document; nil where it is none.
func admission(raw []byte, server string, authority []byte) (client.Object, error) {
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(raw, &kind); err != nil {
		return nil, fmt.Errorf("decoding a webhook of Cluster API: %w", err)
	}
	switch kind.Kind {
	case "MutatingWebhookConfiguration":
		configuration := &admissionv1.MutatingWebhookConfiguration{}
		err := yaml.Unmarshal(raw, configuration)
		configuration.Name = "capi-" + configuration.Name
		for i := range configuration.Webhooks {
			byURL(&configuration.Webhooks[i].ClientConfig, server, authority)
		}
		return configuration, err
	case "ValidatingWebhookConfiguration":
		configuration := &admissionv1.ValidatingWebhookConfiguration{}
		err := yaml.Unmarshal(raw, configuration)
		configuration.Name = "capi-" + configuration.Name
		for i := range configuration.Webhooks {
			byURL(&configuration.Webhooks[i].ClientConfig, server, authority)
		}
		return configuration, err
	}
	return nil, nil
}

func byURL(to *admissionv1.WebhookClientConfig, server string, authority []byte) {
	url := server + *to.Service.Path
	to.Service, to.URL, to.CABundle = nil, &url, authority
}

func createOrReplace(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return expect.PastConflicts(ctx, func() error {
		old := object.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), old); err != nil {
			return err
		}
		object.SetResourceVersion(old.GetResourceVersion())
		return c.Update(ctx, object)
	})
}
