package report

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// announceConflicts reports conflicts that are new in the catalogue's status.
func (r *Reporter) announceConflicts(ctx context.Context, object *v1.AddonCatalogue, before []v1.CatalogueConflict) {
	var fresh []v1.CatalogueConflict
	for _, conflict := range object.Status.Conflicts {
		if !slices.Contains(before, conflict) {
			fresh = append(fresh, conflict)
		}
	}
	if len(fresh) == 0 {
		return
	}
	message := conflictText(object, fresh[0], r.inGit(ctx, object.Namespace, fresh[0].WonBy))
	if len(fresh) > 1 {
		message += fmt.Sprintf("; and %d more", len(fresh)-1)
	}
	r.recorder.Eventf(object, nil, corev1.EventTypeWarning, v1.EventConflict, "Merge", "%s", text.Message(message))
}

// reportedOf is the trouble that this process reported last, or else the status has.
func (r *Reporter) reportedOf(object *v1.AddonCatalogue) conditions.Reported {
	if reported, known := r.reported.Load(client.ObjectKeyFromObject(object)); known {
		return reported.(conditions.Reported)
	}
	return conditions.ReportedIn(object.Status.Conditions)
}

// announceTrouble reports, as event and log line, when trouble begins, changes and ends.
func (r *Reporter) announceTrouble(ctx context.Context, object *v1.AddonCatalogue, reported conditions.Reported) {
	ready, isNew := reported.Update(object.Status.Conditions)
	r.reported.Store(client.ObjectKeyFromObject(object), reported)
	if !isNew {
		return
	}
	kind := corev1.EventTypeWarning
	if ready.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	ctrl.LoggerFrom(ctx).Info("wrote an event about a catalogue", "reason", ready.Reason, "message", ready.Message)
	r.recorder.Eventf(object, nil, kind, ready.Reason, "Distribute", "%s", ready.Message)
}

// leavingReason is the reason of condition Leaving; empty if there is none.
func leavingReason(object *v1.AddonCatalogue) string {
	if found := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionLeaving); found != nil {
		return found.Reason
	}
	return ""
}

// announceLeaving reports condition Leaving when its reason changes.
func (r *Reporter) announceLeaving(object *v1.AddonCatalogue, before string) {
	now := leavingReason(object)
	if now == before || now == "" {
		return
	}
	kind := corev1.EventTypeNormal
	if now == v1.ReasonLeaveUnreadable {
		kind = corev1.EventTypeWarning
	}
	leaving := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionLeaving)
	r.recorder.Eventf(object, nil, kind, v1.EventLeft, "Leave", "%s", leaving.Message)
}
