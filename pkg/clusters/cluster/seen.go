package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// UnseenError reports which part of .CAPI a valuesTemplate can't get, and how to correct it.
type UnseenError struct{ problem string }

func (e *UnseenError) Error() string {
	return ".CAPI can't be given to its valuesTemplate: " + e.problem
}

func unseen(format string, values ...any) error { return &UnseenError{fmt.Sprintf(format, values...)} }

// Reader is a reader of objects that is notified of their next change.
type Reader struct {
	Name types.NamespacedName
	// Changed must not block.
	Changed func()
}

// Seen is the part of Cluster API that valuesTemplates see as .CAPI, as far as they name it; nil for clusters of
// other kinds. The returned description is of the same moment, for the data under KKP's names. The error is an
// UnseenError, or the cache's.
func (f *Finders) Seen(
	ctx context.Context, of target.Description, names templatedata.CAPINames, reader Reader,
) (target.Description, map[string]any, error) {
	if f.capi == nil {
		return of, nil, nil
	}
	f.capi.objects.forget(reader.Name) // its current reads are noted again
	if of.Kind != target.KindClusterAPI || !names.CAPI {
		return of, nil, nil
	}
	look := &look{capi: f.capi, of: of, reader: reader}
	cluster, err := look.cluster(ctx)
	if err != nil {
		return of, nil, err
	}
	found, err := templatedata.ClusterOfCAPI(look.packed)
	if err != nil {
		return of, nil, err
	}
	of.Object, of.Labels, of.Annotations = found, found.Labels, found.Annotations
	var plane, infra map[string]any
	if names.ControlPlane {
		plane, err = look.referred(ctx, reference{"controlPlaneRef", found.Spec.ControlPlaneRef, cluster})
	}
	if names.InfraCluster && err == nil {
		infra, err = look.referred(ctx, reference{"infrastructureRef", found.Spec.InfrastructureRef, cluster})
	}
	if err != nil {
		return of, nil, err
	}
	return of, templatedata.CAPI(cluster, plane, infra), nil
}

// Unread deregisters a reader.
func (f *Finders) Unread(reader types.NamespacedName) {
	if f.capi != nil {
		f.capi.objects.forget(reader)
	}
}

// look is one reading of the data that a valuesTemplate sees.
type look struct {
	capi   *CAPIFinder
	of     target.Description
	reader Reader
	// packed is the last object that was read, bytes the size of all.
	packed []byte
	bytes  int
}

func (l *look) cluster(ctx context.Context) (map[string]any, error) {
	kind := schema.GroupVersionKind{Group: capiv1.Group, Version: l.capi.servedVersion(), Kind: capiv1.Kind}
	cluster, uid, err := l.read(ctx, kind, l.of.Name)
	if err == nil && (cluster == nil || uid != l.of.UID) {
		return nil, unseen("Cluster %q does not exist any more, or was created again", l.of.Name)
	}
	return cluster, err
}

// reference of a Cluster to an object of a provider.
type reference struct {
	field string
	capiv1.Reference
	cluster map[string]any
}

// namespace is the one that a reference names; only v1beta1 has the field.
func (r reference) namespace() string {
	spec, _ := r.cluster["spec"].(map[string]any)
	given, _ := spec[r.field].(map[string]any)
	namespace, _ := given["namespace"].(string)
	return namespace
}

// referred is the object of a reference. It is read in the Cluster's own namespace, and only if the operator lists
// its kind: the writer of a Cluster can refer to any object.
func (l *look) referred(ctx context.Context, to reference) (map[string]any, error) {
	field, kind := "spec."+to.field, to.GroupKind()
	if to.Name == "" {
		return nil, unseen("the Cluster has no %s yet", field)
	}
	if namespace := to.namespace(); namespace != "" && namespace != l.of.Namespace {
		return nil, unseen("%s of the Cluster refers to another namespace: only objects of its own are read", field)
	}
	served, isServed := l.capi.planes.served(kind)
	if !isServed {
		return nil, unseen("%s of the Cluster refers to a %s, which is not one of the kinds that this seed may read: see its "+
			"--cluster-api-providers", field, shown(kind))
	}
	found, _, err := l.read(ctx, served, to.Name)
	if err == nil && found == nil {
		return nil, unseen("%s of the Cluster refers to %s %q, which does not exist", field, shown(kind), text.Cut(text.Line(to.Name), kindShown))
	}
	return found, err
}

// read reads an object of the Cluster's namespace; nil if there is none.
func (l *look) read(ctx context.Context, kind schema.GroupVersionKind, name string) (map[string]any, types.UID, error) {
	key := objectKey{kind, types.NamespacedName{Namespace: l.of.Namespace, Name: name}}
	packed, uid, err := l.capi.objects.read(ctx, key, l.reader)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case errors.Is(err, errNotRead):
		return nil, "", unseen("objects of kind %s are not read from the API server yet; if that lasts, check that this seed's manager may "+
			"list them", kind.GroupKind())
	case err != nil:
		return nil, "", fmt.Errorf("reading %s %q: %w", kind.Kind, name, err)
	}
	if l.packed, l.bytes = packed, l.bytes+len(packed); len(packed) == 0 || l.bytes > templatedata.MaxCAPIBytes {
		return nil, "", unseen("%s %q, together with the objects before it, %v: shorten it, or use fewer objects in the "+
			"template", kind.Kind, name,
			&templatedata.CAPITooLargeError{})
	}
	object, err := templatedata.UnpackCAPI(packed)
	return object, uid, err
}
