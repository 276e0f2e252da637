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
	// object is the present one.
	object *v1.AddonCatalogue
	// generation is the one that was read, with its spec, at that time, with that weight; zero: none was. Payer got the debt for it.
	generation int64
	spec       *v1.AddonCatalogueSpec
	readAt     time.Time
	weight     catalogue.Weight
	payer      account
	// waits says why a later generation is not read yet; empty: there is none.
	waits string
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

// roomRecheck is the time between two checks for room for the objects that the cache holds as stubs.
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
	return r.readAll(ctx, f, list.Items)
}

func (r *Reconciler) readAll(ctx context.Context, f *facts, all []v1.AddonCatalogue) loop.Outcome {
	fresh, read := readings{}, []*reading{}
	f.leave = catalogue.Leave{}
	r.pace.repay(r.options.Clock.Now())
	for i := range all {
		object := &all[i]
		if object.DeletionTimestamp != nil || !isInput(object) {
			continue
		}
		found := r.readOne(ctx, f, object, all)
		if err := ctx.Err(); err != nil { // what was read until now may be wrong, and is not kept
			return failed(fmt.Errorf("reading AddonCatalogue %q: %w", object.Name, err))
		}
		if found.reason == v1.ReasonTooLarge {
			f.recheckIn(roomRecheck)
		}
		if found != r.readings[object.UID] {
			read = append(read, found)
		}
		fresh[object.UID] = found
		r.readLeave(found)
		f.leave.Add(found.leave)
		f.readings = append(f.readings, found)
	}
	if r.readings != nil { // all that is there when the manager starts is free
		r.pace.charge(read)
	}
	r.depart(fresh)
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

// readOne gives what was read of a catalogue before where it did not change, or where its present spec waits.
func (r *Reconciler) readOne(ctx context.Context, f *facts, object *v1.AddonCatalogue, all []v1.AddonCatalogue) *reading {
	known, found := r.readings[object.UID], &reading{object: object}
	if object.Namespace != r.options.Namespace {
		found.refuse(v1.ReasonWrongNamespace, &wrongNamespaceError{object.Namespace, r.options.Namespace})
		return found
	}
	if err := ownedCore(object, all); err != nil {
		found.refuse(v1.ReasonCoreNotAllowed, err)
		return found
	}
	if budget.IsStub(object) && object.Spec.Git == nil {
		found.refuse(v1.ReasonTooLarge, r.master.Held.Refusal("catalogue", object))
		switch {
		case known != nil: // once it is whole, that is an edit
			found.readAt = known.readAt
		case r.readings == nil:
			found.readAt = r.pace.repaid
		}
		return found
	}
	if known != nil && known.generation == object.Generation {
		known.object, known.waits = object, ""
		return known
	}
	found.generation = object.Generation
	if object.Spec.Git != nil { // the catalogues generated from it are merged
		return found
	}
	payer, wait := r.pace.wait(object, known)
	if wait > 0 {
		f.recheckIn(wait)
		if known == nil {
			known = found
			known.generation = 0
		}
		if known.waits == "" { // what it says is not written again and again
			known.waits = r.pace.told(payer, wait)
		}
		known.object = object
		return known
	}
	spec := object.Spec // a copy: the object is in an array with all others, which it would keep in memory
	found.spec, found.readAt, found.payer = &spec, r.pace.repaid, payer
	source, err := catalogue.Read(object, values.CheckVersion, health.Check(ctx), rights.CheckVersion)
	if err != nil {
		found.refuse(v1.ReasonInvalid, err)
		found.weight = catalogue.Weigh(&object.Spec)
		return found
	}
	found.source, found.weight = source, source.Weight()
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
	return r.source == nil && (r.reason == v1.ReasonInvalid || r.reason == v1.ReasonTooLarge || r.waits != "")
}

func (r *reading) refuse(reason string, refusal error) { r.reason, r.refusal = reason, refusal }

// notOwnedError: a generated catalogue has type Core, and no Core catalogue in git owns it.
type notOwnedError struct{ name string }

func (e *notOwnedError) Error() string {
	return fmt.Sprintf("catalogue %q has role %s and type Core, and no Core catalogue in git owns it: it is not merged; delete it, or "+
		"write it without the role", e.name, v1.RoleGenerated)
}

// ownedCore refuses Core catalogues that claim to be generated: that takes no verb manage-core.
func ownedCore(object *v1.AddonCatalogue, all []v1.AddonCatalogue) error {
	if object.Labels[v1.LabelRole] != v1.RoleGenerated || object.Spec.Type != v1.CatalogueCore {
		return nil
	}
	owner := metav1.GetControllerOf(object)
	for i := range all {
		parent := &all[i]
		if owner != nil && parent.UID == owner.UID && parent.Namespace == object.Namespace && parent.Labels[v1.LabelRole] == "" &&
			parent.Spec.Git != nil && parent.Spec.Type == v1.CatalogueCore {
			return nil
		}
	}
	return &notOwnedError{object.Name}
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
