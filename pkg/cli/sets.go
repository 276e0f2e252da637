package cli

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Set reads an AddonSet that people write, on the master: in the namespace of -n or of the context, else in that of the
// platform. Errors: ExitUsage, ExitNotFound with the nearest name, ExitContext for a seed's copy, ExitForbidden.
func (t *Tool) Set(ctx context.Context, name string) (*Platform, *v1.AddonSet, error) {
	if err := CheckName("AddonSet", name); err != nil {
		return nil, nil, err
	}
	namespace, err := t.Namespace()
	if err != nil {
		return nil, nil, err
	}
	namespace = cmp.Or(namespace, platformNamespace)
	master, err := t.WithSets(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, all := &v1.AddonSet{}, v1.AddonSetList{}
	err = master.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
	if err == nil && found.Labels[v1.LabelRole] == v1.RoleCopy {
		return nil, nil, Fail(ExitContext, masterHint, "AddonSet %q on %s is a seed's copy", name, master.Server)
	} else if !apierrors.IsNotFound(err) {
		return master, found, err
	}
	if err := master.List(ctx, &all, client.InNamespace(namespace), client.Limit(pageSize)); err != nil {
		return nil, nil, err
	}
	return nil, nil, Nearest("AddonSet", name, NamesOf(all.Items, (*v1.AddonSet).GetName))
}
