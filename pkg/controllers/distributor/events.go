package distributor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/text"
)

// changesTold is how many versions an event names; it counts all of them.
const changesTold = 5

// tell says on each catalogue, or on the one in git that it was generated from, which of its versions have other content
// than before. Installations of them are updated.
func (r *Reconciler) tell(_ context.Context, p *pass) error {
	if len(p.changes) == 0 {
		return nil
	}
	authors := map[string]*v1.AddonCatalogue{}
	byUID := map[types.UID]*v1.AddonCatalogue{}
	for _, reading := range p.readings {
		byUID[reading.object.UID] = reading.object
	}
	for _, reading := range p.readings {
		authors[reading.object.Name] = reading.object
		if parent := byUID[reading.parent()]; parent != nil {
			authors[reading.object.Name] = parent
		}
	}
	changes := map[*v1.AddonCatalogue][]catalogue.Change{}
	for _, change := range p.changes {
		if author := authors[change.Catalogue]; author != nil {
			changes[author] = append(changes[author], change)
		}
	}
	for author, list := range changes {
		r.tellChanges(author, list)
	}
	return nil
}

// tellChanges makes an event of content that reaches installations, and another one of what decides only who gets it.
func (r *Reconciler) tellChanges(author *v1.AddonCatalogue, changes []catalogue.Change) {
	about, content := []catalogue.Change{}, []catalogue.Change{}
	for _, change := range changes {
		if change.About {
			about = append(about, change)
			continue
		}
		content = append(content, change)
	}
	if len(content) > 0 {
		r.recorder.Eventf(author, nil, corev1.EventTypeWarning, v1.EventChanged, "Merge", "%s", text.Message(
			"content changed under the same version, and reaches installations as an update: "+namesOf(content)))
	}
	if len(about) > 0 {
		r.recorder.Eventf(author, nil, corev1.EventTypeNormal, v1.EventChanged, "Merge", "%s", text.Message(
			"constraints or deprecation changed, and no content: clusters are judged anew for "+namesOf(about)))
	}
}

func namesOf(changes []catalogue.Change) string {
	var told []string
	for _, change := range changes[:min(len(changes), changesTold)] {
		told = append(told, fmt.Sprintf("%s %s", change.Addon, change.Version))
	}
	if more := len(changes) - changesTold; more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return strings.Join(told, ", ")
}

// tellConflicts makes an event of conflicts that the catalogue's status did not have before. The status is the memory, so
// that a restart repeats nothing.
func (r *Reconciler) tellConflicts(object *v1.AddonCatalogue, before []v1.CatalogueConflict) {
	var fresh []v1.CatalogueConflict
	for _, conflict := range object.Status.Conflicts {
		if !slices.Contains(before, conflict) {
			fresh = append(fresh, conflict)
		}
	}
	if len(fresh) == 0 {
		return
	}
	message := tellConflict(object.Name, fresh[0])
	if len(fresh) > 1 {
		message += fmt.Sprintf("; and %d more", len(fresh)-1)
	}
	r.recorder.Eventf(object, nil, corev1.EventTypeWarning, v1.EventConflict, "Merge", "%s", text.Message(message))
}

// toldOf is what was told of a catalogue's trouble: by this process or, where that knows nothing yet, by what its status says.
func (r *Reconciler) toldOf(object *v1.AddonCatalogue) conditions.Told {
	if told, known := r.troubles.Load(client.ObjectKeyFromObject(object)); known {
		return told.(conditions.Told)
	}
	return conditions.ToldOf(object.Status.Conditions)
}

// tellTrouble makes an event and a line of the log of why a catalogue is not ready, those in git included: when that comes or becomes
// something else, and when it is over.
func (r *Reconciler) tellTrouble(ctx context.Context, object *v1.AddonCatalogue, told conditions.Told) {
	ready, news := told.News(object.Status.Conditions)
	r.troubles.Store(client.ObjectKeyFromObject(object), told)
	if !news {
		return
	}
	kind := corev1.EventTypeWarning
	if ready.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	ctrl.LoggerFrom(ctx).Info("told of a catalogue", "reason", ready.Reason, "message", ready.Message)
	r.recorder.Eventf(object, nil, kind, ready.Reason, "Distribute", "%s", ready.Message)
}
