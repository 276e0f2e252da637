package survey

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// LeaseGK is the kind by which an add-on may show that it is alive.
var LeaseGK = schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}

var leases = schema.GroupVersionResource{Group: LeaseGK.Group, Version: "v1", Resource: "leases"}

// LeaseKey names a Lease.
func LeaseKey(of calls.Place) ownership.Key {
	return ownership.Key{Group: LeaseGK.Group, Kind: LeaseGK.Kind, Namespace: of.Namespace, Name: of.Name}
}

// Renewed reads when a Lease says that it was renewed last, by the clock of who did; zero where there is
// none, or nobody renewed it. It is one call.
func Renewed(ctx context.Context, target calls.Target, of calls.Place) (time.Time, error) {
	live, err := calls.ReadWhole(ctx, target.Dynamic.Resource(leases).Namespace(of.Namespace), of)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("reading %q: %w", LeaseKey(of), err)
	}
	said, _, _ := unstructured.NestedString(live.Object, "spec", "renewTime")
	if renewed, err := time.Parse(metav1.RFC3339Micro, said); err == nil {
		return renewed, nil
	}
	return time.Time{}, nil // what can't be read renews nothing
}
