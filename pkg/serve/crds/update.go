package crds

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/base/text"
)

// owner is the field manager of the applied fields.
const owner = client.FieldOwner("trellis-crds")

const (
	// patience is how long a CRD may take until it is served.
	patience = time.Minute
	between  = 500 * time.Millisecond
	// mostNamed are how many fields are named in a line.
	mostNamed = 5
)

// Update updates one CRD to the wanted one, waits until it is served, and returns a line about the result.
func Update(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) (string, error) {
	found, err := Get(ctx, c, wanted.GetName())
	if err != nil {
		return "", err
	}
	if found != nil {
		if newer := Missing(found, wanted); len(newer) > 0 {
			return "stays as it is, since a newer release installed it: it has " + text.First(newer, mostNamed), nil
		}
	}
	configuration := client.ApplyConfigurationFromUnstructured(wanted.DeepCopy())
	if err := c.Apply(ctx, configuration, owner, client.ForceOwnership); err != nil {
		return "", fmt.Errorf("applying CRD %q: %w", wanted.GetName(), err)
	}
	now, err := served(ctx, c, wanted.GetName())
	switch {
	case err != nil:
		return "", err
	case found == nil:
		return "is new", nil
	case found.GetGeneration() == now.GetGeneration():
		return "was up to date", nil
	}
	return "is up to date now", nil
}

// Get reads a CRD; nil: there is none.
func Get(ctx context.Context, c client.Client, name string) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	err := c.Get(ctx, client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading CRD %q: %w", name, err)
	}
	return found, nil
}

// IsServed says whether the API server serves a CRD's kind.
func IsServed(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(entry any) bool {
		condition, _ := entry.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// served waits for a CRD.
func served(ctx context.Context, c client.Client, name string) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	err := wait.PollUntilContextTimeout(ctx, between, patience, true, func(ctx context.Context) (bool, error) {
		var err error
		found, err = Get(ctx, c, name)
		return found != nil && IsServed(found), err
	})
	if err != nil {
		return nil, fmt.Errorf("waiting until CRD %q is served: %w", name, err)
	}
	return found, nil
}
