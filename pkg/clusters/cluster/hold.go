package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Holds say which upgrades of a cluster are held.
type Holds struct {
	// Hook prevents an upgrade from beginning, Workers prevents the upgrade of machines.
	Hook, Workers bool
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Hold adds our annotations to a Cluster and its pools, and removes them, in one write; it writes nothing if all are
// as desired. The write is valid only for the version that was read: it reads a Cluster that changed meanwhile again,
// a few times, since Clusters change while they are upgraded. The error is not found for a Cluster that is gone or
// recreated.
func (f *CAPIFinder) Hold(ctx context.Context, ref target.Ref, wanted Holds) error {
	return retry.OnError(retry.DefaultRetry, apierrors.IsInvalid, func() error { return f.hold(ctx, ref, wanted) })
}

func (f *CAPIFinder) hold(ctx context.Context, ref target.Ref, wanted Holds) error {
	found, err := f.live(ctx, ref)
	if err != nil {
		return err
	}
	changes := holdOn(found, wanted)
	if len(changes) == 0 {
		return nil
	}
	asRead := operation{"test", "/metadata/resourceVersion", found.ResourceVersion}
	patch, err := json.Marshal(append([]operation{asRead}, changes...))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	if err := f.writer.Patch(ctx, f.objectOf(found), client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("patching the annotations of Cluster %q that delay upgrades: %w", found.Namespace+"/"+found.Name, err)
	}
	return nil
}

// Hold holds a Cluster of Cluster API, as CAPIFinder does; no other kind can be held.
func (f *Finders) Hold(ctx context.Context, ref target.Ref, wanted Holds) error {
	if f.capi == nil || ref.Kind != target.KindClusterAPI {
		return &NotServedError{Kind: ref.Kind}
	}
	return f.capi.Hold(ctx, ref, wanted)
}

// holdOn are the changes of a Cluster.
func holdOn(found *capiv1.Cluster, wanted Holds) []operation {
	changes := annotation("/metadata/annotations", found.Annotations, capiv1.AnnotationBeforeUpgrade, wanted.Hook)
	workers := found.Spec.Topology.Workers
	for _, list := range []struct {
		path  string
		pools []capiv1.WorkerPool
	}{{"machineDeployments", workers.MachineDeployments}, {"machinePools", workers.MachinePools}} {
		for i, pool := range list.pools {
			changes = append(changes, holdPool(fmt.Sprintf("/spec/topology/workers/%s/%d", list.path, i), pool, wanted.Workers && i == 0)...)
		}
	}
	return changes
}

// holdPool changes our annotation of one pool. It does not change a hold of another client.
func holdPool(path string, pool capiv1.WorkerPool, wanted bool) []operation {
	metadata := pool.Metadata
	if value, isHeld := metadata.Annotations[capiv1.AnnotationHoldSequence]; isHeld && value != holder {
		return nil
	}
	if wanted && len(metadata.Annotations)+len(metadata.Labels) == 0 { // the pool may have no metadata then
		return []operation{{"add", path + "/metadata", map[string]any{
			"annotations": map[string]string{capiv1.AnnotationHoldSequence: holder},
		}}}
	}
	return annotation(path+"/metadata/annotations", metadata.Annotations, capiv1.AnnotationHoldSequence, wanted)
}

// annotation sets or removes an annotation.
func annotation(path string, all map[string]string, key string, wanted bool) []operation {
	_, isOn := all[key]
	escaped := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	switch {
	case isOn == wanted:
		return nil
	case !wanted:
		return []operation{{"remove", escaped, nil}}
	case len(all) == 0:
		return []operation{{"add", path, map[string]string{key: holder}}}
	}
	return []operation{{"add", escaped, holder}}
}
