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
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/installer"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/resolution"
	"github.com/trellis-addons/trellis/pkg/values"
)

// fetch gets the content from the store, which wakes the installation once it has it.
func (r *Reconciler) fetch(ctx context.Context, f *facts) loop.Outcome {
	reference, err := r.references().Source(ctx, f.choice.Version.Source)
	if err != nil {
		return fetchOutcome(err)
	}
	reference.Owner = cmp.Or(f.choice.Origin.Git, f.choice.Origin.Catalogue)
	if asked := f.pass.Asked.ReconcileAt; f.pass.IsAskedFor() && f.memory.refreshedFor != asked {
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

// fetchOutcome: the store tries again by itself and wakes the installation, so nothing here counts
// attempts.
func fetchOutcome(err error) loop.Outcome {
	var apiError apierrors.APIStatus
	switch {
	case errors.As(err, &apiError):
		return failed(err)
	case errors.Is(err, fetch.ErrPending):
		return loop.Waiting{
			Condition: kubermaticv1.ConditionFetched, Reason: kubermaticv1.ReasonFetching,
			Message: "the add-on's content is being fetched", Recheck: clusterRecheck,
		}
	}
	reason, _ := fetch.Reason(err)
	return loop.Waiting{
		Condition: kubermaticv1.ConditionFetched, Reason: reason, Message: err.Error(), Recheck: installer.SlowestRetry,
	}
}

// Whoever may write Secrets of one cluster namespace can mark as many as they like, of a MiB each,
// whether they are used or not. So the cache has what is small, and of the rest only that it is
// there: it is read from the API server when it is used.
const (
	// keptValues is how much of a marked object's values the cache has, in bytes; most have less.
	keptValues = 8 << 10
	// keptSource is how much of a source Secret it has: all installations with that source read it,
	// and the distributor made it.
	keptSource = values.MaxBytes
	// entryCost is what a key of a map takes besides its text.
	entryCost = 64
	// annotationLeftOut is on objects in the cache only, whose content was left out.
	annotationLeftOut = kubermaticv1.Prefix + "left-out"
)

// TrimMarked makes marked Secrets and ConfigMaps small before a cache keeps them. It leaves what
// this package reads: the label, the annotation with the hosts, of source Secrets in the catalogue
// namespace the keys that kinds of source read, of others all values or none.
func TrimMarked(catalogueNamespace string, keys fetch.SecretKeys) toolscache.TransformFunc {
	return func(object any) (any, error) {
		switch object := object.(type) {
		case *corev1.Secret:
			most := keptValues
			switch isPlatforms := object.Namespace == catalogueNamespace; {
			case isPlatforms && object.Labels[kubermaticv1.LabelUse] == kubermaticv1.UseValues:
				most = values.MaxBytes // all installations that a set grants it read it
			case isPlatforms && object.Labels[kubermaticv1.LabelUse] == kubermaticv1.UsePull:
				most = keptSource // it is read in each pass
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

// trimmed gives the content that is kept: all or none. An object that was trimmed before stays as
// it is.
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

// only is a map without all other keys. It shares nothing with the map, so that the rest can go.
func only(all map[string]string, key string) map[string]string {
	if value, ok := all[key]; ok {
		return map[string]string{key: value}
	}
	return nil
}

// references follow what installations and versions name on this seed.
func (r *Reconciler) references() resolution.References {
	return resolution.References{
		Secret: ReadMarkedSecret(r.Marked, r.Direct), ConfigMap: readMarked[corev1.ConfigMap](r.Marked, r.Direct), Providers: r.Platform,
		IsThere: r.isThere, SourceKinds: r.SourceKinds, CatalogueNamespace: r.Options.CatalogueNamespace,
	}
}

// isThere asks the API server for the metadata of a Secret or ConfigMap.
func (r *Reconciler) isThere(ctx context.Context, kind string, key client.ObjectKey) (bool, error) {
	found := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
	err := r.Direct.Get(ctx, key, found)
	return err == nil, client.IgnoreNotFound(err)
}

// ReadMarkedSecret reads marked Secrets whole: from the cache, and from the API server what the
// cache has left out.
func ReadMarkedSecret(marked, direct client.Reader) func(context.Context, client.ObjectKey) (*corev1.Secret, error) {
	return readMarked[corev1.Secret](marked, direct)
}

// readMarked reads marked objects whole: from the cache, and from the API server what the cache has
// left out.
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
