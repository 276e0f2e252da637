package world

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// guardStatus fails a test if a reconciliation changed spec or metadata of its object, and wrote only the status: the
// API server drops such a change without an error. Intended changes are written by separate calls, such as
// SetFinalizer or Amend of pkg/base/loop.
func guardStatus(t testing.TB) func(*manager.Options) {
	return func(options *manager.Options) {
		next := options.NewClient
		options.NewClient = func(config *rest.Config, of client.Options) (client.Client, error) {
			made, err := next(config, of)
			return guarded{made, t}, err
		}
	}
}

type guarded struct {
	client.Client
	t testing.TB
}

// Status implements client.Client.
func (g guarded) Status() client.SubResourceWriter { return guardedStatus{g.Client.Status(), g.t} }

type guardedStatus struct {
	client.SubResourceWriter
	t testing.TB
}

// Patch implements client.SubResourceWriter.
func (g guardedStatus) Patch(
	ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	if patch.Type() == types.MergePatchType {
		content, err := patch.Data(object)
		if err != nil {
			return err
		}
		if lost := lostChanges(content); len(lost) > 0 {
			g.t.Errorf("a reconciliation of %T %q changes %q, and writes only its status: %s",
				object, client.ObjectKeyFromObject(object), lost, content)
		}
	}
	return g.SubResourceWriter.Patch(ctx, object, patch, options...)
}

// lostChanges are the fields of a merge patch that a write of the status drops, sorted. The resourceVersion is a condition of the write.
func lostChanges(patch []byte) []string {
	var changed map[string]map[string]any
	if err := json.Unmarshal(patch, &changed); err != nil {
		return []string{fmt.Sprintf("what can't be read: %v", err)}
	}
	var lost []string
	for part, fields := range changed {
		for field := range fields {
			if part != "status" && (part != "metadata" || field != "resourceVersion") {
				lost = append(lost, part+"."+field)
			}
		}
	}
	slices.Sort(lost)
	return lost
}
