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
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/values"
)

// reading is the parsed state of one catalogue.
type reading struct {
	// object is the present one.
	object *v1.AddonCatalogue
	// generation is the one that was read, with its spec, time and weight; zero if none was. payer is the account with the debt for it.
	generation int64
	spec       *v1.AddonCatalogueSpec
	readAt     time.Time
	weight     catalogue.Weight
	payer      account
	// waits says why a later generation is not read yet; empty if there is none.
	waits string
	// source is merged; nil if the catalogue adds nothing.
	source *catalogue.Source
	// offered is the merged part of the source: without versions whose Secrets the catalogue may not use.
	offered, offeredOf *catalogue.Source
	without            []string
	// leave are the versions that clusters must leave; leaveProblem is why the annotation is unreadable.
	leave        catalogue.Leave
	leaveProblem error
	// refusal is why the present spec is not merged, with its reason; nil if it is.
	refusal error
	reason  string
	// savedRevision is the ControllerRevision that replaces a refused spec; empty if there is none.
	savedRevision string
}

// readings remembers sources: parsing them takes more time than the rest of a reconciliation.
type readings map[types.UID]*reading

// spaceRecheck is the time between two checks whether objects that the cache has as stubs fit into memory.
const spaceRecheck = time.Minute

type wrongNamespaceError struct{ namespace, wanted string }

func (e *wrongNamespaceError) Error() string {
	return fmt.Sprintf("catalogues are read in namespace %q only, not in %q: create it there", e.wanted, e.namespace)
}

// read lists the catalogues, and parses new and changed ones.
func (r *Reconciler) read(ctx context.Context, f *facts) *loop.Outcome {
	var list v1.AddonCatalogueList
	// Objects are shared with the cache and only read.
	if err := r.cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return failed(fmt.Errorf("listing AddonCatalogues: %w", err))
	}
	return r.readAll(ctx, f, list.Items)
}

func (r *Reconciler) readAll(ctx context.Context, f *facts, all []v1.AddonCatalogue) *loop.Outcome {
	fresh, read := readings{}, []*reading{}
	f.leave = catalogue.Leave{}
	r.pace.repay(r.options.Clock.Now())
	for i := range all {
		object := &all[i]
		if object.DeletionTimestamp != nil || !isInput(object) {
			continue
		}
		found := r.readOne(ctx, f, object, all)
		if err := ctx.Err(); err != nil { // readings of this call may be wrong, and are dropped
			return failed(fmt.Errorf("reading AddonCatalogue %q: %w", object.Name, err))
		}
		if found.reason == v1.ReasonTooLarge {
			f.recheckIn(spaceRecheck)
		}
		if found != r.readings[object.UID] {
			read = append(read, found)
		}
		fresh[object.UID] = found
		r.readLeave(found)
		f.leave.Add(found.leave)
		f.readings = append(f.readings, found)
	}
	if r.readings != nil { // catalogues that exist when the manager starts are free
		r.pace.charge(read)
	}
	r.depart(fresh)
	r.readings = fresh
	slices.SortFunc(f.readings, func(a, b *reading) int {
		return cmp.Or(a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time), cmp.Compare(a.object.UID, b.object.UID))
	})
	return nil
}

// isInput says whether a user or a git catalogue wrote a catalogue.
func isInput(object client.Object) bool {
	role := object.GetLabels()[v1.LabelRole]
	return role == "" || role == v1.RoleGenerated
}

// readOne returns the previous reading of a catalogue if it did not change, or if its present spec waits.
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
		case known != nil: // once it is whole, that counts as an edit
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
		if known.waits == "" { // one text per wait: the status is not written repeatedly
			known.waits = r.pace.reported(payer, wait)
		}
		known.object = object
		return known
	}
	spec := object.Spec // a copy: otherwise the array with all other objects would stay in memory
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

// parent is the catalogue in git that a catalogue was generated from; empty if there is none.
func (r *reading) parent() types.UID {
	owner := metav1.GetControllerOf(r.object)
	if r.object.Labels[v1.LabelRole] != v1.RoleGenerated || owner == nil {
		return ""
	}
	return owner.UID
}

// isHeld says whether a catalogue's content is unknown at present: that of the seeds stays.
func (r *reading) isHeld() bool {
	return r.source == nil && (r.reason == v1.ReasonInvalid || r.reason == v1.ReasonTooLarge || r.waits != "")
}

func (r *reading) refuse(reason string, refusal error) { r.reason, r.refusal = reason, refusal }

// notOwnedError: a generated catalogue has type Core, and no Core catalogue in git owns it.
type notOwnedError struct{ name string }

func (e *notOwnedError) Error() string {
	return fmt.Sprintf("catalogue %q has role %s and type Core, and no Core catalogue in git owns it: it is not merged; delete it, or "+
		"remove the role", e.name, v1.RoleGenerated)
}

// ownedCore refuses Core catalogues that claim to be generated: such a claim does not require verb manage-core.
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

// readLeave reads the versions that a Core catalogue tells clusters to leave.
func (r *Reconciler) readLeave(found *reading) {
	object := found.object
	found.leave, found.leaveProblem = nil, nil
	text := object.Annotations[v1.AnnotationLeaveVersions]
	if text == "" || object.Spec.Type != v1.CatalogueCore || object.Labels[v1.LabelRole] != "" || object.Namespace != r.options.Namespace {
		return
	}
	found.leave, found.leaveProblem = catalogue.ReadLeave(text)
}
