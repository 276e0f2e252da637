package gitcatalogue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
)

const managedBy = "gitcatalogue"

// child is the desired state of a generated catalogue.
type child struct {
	name, addon string
	spec        v1.AddonCatalogueSpec
	digest      string
}

// plan has the writes for a commit, each list sorted by name.
type plan struct {
	children []child
	versions int32
	write    []child
	remove   []string
	// taken has, by the name of their catalogue, the add-ons whose name a foreign object has.
	taken map[string]string
	// added is how many of the catalogues to write are new.
	added int
}

func (r *Reconciler) plan(_ context.Context, f *facts) *loop.Outcome {
	todo, err := planChildren(f.object, f.content.Addons, f.have)
	if err != nil {
		return f.refuse(&documents.InvalidError{Problems: []documents.Problem{{Message: err.Error()}}})
	}
	f.plan = todo
	return nil
}

func planChildren(parent *v1.AddonCatalogue, addons []v1.Addon, have map[string]*v1.AddonCatalogue) (plan, error) {
	var todo plan
	wanted := map[string]bool{}
	for _, addon := range addons {
		made, err := newChild(parent, addon)
		if err != nil {
			return plan{}, err
		}
		todo.children = append(todo.children, made)
		todo.versions += int32(len(addon.Versions)) // at most 128 each
		wanted[made.name] = true
		before, ok := have[made.name]
		if !ok {
			todo.added++
		}
		if !ok || stamp(before) != made.digest {
			todo.write = append(todo.write, made)
		}
	}
	for name := range have {
		if !wanted[name] {
			todo.remove = append(todo.remove, name)
		}
	}
	slices.Sort(todo.remove)
	return todo, nil
}

func newChild(parent *v1.AddonCatalogue, addon v1.Addon) (child, error) {
	made := child{
		name: childName(parent, string(addon.Name)), addon: string(addon.Name),
		spec: v1.AddonCatalogueSpec{
			Type: parent.Spec.Type, Priority: parent.Spec.Priority, SupportedBy: parent.Spec.SupportedBy, Addons: []v1.Addon{addon},
		},
	}
	digest, err := catalogue.Digest(made.spec)
	if err != nil {
		return child{}, fmt.Errorf("add-on %q: %w", addon.Name, err)
	}
	made.digest = digest
	return made, nil
}

// childName is <catalogue>-<addon>-<6 hex>. The digits differ for catalogues whose names and
// add-ons read the same together, and for an earlier catalogue of the same name.
func childName(parent *v1.AddonCatalogue, addon string) string {
	const longest, digits = 253, 3
	sum := sha256.Sum256([]byte(string(parent.UID) + "/" + addon))
	tail := "-" + addon + "-" + hex.EncodeToString(sum[:digits])
	return parent.Name[:min(len(parent.Name), longest-len(tail))] + tail
}

// object is the catalogue to write. Argument before is the present one, or nil.
func (c child) object(parent, before *v1.AddonCatalogue, revision string) *v1.AddonCatalogue {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
		Namespace: parent.Namespace, Name: c.name,
		Labels: map[string]string{v1.LabelRole: v1.RoleGenerated, v1.LabelManagedBy: managedBy},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue", Name: parent.Name, UID: parent.UID,
			Controller: new(true),
		}},
	}, Spec: c.spec}
	expected := int64(1)
	if before != nil {
		object.ResourceVersion, expected = before.ResourceVersion, before.Generation
		if stamp(before) == "" || before.Annotations[v1.AnnotationDigest] != c.digest {
			expected++
		}
	}
	object.Annotations = map[string]string{
		v1.AnnotationDigest: c.digest, v1.AnnotationRevision: revision, v1.AnnotationGeneration: strconv.FormatInt(expected, 10),
	}
	return object
}

// stamp is the digest of the written content; empty if another client changed it.
func stamp(object *v1.AddonCatalogue) string {
	if object.Annotations[v1.AnnotationGeneration] != strconv.FormatInt(object.Generation, 10) {
		return ""
	}
	return object.Annotations[v1.AnnotationDigest]
}
