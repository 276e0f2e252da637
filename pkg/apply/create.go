package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/trellis-addons/trellis/pkg/calls"
)

// unusedVersion is a resource version that no object has: etcd's first write is its second revision. The API server creates what
// is applied with it where there is nothing (it wipes the version), and answers Conflict where there is something (Update in
// k8s.io/apiserver/pkg/registry/generic/registry/store.go).
const unusedVersion = "1"

// create applies an object in one call if there is none of its name. Where there is one, nothing is written and settled is false:
// the caller reads it then, to see whose it is. Left to the caller are kinds that may be served by somebody else's code, which may
// not look at resource versions; what is to be adopted, which exists; and Namespaces, which mostly do: a webhook that is down
// would hold up the use of one.
func (w *writer) create(ctx context.Context, client calls.Client, it *item) (settled bool, err error) {
	if w.Adopt || calls.IsNamespace(it.object) || !scheme.Scheme.Recognizes(it.object.GroupVersionKind()) {
		return false, nil
	}
	live, err := w.send(ctx, client, it, attempt{ifNew: true})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		_, err := w.explain(ctx, client, it, err, &attempt{}) // without ifNew: it is not the version that is refused
		return true, err
	}
	it.entry.Created = true
	w.accept(it, live)
	return true, nil
}
