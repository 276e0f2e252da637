package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// ErrLeft says that a removal would leave objects behind.
var ErrLeft = errors.New("a removal would leave objects without a manager: delete them first, in the order of " +
	"docs/spec/operation.md#removal, or keep them as they are with helm uninstall --no-hooks")

const (
	// mostNames is how many objects of a namespace are named, and mostPlaces how many namespaces.
	mostNames  = 5
	mostPlaces = 20
)

// left are names by namespace.
type left map[string][]string

func (l left) add(object client.Object) {
	l[object.GetNamespace()] = append(l[object.GetNamespace()], object.GetName())
}

func (l left) total() (total int) {
	for _, names := range l {
		total += len(names)
	}
	return total
}

// removal lists the objects with a finalizer that only a manager removes. Catalogues have none, and stay. If there are no such
// objects, the removal begins with roles that must be deleted before others.
func (w Work) removal(ctx context.Context) error {
	sets, installations, core := left{}, left{}, 0
	where := w.Namespace
	if w.OnSeed {
		where = w.CatalogueNamespace
		err := each(ctx, w.Client, &kubermaticv1.AddonInstallationList{}, func(page *kubermaticv1.AddonInstallationList) {
			for i := range page.Items {
				installations.add(&page.Items[i])
				if page.Items[i].Spec.CoreAddon {
					core++
				}
			}
		})
		if err != nil {
			return err
		}
	}
	err := each(ctx, w.Client, &kubermaticv1.AddonSetList{}, func(page *kubermaticv1.AddonSetList) {
		for i := range page.Items {
			sets.add(&page.Items[i])
		}
	}, client.InNamespace(where))
	if err != nil {
		return err
	}
	if len(sets)+len(installations) == 0 {
		fmt.Fprintln(w.Out, "no AddonSet and no AddonInstallation is left")
		return w.deleteRoles(ctx)
	}
	w.report(sets, "AddonSet", "and no manager would remove their finalizers or update their installations")
	w.report(installations, "AddonInstallation", fmt.Sprintf("%d of them core add-ons. Their objects in user clusters stay; no manager "+
		"updates, repairs or removes these. The AddonInstallations and their namespaces can't be deleted", core))
	return ErrLeft
}

// report writes the objects of a kind that are left.
func (w Work) report(found left, kind, meaning string) {
	if len(found) == 0 {
		return
	}
	fmt.Fprintf(w.Out, "%s in %s would be left, %s:\n", text.Count(found.total(), kind), text.Count(len(found), "namespace"), meaning)
	for i, place := range slices.Sorted(maps.Keys(found)) {
		if i == mostPlaces {
			fmt.Fprintln(w.Out, "  and others")
			return
		}
		fmt.Fprintf(w.Out, "  %s: %s\n", place, text.Names(found[place], mostNames))
	}
}
