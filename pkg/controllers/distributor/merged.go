package distributor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/conditions"
)

// tellMerged writes the status of a merged catalogue, if it is not right yet. It is written after the content, which may
// have been the last thing that an earlier process did: statusFollowed finds that out.
func (s *session) tellMerged(ctx context.Context, object *v1.AddonCatalogue) error {
	before := object.DeepCopy()
	projectMerged(object)
	if err := s.client.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	s.saw(s.picture.catalogues, object)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := s.picture.catalogues[object.Name]
	told.statusAt = told.generation
	s.picture.catalogues[object.Name] = told
	return nil
}

// retell does the same for an object whose content is right.
func (s *session) retell(ctx context.Context, name string) error {
	object := &v1.AddonCatalogue{ObjectMeta: s.named(name)}
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	return s.tellMerged(ctx, object)
}

// projectMerged is the status of a merged catalogue: what it is made of.
func projectMerged(object *v1.AddonCatalogue) {
	object.Status.ObservedGeneration = object.Generation
	object.Status.Addons, object.Status.Versions = count(&object.Spec)
	conditions.True(&object.Status.Conditions, object.Generation, v1.ConditionReady, v1.ReasonMerged,
		fmt.Sprintf("it has %d versions, of %s", object.Status.Versions,
			strings.Join(originsOf(object.Annotations[v1.AnnotationVersions]), ", ")))
}

// statusFollowed says whether our last write of an object's content was followed by one of its status.
func statusFollowed(object client.Object) bool {
	var content, told time.Time
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != fieldOwner || entry.Time == nil {
			continue
		}
		switch entry.Subresource {
		case "status":
			told = entry.Time.Time
		default:
			content = entry.Time.Time
		}
	}
	return !told.IsZero() && !told.Before(content)
}
