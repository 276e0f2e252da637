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
	"github.com/trellis-addons/trellis/pkg/base/budget"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// returnsWithin is how long an owner may lack an add-on before it loses it: replaced catalogues, reverted commits and
// a restore bring it back in that time.
const returnsWithin = 10 * time.Minute

// keyIgnored is the key of ConfigMap v1.ConfigMapOwners with the marks of annotations take-over that don't count.
const keyIgnored = "_ignored"

// owners are the owners of the Custom catalogues' add-ons, as in ConfigMap v1.ConfigMapOwners.
type owners struct {
	// stored is nil until it was read.
	stored   catalogue.Owners
	previous catalogue.Previous
	space    catalogue.Space
	// adopt says that the ConfigMap was missing, or had unreadable entries: then catalogues that win by rank become owners.
	adopt bool
	// unkept says that a merge may have other owners than the ConfigMap.
	unkept bool
	// data is that of the ConfigMap when it was last read or written.
	data map[string]string
	// ignored are the marks of annotations that existed before the policy that guards them, and did not change since.
	ignored map[string]bool
	// missing is since when an owner lacks an add-on.
	missing map[part]time.Time
}

// part is an add-on and one of its owners.
type part struct{ addon, owner string }

// own collects the claims that decide about the owners of add-ons.
func (r *Reconciler) own(ctx context.Context, f *facts) *loop.Outcome {
	if err := r.readOwners(ctx); err != nil {
		return failed(err)
	}
	f.claims = catalogue.Claims{
		Owners: r.owners.stored, Previous: r.owners.previous, Had: r.owners.space, Adopt: r.owners.adopt, Held: map[string]bool{},
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

// claim adds the claims of one catalogue, from which this many others were generated.
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

// takesOver adds the add-ons in a catalogue's annotation take-over. At the upgrade any user may have set it: then it
// does not count, nor later, until it changes.
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
			"annotation %s was set before owners of add-ons were recorded, and is ignored: have a user with verb %s change it, or remove it and "+
				"set it again", v1.AnnotationTakeOver, v1.VerbManageCore)))
	}
}

// addLeftOut adds the add-ons that were another owner's when the status of a catalogue was written. These are listed
// first: if a truncated list ends with one, all of the catalogue's may be.
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

// awaitOwners limits how long owners keep add-ons that they lack.
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

// readOwners reads the owners that an earlier leader stored.
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
		log.FromContext(ctx).Info("owners of add-ons can't be read, and are determined again by precedence", "configMap", v1.ConfigMapOwners)
	}
	r.owners = owners{stored: stored, adopt: err != nil || !whole, unkept: true, data: kept.Data, ignored: map[string]bool{}}
	r.owners.previous = catalogue.DecodePrevious(kept.Data[catalogue.KeyPrevious])
	r.owners.space = catalogue.DecodeSpace(kept.Data[catalogue.KeySpace])
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

// keepOwners writes the owners of add-ons, before any seed gets the results. After a merge it checks whether the
// ConfigMap is unchanged. A failure is retried before anything else.
func (r *Reconciler) keepOwners(ctx context.Context, f *facts) *loop.Outcome {
	if f.isNewMerge {
		r.owners.stored, r.owners.previous, r.owners.space = f.merged.Owners, f.merged.Previous, f.merged.Space
		r.owners.adopt, r.owners.unkept = false, true
		// Merged again with these, the sources have the same result.
		r.merger.claims.Owners, r.merger.claims.Previous, r.merger.claims.Had = f.merged.Owners, f.merged.Previous, f.merged.Space
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
	for key, encoded := range map[string]string{
		catalogue.KeyPrevious: f.merged.Previous.Encode(), catalogue.KeySpace: f.merged.Space.Encode(),
	} {
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
var errOtherOwners = errors.New("its content differs from what was last read or written: it is read again")

// writeOwners replaces the last read or written data. If the ConfigMap has other data, that counts, and owners are
// decided again.
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
