package survey

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// LeaseGK is the kind by which an add-on may show that it is running.
var LeaseGK = schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}

var leases = schema.GroupVersionResource{Group: LeaseGK.Group, Version: "v1", Resource: "leases"}

// LeaseKey names a Lease.
func LeaseKey(of calls.Place) ownership.Key {
	return ownership.Key{Group: LeaseGK.Group, Kind: LeaseGK.Kind, Namespace: of.Namespace, Name: of.Name}
}

// Renewed reads when a Lease was last renewed, by the clock of its holder; zero if there is none, or it was never
// renewed. It is one call.
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
	return time.Time{}, nil // an unreadable time renews nothing
}
