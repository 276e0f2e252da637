package seed

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// writeStatus writes the status of a merged catalogue, after its content.
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

// repairStatus writes the status of an object whose content is right.
func (s *session) repairStatus(ctx context.Context, name string) error {
	object := &v1.AddonCatalogue{ObjectMeta: s.named(name)}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return s.writeStatus(ctx, object)
}

func setStatus(object *v1.AddonCatalogue) {
	object.Status.ObservedGeneration = object.Generation
	object.Status.Addons, object.Status.Versions = catalogue.Size(&object.Spec)
	origins, _ := originsOf(object.Annotations[v1.AnnotationVersions])
	conditions.True(&object.Status.Conditions, object.Generation, v1.ConditionReady, v1.ReasonMerged,
		fmt.Sprintf("it has %d versions, of %s", object.Status.Versions, strings.Join(origins, ", ")))
}

// statusFollowed says whether our last write of an object's status is the newest one.
func statusFollowed(object client.Object) bool {
	var content, after time.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != fieldOwner || entry.Time == nil {
			continue
		}
		if entry.Subresource == "status" {
			after = entry.Time.Time
		} else {
			content = entry.Time.Time
		}
	}
	return !after.IsZero() && !after.Before(content)
}
