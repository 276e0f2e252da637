package mergedcatalogue

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// BelievesSet says whether an object is a copy of an AddonSet that the distributor wrote. The verdict is valid for a
// generation and the marked annotations: status is written often, and a spec may be large.
func (m *Marks) BelievesSet(set *v1.AddonSet) bool {
	if set.Labels[v1.LabelRole] != v1.RoleCopy {
		return false
	}
	parts := []string{strconv.FormatInt(set.Generation, 10)}
	for _, name := range []string{
		v1.AnnotationMark, v1.AnnotationDigest, v1.AnnotationSeed, v1.AnnotationGate, v1.AnnotationRemovalApproved,
		v1.AnnotationConfirmDeletion, v1.AnnotationCreated, v1.AnnotationLeaveOut,
	} {
		parts = append(parts, set.Annotations[name])
	}
	return m.evaluate(set.UID, strings.Join(parts, "\n"), func() bool { return catalogue.IsSetMarked(m.key, set) }, func() {
		m.logger.Info("an AddonSet with the role of copies was not written by the distributor, and is ignored",
			"set", set.Name)
	})
}

// Seed is the name of this seed, from the copies of AddonSets in a namespace; empty if there is none.
func (m *Marks) Seed(ctx context.Context, reader client.Reader, namespace string) (name string, err error) {
	var list v1.AddonSetList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing AddonSets: %w", err)
	}
	for i := range list.Items {
		if m.BelievesSet(&list.Items[i]) {
			name = cmp.Or(name, list.Items[i].Annotations[v1.AnnotationSeed])
		}
	}
	return name, nil
}
