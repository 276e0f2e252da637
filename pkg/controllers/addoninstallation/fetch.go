package addoninstallation

import (
	"cmp"
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/installer"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

// fetch gets the content from the store, which wakes the installation when it has it.
func (r *Reconciler) fetch(ctx context.Context, f *facts) *loop.Outcome {
	reference, err := r.references().Source(ctx, f.choice.Version.Source)
	if err != nil {
		return fetchOutcome(err)
	}
	reference.Owner = cmp.Or(f.choice.Origin.Git, f.choice.Origin.Catalogue)
	if asked := f.run.Asked.ReconcileAt; f.run.IsAskedFor() && f.memory.refreshedFor != asked {
		r.Store.Refresh(reference)
		f.memory.refreshedFor = asked
	}
	snapshot, err := r.Store.Get(reference, client.ObjectKeyFromObject(f.installation).String(), r.waker(f.installation))
	if err != nil {
		return fetchOutcome(err)
	}
	f.snapshot = snapshot
	return nil
}

// fetchOutcome counts no attempts: the store retries by itself and wakes the installation.
func fetchOutcome(err error) *loop.Outcome {
	var apiError apierrors.APIStatus
	switch {
	case errors.As(err, &apiError):
		return failed(err)
	case errors.Is(err, fetch.ErrPending):
		return loop.Wait(kubermaticv1.ConditionFetched, kubermaticv1.ReasonFetching, "the add-on's content is being fetched", clusterRecheck)
	}
	reason, _ := fetch.Reason(err)
	return loop.Wait(kubermaticv1.ConditionFetched, reason, err.Error(), installer.SlowestRetry)
}

// Users who may write Secrets of one cluster namespace can mark any number of them, of a MiB each, used or not. So the
// cache has small ones whole, and only the metadata of the rest, which are read from the API server when they are used.
const (
	// keptValues is the most bytes of a marked object's values that the cache has; most objects have less.
	keptValues = 8 << 10
	// keptSource is the same for a source Secret: the distributor wrote it, and all installations with that source read
	// it.
	keptSource = values.MaxBytes
	// entryCost is the cost of a map entry in bytes, in addition to its text.
	entryCost = 64
	// annotationLeftOut is only on cached objects without their content.
	annotationLeftOut = kubermaticv1.Prefix + "left-out"
)

// TrimMarked reduces marked Secrets and ConfigMaps before a cache keeps them. It keeps the data that this package
// reads: the label and the annotation with the hosts; of source Secrets in the catalogue namespace the keys that kinds
// of source read; of others all values or none.
func TrimMarked(catalogueNamespace string, keys fetch.SecretKeys) toolscache.TransformFunc {
	return func(object any) (any, error) {
		switch object := object.(type) {
		case *corev1.Secret:
			most := keptValues
			switch isPlatforms := object.Namespace == catalogueNamespace; {
			case isPlatforms && object.Labels[kubermaticv1.LabelUse] == kubermaticv1.UseValues:
				most = values.MaxBytes // all installations with the set's grant read it
			case isPlatforms && object.Labels[kubermaticv1.LabelUse] == kubermaticv1.UsePull:
				most = keptSource // each reconciliation reads it
			case object.Labels[kubermaticv1.LabelUse] == kubermaticv1.UseSource:
				most = keptSource
				maps.DeleteFunc(object.Data, func(key string, _ []byte) bool {
					return !isPlatforms || !keys.Has(key)
				})
			}
			object.Data = trimmed(&object.ObjectMeta, object.Data, most)
		case *corev1.ConfigMap:
			object.BinaryData = nil
			object.Data = trimmed(&object.ObjectMeta, object.Data, keptValues)
		}
		return object, nil
	}
}

// trimmed is the content that is kept: all or none. An already trimmed object does not change.
func trimmed[V string | []byte](about *metav1.ObjectMeta, content map[string]V, most int) map[string]V {
	before := about.Annotations
	about.ManagedFields, about.OwnerReferences, about.Finalizers = nil, nil, nil
	about.Labels = only(about.Labels, kubermaticv1.LabelUse)
	about.Annotations = only(before, kubermaticv1.AnnotationHosts)
	size := len(about.Annotations[kubermaticv1.AnnotationHosts])
	for key, value := range content {
		size += entryCost + len(key) + len(value)
	}
	if size <= most && (len(content) > 0 || before[annotationLeftOut] == "") {
		return content
	}
	about.Annotations = map[string]string{annotationLeftOut: "true"}
	return nil
}

// only is a map with one key. It shares nothing with the original, so that the rest can be freed.
func only(all map[string]string, key string) map[string]string {
	if value, ok := all[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

// references resolve the objects that installations and versions name on this seed.
func (r *Reconciler) references() resolution.References {
	return resolution.References{
		Secret: ReadMarkedSecret(r.Marked, r.Direct), ConfigMap: readMarked[corev1.ConfigMap](r.Marked, r.Direct), Providers: r.Platform,
		Unmarked: r.unmarkedSecret, Images: r.Images, IsThere: r.isThere,
		SourceKinds: r.SourceKinds, CatalogueNamespace: r.Options.CatalogueNamespace,
	}
}

// unmarkedSecret reads a Secret from the API server.
func (r *Reconciler) unmarkedSecret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	return found, r.Direct.Get(ctx, key, found)
}

// isThere reads the metadata of a Secret or ConfigMap from the API server.
func (r *Reconciler) isThere(ctx context.Context, kind string, key client.ObjectKey) (bool, error) {
	found := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	err := r.Direct.Get(ctx, key, found)
	return err == nil, client.IgnoreNotFound(err)
}

// ReadMarkedSecret reads complete marked Secrets: from the cache, or from the API server if the cache left content out.
func ReadMarkedSecret(marked, direct client.Reader) func(context.Context, client.ObjectKey) (*corev1.Secret, error) {
	return readMarked[corev1.Secret](marked, direct)
}

// readMarked reads complete marked objects: from the cache, or from the API server if the cache left content out.
func readMarked[O any, P interface {
	*O
	client.Object
}](marked, direct client.Reader,
) func(context.Context, client.ObjectKey) (P, error) {
	return func(ctx context.Context, key client.ObjectKey) (P, error) {
		found := P(new(O))
		err := marked.Get(ctx, key, found)
		if err == nil && found.GetAnnotations()[annotationLeftOut] != "" {
			found = P(new(O))
			err = direct.Get(ctx, key, found)
		}
		return found, err
	}
}
