package charts

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// policyKinds and webhookKinds are what admission is made of.
var (
	policyKinds  = []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	webhookKinds = []string{"ValidatingWebhookConfiguration", "Secret"}
)

// Policies are a chart's ValidatingAdmissionPolicies with their bindings.
func Policies(chart, namespace string) ([]*unstructured.Unstructured, error) {
	return pick(chart, namespace, policyKinds)
}

// Admission is all of a chart's admission for a manager that is a process on this machine: the policies, the Secret for the
// certificate, and the webhooks, asked at an address (host:port) instead of through a Service.
func Admission(chart, namespace, address string) ([]*unstructured.Unstructured, error) {
	objects, err := pick(chart, namespace, slices.Concat(policyKinds, webhookKinds))
	if err != nil {
		return nil, err
	}
	return objects, AskAt(objects, address)
}

// AdmissionFlags are the flags of a manager that serves a chart's webhooks at an address on this machine.
func AdmissionFlags(chart, namespace, address string) []string {
	return []string{
		"--webhook-bind-address=" + address, "--webhook-hosts=127.0.0.1",
		"--webhook-configuration=" + namespace + "." + chart, "--webhook-secret=" + chart + "-webhook",
	}
}

func pick(chart, namespace string, kinds []string) ([]*unstructured.Unstructured, error) {
	_, objects, err := Render(chart, namespace, nil)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, object.GetKind())
	}), nil
}

// errNoService says that a webhook names no Service.
var errNoService = errors.New("the webhook has no Service")

// AskAt has every webhook among the objects asked at an address (host:port).
func AskAt(objects []*unstructured.Unstructured, address string) error {
	for _, object := range objects {
		if object.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("reading %q: %w", object.GetName(), err)
		}
		for _, entry := range webhooks {
			webhook, ok := entry.(map[string]any)
			_, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "name")
			if !ok || !found || err != nil {
				return fmt.Errorf("reading %q: %w", object.GetName(), errors.Join(errNoService, err))
			}
			webhook["clientConfig"] = map[string]any{"url": "https://" + address} // the manager adds the path
		}
		if err := unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"); err != nil {
			return fmt.Errorf("changing %q: %w", object.GetName(), err)
		}
	}
	return nil
}
