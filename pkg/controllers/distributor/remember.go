package distributor

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/seed"
)

// revisions are the ControllerRevisions. They are listed once: only this controller writes them.
type revisions struct {
	listed bool
	last   map[types.UID]savedRevision
	// old ones are deleted after the last one was given to the seeds.
	old []client.ObjectKey
}

type savedRevision struct {
	name, digest string
	number       int64
	// source is the parsed spec; nil until it is needed. bytes is its size in memory; 0: not known yet.
	source *catalogue.Source
	bytes  int
}

// revisionsAtOnce is the size of a page: each revision is as large as a catalogue.
const revisionsAtOnce = 16

// mostRestored bounds the last valid specs of refused catalogues together, in bytes. For others, the seeds keep the present content.
const mostRestored = 32 << 20

// remember saves the spec of every valid authored catalogue, and reads the saved one of invalid catalogues. Generated
// catalogues have the repository's last good commit instead.
func (r *Reconciler) remember(ctx context.Context, f *facts) *loop.Outcome {
	if err := r.listRevisions(ctx); err != nil {
		return failed(err)
	}
	for _, reading := range f.readings {
		if reading.object.Labels[v1.LabelRole] != "" || reading.reason == v1.ReasonWrongNamespace {
			continue
		}
		if reading.reason == v1.ReasonInvalid {
			if err := r.restore(ctx, f, reading); err != nil {
				return failed(err)
			}
		}
		if kept, ok := r.revisions.last[reading.object.UID]; ok && reading.reason == v1.ReasonTooLarge { // frees the memory of its content
			kept.source = nil
			r.revisions.last[reading.object.UID] = kept
		}
		if reading.source != nil && reading.refusal == nil {
			f.trouble(r.save(ctx, reading))
		}
	}
	return nil
}

func (r *Reconciler) listRevisions(ctx context.Context) error {
	if r.revisions.listed {
		return nil
	}
	found := revisions{listed: true, last: map[types.UID]savedRevision{}}
	for next := ""; ; {
		var page appsv1.ControllerRevisionList
		err := r.direct.List(ctx, &page, client.InNamespace(r.options.Namespace), client.MatchingLabels{v1.LabelManagedBy: seed.ManagedBy},
			client.Limit(revisionsAtOnce), client.Continue(next))
		if err != nil {
			return fmt.Errorf("listing ControllerRevisions: %w", err)
		}
		for i := range page.Items {
			found.add(&page.Items[i])
		}
		if next = page.Continue; next == "" {
			r.revisions = found
			return nil
		}
	}
}

// add records a revision; of several the one with the highest number counts.
func (r *revisions) add(object *appsv1.ControllerRevision) {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return
	}
	found := savedRevision{name: object.Name, digest: object.Annotations[v1.AnnotationDigest], number: object.Revision}
	have, ok := r.last[owner.UID]
	switch {
	case ok && have.number > found.number:
		r.old = append(r.old, client.ObjectKeyFromObject(object))
		return
	case ok:
		r.old = append(r.old, client.ObjectKey{Namespace: object.Namespace, Name: have.name})
	}
	r.last[owner.UID] = found
}

// save writes the spec, unless it is saved. tidy deletes the previous revision.
func (r *Reconciler) save(ctx context.Context, reading *reading) error {
	before := r.revisions.last[reading.object.UID]
	if before.digest == reading.source.Digest {
		before.source = reading.source
		r.revisions.last[reading.object.UID] = before
		return nil
	}
	object, err := newRevision(reading, before.number+1)
	if err != nil {
		return err
	}
	if err := r.writeRevision(ctx, object); err != nil {
		return fmt.Errorf("storing the last valid spec of AddonCatalogue %q: %w", reading.object.Name, err)
	}
	r.revisions.add(object)
	return nil
}

func (r *Reconciler) writeRevision(ctx context.Context, object *appsv1.ControllerRevision) error {
	err := r.cached.Create(ctx, object.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The spec equals that of an earlier revision which still exists.
	var have appsv1.ControllerRevision
	if err := r.direct.Get(ctx, client.ObjectKeyFromObject(object), &have); err != nil {
		return err
	}
	have.Revision = object.Revision
	return r.cached.Update(ctx, &have)
}

func newRevision(reading *reading, number int64) (*appsv1.ControllerRevision, error) {
	spec, err := json.Marshal(reading.spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the spec of AddonCatalogue %q: %w", reading.object.Name, err)
	}
	owner := metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: "AddonCatalogue",
		Name: reading.object.Name, UID: reading.object.UID, Controller: new(true),
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: reading.object.Namespace, Name: revisionName(reading),
			Labels:          map[string]string{v1.LabelManagedBy: seed.ManagedBy},
			Annotations:     map[string]string{v1.AnnotationDigest: reading.source.Digest},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Data: runtime.RawExtension{Raw: spec}, Revision: number,
	}, nil
}

// revisionName depends on the UID, which differs for a later catalogue of the same name.
func revisionName(reading *reading) string {
	digest, err := catalogue.Digest([]string{string(reading.object.UID), reading.source.Digest})
	if err != nil { // texts can always be encoded
		digest = reading.source.Digest
	}
	const digits, start = 10, len("sha256:")
	name := reading.object.Name
	return name[:min(len(name), 200)] + "-" + digest[start:start+digits]
}

// restore uses the last valid spec of a refused catalogue as its source.
func (r *Reconciler) restore(ctx context.Context, f *facts, reading *reading) error {
	kept, ok := r.revisions.last[reading.object.UID]
	if !ok {
		return nil
	}
	reading.savedRevision = kept.name
	if kept.source == nil && f.restored+kept.bytes <= mostRestored {
		source, err := r.readRevision(ctx, reading.object, kept.name)
		if err != nil {
			return fmt.Errorf("reading the last valid spec of AddonCatalogue %q: %w", reading.object.Name, err)
		}
		kept.source = source
	}
	if kept.source != nil {
		kept.bytes = kept.source.Bytes()
	}
	if f.restored += kept.bytes; f.restored > mostRestored {
		kept.source = nil
	}
	r.revisions.last[reading.object.UID] = kept
	reading.source = kept.source
	return nil
}

// readRevision returns nil if the revision is deleted or unreadable: a retry would not help.
func (r *Reconciler) readRevision(ctx context.Context, object *v1.AddonCatalogue, name string) (*catalogue.Source, error) {
	var have appsv1.ControllerRevision
	err := r.direct.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, &have)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	restored := &v1.AddonCatalogue{ObjectMeta: object.ObjectMeta}
	if err := json.Unmarshal(have.Data.Raw, &restored.Spec); err != nil {
		log.FromContext(ctx).Error(err, "a stored spec can't be decoded", "controllerRevision", name)
		return nil, nil
	}
	source, err := catalogue.Read(restored)
	if err != nil {
		log.FromContext(ctx).Error(err, "a stored spec is not valid any more", "controllerRevision", name)
		return nil, nil
	}
	return source, nil
}
