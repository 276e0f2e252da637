package distributor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// returnsWithin is how long an owner may lack an add-on before it gives it up: replaced catalogues, reverted commits and a restore
// bring it back in that time.
const returnsWithin = 10 * time.Minute

// Keys of ConfigMap v1.ConfigMapOwners beside its add-ons: the marks of annotations take-over that don't count, what owners had when
// others took over, and what catalogues had when there was room for them last.
const (
	keyIgnored = "_ignored"
	keyFormer  = "_former"
	keyRoom    = "_room"
)

// owners knows whose the add-ons of Custom catalogues are, as ConfigMap v1.ConfigMapOwners has it.
type owners struct {
	// stored is nil until it was read.
	stored catalogue.Owners
	former catalogue.Former
	room   catalogue.Room
	// adopt says that the ConfigMap was missing, or had entries that can't be read: then catalogues that win by rank become owners.
	adopt bool
	// unkept says that a merge may have other owners than the ConfigMap.
	unkept bool
	// data is that of the ConfigMap as it was read or written last.
	data map[string]string
	// ignored are the marks of annotations that were there before the policy that guards them, and did not change since.
	ignored map[string]bool
	// missing is since when an owner lacks an add-on.
	missing map[part]time.Time
}

// part is an add-on and one of its owners.
type part struct{ addon, owner string }

// own finds what decides whose add-ons are.
func (r *Reconciler) own(ctx context.Context, f *facts) loop.Outcome {
	if err := r.readOwners(ctx); err != nil {
		return failed(err)
	}
	f.claims = catalogue.Claims{
		Owners: r.owners.stored, Former: r.owners.former, Had: r.owners.room, Adopt: r.owners.adopt, Held: map[string]bool{},
		Missing: map[string]map[string]bool{}, TakeOver: map[string]map[string]bool{}, LeftOut: map[string]map[string]bool{},
	}
	children := map[types.UID]int{}
	for _, reading := range f.readings {
		children[reading.parent()]++
	}
	ignored := map[string]bool{}
	for _, reading := range f.readings {
		if reading.reason != v1.ReasonWrongNamespace {
			r.claim(f, reading, children[reading.object.UID])
			r.takesOver(f, reading.object, ignored)
		}
	}
	r.owners.unkept = r.owners.unkept || len(ignored) < len(r.owners.ignored)
	r.owners.ignored = ignored
	r.awaitOwners(f)
	return nil
}

// claim adds what one catalogue says, of which so many others were generated.
func (r *Reconciler) claim(f *facts, reading *reading, children int) {
	object, author := reading.object, catalogue.Author(reading.object)
	if reading.isHeld() || reading.waits != "" || object.Spec.Git != nil && (!isFetched(object) || int(object.Status.Addons) != children) {
		f.claims.Held[author] = true
	}
	if f.claims.Adopt && f.claims.LeftOut[author] == nil {
		f.claims.LeftOut[author] = map[string]bool{}
	}
	if f.claims.Adopt {
		addLeftOut(f.claims.LeftOut[author], object)
	}
}

// takesOver adds what a catalogue's annotation take-over names. At the upgrade anybody may have set it: there it does not count, nor
// later, until it changes.
func (r *Reconciler) takesOver(f *facts, object *v1.AddonCatalogue, ignored map[string]bool) {
	if budget.IsStub(object) { // it may lack the annotation
		maps.Copy(ignored, r.owners.ignored)
	}
	value := object.Annotations[v1.AnnotationTakeOver]
	if value == "" || object.Labels[v1.LabelRole] != "" {
		return
	}
	sum := sha256.Sum256([]byte(object.Name + " " + value))
	mark := hex.EncodeToString(sum[:6])
	if !f.claims.Adopt && !r.owners.ignored[mark] {
		f.claims.TakeOver[object.Name] = catalogue.TakesOver(object)
		return
	}
	ignored[mark] = true
	if f.claims.Adopt {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, v1.EventTakeOverIgnored, "Merge", "%s", text.Message(fmt.Sprintf(
			"annotation %s was set before owners of add-ons were known, and does not count: have a user with verb %s change it, or take it off "+
				"and set it again", v1.AnnotationTakeOver, v1.VerbManageCore)))
	}
}

// addLeftOut adds the add-ons that were another's when the status of a catalogue was written. These are listed first: where a list
// that was cut ends with one, any may be.
func addLeftOut(leftOut map[string]bool, object *v1.AddonCatalogue) {
	for _, conflict := range object.Status.Conflicts {
		if conflict.Reason == v1.ReasonOwnedByOther && conflict.Version == "" {
			leftOut[conflict.Addon] = true
		}
	}
	last := len(object.Status.Conflicts) - 1
	if last >= 0 && object.Status.Conflicts[last].Reason == v1.ReasonOwnedByOther && int(object.Status.ConflictCount) > last+1 {
		for i := range object.Spec.Addons {
			leftOut[string(object.Spec.Addons[i].Name)] = true
		}
	}
}

// isFetched says whether a catalogue in git has the content of its repository.
func isFetched(object *v1.AddonCatalogue) bool {
	return meta.IsStatusConditionTrue(object.Status.Conditions, v1.ConditionFetched)
}

// awaitOwners has owners keep what they lack for a short while only.
func (r *Reconciler) awaitOwners(f *facts) {
	now, offered, missing := r.options.Clock.Now(), catalogue.Offered(sourcesOf(f.readings)), map[part]time.Time{}
	for addon, all := range r.owners.stored {
		for _, owner := range all {
			if f.claims.Held[owner] || offered[owner][addon] {
				continue
			}
			since, known := r.owners.missing[part{addon, owner}]
			if !known {
				since = now
			}
			missing[part{addon, owner}] = since
			left := returnsWithin - now.Sub(since)
			if left <= 0 {
				continue
			}
			if f.claims.Missing[owner] == nil {
				f.claims.Missing[owner] = map[string]bool{}
			}
			f.claims.Missing[owner][addon] = true
			f.recheckIn(left)
		}
	}
	r.owners.missing = missing
}

// readOwners reads what an earlier leader kept.
func (r *Reconciler) readOwners(ctx context.Context) error {
	if r.owners.stored != nil {
		return nil
	}
	kept, err := r.keptOwners(ctx)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %q: %w", v1.ConfigMapOwners, err)
	}
	stored, whole := catalogue.DecodeOwners(kept.Data)
	if !whole {
		log.FromContext(ctx).Info("owners of add-ons can't be read, and are found again by precedence", "configMap", v1.ConfigMapOwners)
	}
	r.owners = owners{stored: stored, adopt: err != nil || !whole, unkept: true, data: kept.Data, ignored: map[string]bool{}}
	r.owners.former, r.owners.room = catalogue.DecodeFormer(kept.Data[keyFormer]), catalogue.DecodeRoom(kept.Data[keyRoom])
	for mark := range strings.FieldsSeq(kept.Data[keyIgnored]) {
		r.owners.ignored[mark] = true
	}
	return nil
}

func (r *Reconciler) keptOwners(ctx context.Context) (*corev1.ConfigMap, error) {
	kept := &corev1.ConfigMap{}
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: v1.ConfigMapOwners}, kept)
	return kept, err
}

// keepOwners writes whose the add-ons are, before any seed gets what follows from it. After a merge it looks whether that is still
// there. What fails is tried again before anything else is done.
func (r *Reconciler) keepOwners(ctx context.Context, f *facts) loop.Outcome {
	if f.isNewMerge {
		r.owners.stored, r.owners.former, r.owners.room = f.merged.Owners, f.merged.Former, f.merged.Room
		r.owners.adopt, r.owners.unkept = false, true
		// Merged again with these, the sources give the same.
		r.merger.claims.Owners, r.merger.claims.Former, r.merger.claims.Had = f.merged.Owners, f.merged.Former, f.merged.Room
		r.merger.claims.Adopt = false
		r.merger.claims.LeftOut = map[string]map[string]bool{}
	}
	if !r.owners.unkept {
		return nil
	}
	data := f.merged.Owners.Encode()
	if len(r.owners.ignored) > 0 {
		data[keyIgnored] = strings.Join(slices.Sorted(maps.Keys(r.owners.ignored)), " ")
	}
	for key, encoded := range map[string]string{keyFormer: f.merged.Former.Encode(), keyRoom: f.merged.Room.Encode()} {
		if encoded != "" {
			data[key] = encoded
		}
	}
	if err := r.writeOwners(ctx, data); err != nil {
		return failed(fmt.Errorf("writing ConfigMap %q: %w", v1.ConfigMapOwners, err))
	}
	r.owners.data, r.owners.unkept = data, false
	return nil
}

// errOtherOwners: a restore or another master wrote the ConfigMap.
var errOtherOwners = errors.New("it has other content than was read or written last: it is read again")

// writeOwners replaces what was read or written last. Where something else is there, that counts, and all is found again from it.
func (r *Reconciler) writeOwners(ctx context.Context, data map[string]string) error {
	kept, err := r.keptOwners(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return r.cached.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.options.Namespace, Name: v1.ConfigMapOwners}, Data: data,
		})
	case err != nil || maps.Equal(kept.Data, data):
		return err
	case !maps.Equal(kept.Data, r.owners.data):
		r.owners = owners{}
		return errOtherOwners
	}
	kept.Data = data
	return r.cached.Update(ctx, kept)
}
