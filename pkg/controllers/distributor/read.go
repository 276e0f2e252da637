package distributor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/access/rights"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/health"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/values"
)

// reading is what was read of one catalogue.
type reading struct {
	object *v1.AddonCatalogue
	// source is what is merged; nil where the catalogue adds nothing.
	source *catalogue.Source
	// offered is what is merged of the source: versions whose Secrets are not for the catalogue are left out.
	offered, offeredOf *catalogue.Source
	without            []string
	// leave are the versions that clusters have to leave; leaveProblem is why it is unreadable.
	leave        catalogue.Leave
	leaveProblem error
	// refusal is why the present spec is not merged, with its reason; nil where it is.
	refusal error
	reason  string
	// savedRevision is the ControllerRevision that replaces a refused spec; empty: none.
	savedRevision string
}

// readings remembers sources: to parse them costs more than the rest of a pass.
type readings map[types.UID]*reading

// roomRecheck is when it is looked again whether there is room for what the cache holds as stubs.
const roomRecheck = time.Minute

type wrongNamespaceError struct{ namespace, wanted string }

func (e *wrongNamespaceError) Error() string {
	return fmt.Sprintf("catalogues count in namespace %q only, not in %q: create it there", e.wanted, e.namespace)
}

// read lists the catalogues, and parses what is new or changed.
func (r *Reconciler) read(ctx context.Context, f *facts) loop.Outcome {
	var list v1.AddonCatalogueList
	// Objects are shared with the cache and only read.
	if err := r.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing AddonCatalogues: %w", err))
	}
	fresh := readings{}
	f.leave = catalogue.Leave{}
	for i := range list.Items {
		object := &list.Items[i]
		if object.DeletionTimestamp != nil || !isInput(object) {
			continue
		}
		fresh[object.UID] = r.readOne(ctx, object)
		if err := ctx.Err(); err != nil { // what was read until now may be wrong, and is not kept
			return failed(fmt.Errorf("reading AddonCatalogue %q: %w", object.Name, err))
		}
		found := ownedCore(fresh[object.UID], list.Items)
		if found.reason == v1.ReasonTooLarge {
			f.recheckIn(roomRecheck)
		}
		r.readLeave(found)
		f.leave.Add(found.leave)
		f.readings = append(f.readings, found)
	}
	r.readings = fresh
	slices.SortFunc(f.readings, func(a, b *reading) int {
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.object.UID, b.object.UID))
	})
	return nil
}

// isInput says whether people or a git catalogue wrote a catalogue.
func isInput(object client.Object) bool {
	role := object.GetLabels()[v1.LabelRole]
	return role == "" || role == v1.RoleGenerated
}

func (r *Reconciler) readOne(ctx context.Context, object *v1.AddonCatalogue) *reading {
	bytes, isStub := budget.Size(object)
	known, ok := r.readings[object.UID]
	if ok && known.object.Generation == object.Generation && !isStub && !budget.IsStub(known.object) {
		known.object = object
		return known
	}
	found := &reading{object: object}
	switch {
	case object.Namespace != r.options.Namespace:
		found.refuse(v1.ReasonWrongNamespace, &wrongNamespaceError{object.Namespace, r.options.Namespace})
	case isStub && object.Spec.Git == nil:
		noRoom := &catalogue.HeldError{Catalogue: object.Name, Bytes: bytes}
		if r.master.Held.HasRoom(object) { // its status is written, and the cache gets it once more by that
			noRoom.Version = object.ResourceVersion
		}
		found.refuse(v1.ReasonTooLarge, noRoom)
	case object.Spec.Git != nil: // the catalogues generated from it are merged
	default:
		source, err := catalogue.Read(object, values.CheckVersion, health.Check(ctx), rights.CheckVersion)
		if err != nil {
			found.refuse(v1.ReasonInvalid, err)
		}
		found.source = source
	}
	return found
}

// parent is the catalogue in git that a catalogue was generated from; empty: none.
func (r *reading) parent() types.UID {
	owner := metav1.GetControllerOf(r.object)
	if r.object.Labels[v1.LabelRole] != v1.RoleGenerated || owner == nil {
		return ""
	}
	return owner.UID
}

// isHeld says whether a catalogue's content is not known at present: that of the seeds stays.
func (r *reading) isHeld() bool {
	return (r.reason == v1.ReasonInvalid || r.reason == v1.ReasonTooLarge) && r.source == nil
}

func (r *reading) refuse(reason string, refusal error) { r.reason, r.refusal = reason, refusal }

// notOwnedError: a generated catalogue has type Core, and no Core catalogue in git owns it.
type notOwnedError struct{ name string }

func (e *notOwnedError) Error() string {
	return fmt.Sprintf("catalogue %q has role %s and type Core, and no Core catalogue in git owns it: it is not merged; delete it, or "+
		"write it without the role", e.name, v1.RoleGenerated)
}

// ownedCore refuses Core catalogues that claim to be generated: that takes no verb manage-core.
func ownedCore(found *reading, all []v1.AddonCatalogue) *reading {
	object := found.object
	if object.Labels[v1.LabelRole] != v1.RoleGenerated || object.Spec.Type != v1.CatalogueCore || found.reason == v1.ReasonWrongNamespace {
		return found
	}
	owner := metav1.GetControllerOf(object)
	for i := range all {
		parent := &all[i]
		if owner != nil && parent.UID == owner.UID && parent.Namespace == object.Namespace && parent.Labels[v1.LabelRole] == "" &&
			parent.Spec.Git != nil && parent.Spec.Type == v1.CatalogueCore {
			return found
		}
	}
	refused := &reading{object: object}
	refused.refuse(v1.ReasonCoreNotAllowed, &notOwnedError{object.Name})
	return refused
}

// readLeave reads which versions a Core catalogue has clusters leave.
func (r *Reconciler) readLeave(found *reading) {
	object := found.object
	found.leave, found.leaveProblem = nil, nil
	text := object.Annotations[v1.AnnotationLeaveVersions]
	if text == "" || object.Spec.Type != v1.CatalogueCore || object.Labels[v1.LabelRole] != "" || object.Namespace != r.options.Namespace {
		return
	}
	found.leave, found.leaveProblem = catalogue.ReadLeave(text)
}
