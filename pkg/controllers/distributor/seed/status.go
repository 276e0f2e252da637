package seed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// writeStatus writes the status of a merged catalogue, after the content: that may have been the last
// thing that an earlier process did, which statusFollowed finds out.
func (s *session) writeStatus(ctx context.Context, object *v1.AddonCatalogue) error {
	before := object.DeepCopy()
	setStatus(object)
	if err := s.client.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	s.noteWrite(s.observed.catalogues, object)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	written := s.observed.catalogues[object.Name]
	written.statusAt = written.generation
	s.observed.catalogues[object.Name] = written
	return nil
}

// repairStatus does the same for an object whose content is right.
func (s *session) repairStatus(ctx context.Context, name string) error {
	object := &v1.AddonCatalogue{ObjectMeta: s.named(name)}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return s.writeStatus(ctx, object)
}

// setStatus is the status of a merged catalogue: what it is made of.
func setStatus(object *v1.AddonCatalogue) {
	object.Status.ObservedGeneration = object.Generation
	object.Status.Addons, object.Status.Versions = catalogue.Size(&object.Spec)
	conditions.True(&object.Status.Conditions, object.Generation, v1.ConditionReady, v1.ReasonMerged,
		fmt.Sprintf("it has %d versions, of %s", object.Status.Versions,
			strings.Join(originsOf(object.Annotations[v1.AnnotationVersions]), ", ")))
}

// statusFollowed says whether our last write of an object's content was followed by one of its status.
func statusFollowed(object client.Object) bool {
	var content, after time.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != fieldOwner || entry.Time == nil {
			continue
		}
		switch entry.Subresource {
		case "status":
			after = entry.Time.Time
		default:
			content = entry.Time.Time
		}
	}
	return !after.IsZero() && !after.Before(content)
}
