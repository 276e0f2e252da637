package resolution

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
)

// Source is the reference of a source, with credentials. Errors are fetch's or the reader's.
func (r References) Source(ctx context.Context, source *v1.Source) (fetch.Reference, error) {
	if source == nil {
		return fetch.Reference{}, &fetch.RefusedError{Subject: "the version", Rule: "it has no source in the catalogue"}
	}
	return r.SourceKinds.Reference(source.Kind(), func(name string) (*corev1.Secret, error) {
		return r.sourceSecret(ctx, name)
	})
}

func (r References) sourceSecret(ctx context.Context, name string) (*corev1.Secret, error) {
	secret, err := r.Secret(ctx, types.NamespacedName{Namespace: r.CatalogueNamespace, Name: name})
	if apierrors.IsNotFound(err) || err == nil && secret.Labels[v1.LabelUse] != v1.UseSource {
		return nil, &fetch.NotFoundError{What: fmt.Sprintf(
			"Secret %q with label %s=%s (add the label on the master, in the catalogue's namespace; "+
				"a Secret with credentials also needs annotation %s)", name, v1.LabelUse, v1.UseSource, v1.AnnotationHosts)}
	}
	return secret, err
}
