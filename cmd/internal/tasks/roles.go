package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// rolesPatience is how long the deletion of one role may take, and betweenTries the time between two tries.
	rolesPatience = 30 * time.Second
	betweenTries  = 200 * time.Millisecond
)

// deleteRoles deletes the ClusterRoles of the chart that aggregate others, before Helm deletes all of them at once. Otherwise the
// cluster's aggregation controller, which still sees an aggregating role, would react to the deletion of an aggregated one by applying
// that role, which recreates it without the marks of a release. The controller sees deletions in their order.
func (w Work) deleteRoles(ctx context.Context) error {
	for _, name := range w.ClusterRoles {
		if err := w.deleteRole(ctx, name); err != nil {
			return fmt.Errorf("deleting ClusterRole %q: %w", name, err)
		}
		fmt.Fprintf(w.Out, "ClusterRole %q is deleted\n", name)
	}
	return nil
}

// deleteRole deletes a role until it does not exist, so that it needs no right to read it.
func (w Work) deleteRole(ctx context.Context, name string) error {
	err := wait.PollUntilContextTimeout(ctx, betweenTries, rolesPatience, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("it still exists after %s: check its finalizers: %w", rolesPatience, err)
	}
	return err
}
