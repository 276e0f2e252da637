package pages

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// mostEvents is how many events a page shows.
const mostEvents = 50

// installationView is one installation.
type installationView struct {
	Seed, Path string
	One        *v1.AddonInstallation
	Row        view.Row
	ClusterURL string
	// Do is what to do about the reason of Ready.
	Advice view.Advice
	Steps  []step
	Events []event
	// EventsProblem says why there are none.
	EventsProblem *problem
	Actions       []action
	MayEdit       bool
	// Whole is what is applied, with values and objects, on request.
	Whole *previewView
	YAML  string
	// IsMoving says that work goes on.
	IsMoving bool
}

// step is a condition, with what to do about it.
type step struct {
	metav1.Condition
	Advice view.Advice
	// Mark is the state that the status means: some conditions are good if they are False.
	Mark string
}

// event is an event about the installation.
type event struct {
	eventsv1.Event
	Seen time.Time
}

func (s *Site) installation(v *visit) (*page, error) {
	seed, one, err := s.read(v)
	if err != nil {
		return nil, err
	}
	made := &installationView{
		Seed: seed.Name, Path: v.URL.Path, One: one, Row: view.RowOf(one, s.Now()), Steps: stepsOf(one),
		ClusterURL: atCluster(seed.Name, one.Namespace, clusterOf(one)),
	}
	made.Advice, made.IsMoving = view.AdviceOn(v1.ConditionReady, made.Row.Reason), made.Row.State != view.States[0]
	found, err := s.eventsOf(v, seed, one)
	made.Events, made.EventsProblem = found, problemOf(err)
	rights := seed.API.Rights(v.Context(), v.token(), one.Namespace)
	made.Actions = actionsOf(one, rights, s.Now())
	made.MayEdit = rights.May("patch", resource, one.Name) && !one.Spec.CoreAddon && one.DeletionTimestamp == nil
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withKind(one)); err == nil {
		made.YAML = manifest(content)
	}
	if v.form.Get("show") == "objects" {
		made.Whole = s.preview(v, seed, one)
		made.Whole.IsWhole = true
	}
	stream := with(at("events"), "seed", seed.Name, "namespace", one.Namespace, "name", one.Name)
	return &page{template: "installation", title: one.Name, data: made, stream: stream}, nil
}

func withKind(one *v1.AddonInstallation) *v1.AddonInstallation {
	made := one.DeepCopy()
	made.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonInstallation"}
	return made
}

// goodIfFalse are conditions that report a problem if they are True.
var goodIfFalse = []string{v1.ConditionDrifted, v1.ConditionDeletionBlocked}

func stepsOf(one *v1.AddonInstallation) (all []step) {
	for _, condition := range one.Status.Conditions {
		made := step{Condition: condition, Mark: "Unknown"}
		good := metav1.ConditionTrue
		if slices.Contains(goodIfFalse, condition.Type) {
			good = metav1.ConditionFalse
		}
		switch condition.Status {
		case good:
			made.Mark = "Done"
		case metav1.ConditionUnknown:
		default:
			made.Mark, made.Advice = "Failing", view.AdviceOn(condition.Type, condition.Reason)
			if condition.Reason == v1.ReasonProgressing {
				made.Mark = "UnderWay"
			}
		}
		all = append(all, made)
	}
	return all
}

// eventsOf are the latest events about an installation, the newest first.
func (s *Site) eventsOf(v *visit, seed *upstream.Seed, one *v1.AddonInstallation) ([]event, error) {
	var found eventsv1.EventList
	query := url.Values{"fieldSelector": {"regarding.kind=AddonInstallation,regarding.name=" + one.Name}, "limit": {"500"}}
	if err := seed.API.Events(v.Context(), v.token(), one.Namespace, query, &found); err != nil {
		return nil, err
	}
	made := make([]event, len(found.Items))
	for i := range found.Items {
		made[i] = event{found.Items[i], view.LastSeen(&found.Items[i])}
	}
	slices.SortStableFunc(made, func(a, b event) int { return b.Seen.Compare(a.Seen) })
	return made[:min(len(made), mostEvents)], nil
}

// action is a button: one write.
type action struct {
	// Do is its name in the form, Label that on the button.
	Do, Label string
	// Facts are what it does, for actions that ask before. Confirm is the name that the user has to enter then.
	Facts   []string
	Confirm string
	// IsDanger marks actions that remove something.
	IsDanger bool
	// HasOrphan offers to leave the objects in the cluster.
	HasOrphan bool
	// Command and YAML do the same.
	Command, YAML string
	// Shown identifies what the page shows: the action is refused if it is no longer so.
	Shown string

	operations []operation
}

// actionsOf are what the user may do with an installation.
func actionsOf(one *v1.AddonInstallation, rights upstream.Rights, now time.Time) (all []action) {
	if rights.May("patch", resource, one.Name) {
		all = append(all, patchesOf(one, now)...)
	}
	isOwned := one.Spec.CoreAddon || one.Labels[v1.LabelSet] != ""
	if rights.May("delete", resource, one.Name) && !isOwned && one.DeletionTimestamp == nil {
		all = append(all, action{
			Do: "uninstall", Label: "Uninstall", Confirm: one.Name, IsDanger: true, HasOrphan: true, Facts: removalOf(one),
			Command: command("kubectl", "addons", "uninstall", one.Name, "--namespace", one.Namespace),
		})
	}
	for i := range all {
		all[i].Shown = shownAs(one.Generation, all[i].Facts...)
	}
	return all
}

// patchesOf are the actions that change one field or annotation.
func patchesOf(one *v1.AddonInstallation, now time.Time) (all []action) {
	pausing := action{Do: "pause", Label: "Pause"}
	if one.Spec.Paused {
		pausing = action{Do: "resume", Label: "Resume"}
	}
	pausing.operations = []operation{{"op": "add", "path": "/spec/paused", "value": !one.Spec.Paused}}
	pausing.YAML = partial(one, nil, map[string]any{"paused": !one.Spec.Paused})
	if !one.Spec.CoreAddon {
		all = append(all, pausing)
	}
	all = append(all, annotation(one, "reconcile", "Reconcile now", v1.AnnotationReconcileAt, now.UTC().Format(time.RFC3339Nano)))
	if value, message, waits := view.WaitingRemoval(one); waits {
		made := annotation(one, "approve", "Approve the removal", v1.AnnotationPruneApproved, value)
		made.Facts, made.Confirm, made.IsDanger = []string{message}, one.Name, true
		all = append(all, made)
	}
	if message, reports := view.ExistingObjects(one); reports && one.Labels[v1.LabelSet] == "" {
		made := annotation(one, "adopt", "Adopt existing objects", v1.AnnotationAdopt, "true")
		made.Facts, made.Confirm = []string{message}, one.Name
		all = append(all, made)
	}
	for i := range all {
		if all[i].Command == "" {
			all[i].Command = command("kubectl", "addons", all[i].Do, one.Name, "--namespace", one.Namespace)
		}
	}
	return all
}

func annotation(one *v1.AddonInstallation, do, label, key, value string) action {
	return action{
		Do: do, Label: label, operations: annotating(one, key, value, false), YAML: partial(one, map[string]any{key: value}, nil),
	}
}

// partial is the YAML of the fields of an installation that an action writes, for server-side apply.
func partial(one *v1.AddonInstallation, annotations, spec map[string]any) string {
	metadata := map[string]any{"namespace": one.Namespace, "name": one.Name}
	made := map[string]any{"apiVersion": v1.GroupVersion.String(), "kind": "AddonInstallation", "metadata": metadata}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	if spec != nil {
		made["spec"] = spec
	}
	return manifest(made)
}

// removalOf says what the removal of an installation removes.
func removalOf(one *v1.AddonInstallation) []string {
	if one.Status.Objects == nil {
		return []string{"Nothing is applied."}
	}
	facts := []string{"It removes " + text.Count(int(one.Status.Objects.Total), "object") + " from cluster " + clusterOf(one) + "."}
	if applied := one.Status.LastApplied; applied != nil && applied.VolumeClaims > 0 {
		facts = append(facts, "It also removes the data of "+text.Count(int(applied.VolumeClaims), "PersistentVolumeClaim")+".")
	}
	if one.Spec.DeletionPolicy == v1.DeletionOrphan {
		facts = []string{"Its objects stay in the cluster, as spec.deletionPolicy says."}
	}
	return facts
}

// act carries out an action of the page of an installation.
func (s *Site) act(v *visit) (*page, error) {
	seed, one, err := s.read(v)
	if err != nil {
		return nil, err
	}
	done := &page{to: v.URL.Path}
	chosen, err := confirmed(v, actionsOf(one, upstream.AllRights, s.Now()), one.Name) // the API server decides about rights
	switch {
	case err != nil:
		return nil, err
	case chosen.Do != "uninstall":
		return done, patch(v, seed.API, objectOf(one), one.Generation, chosen.operations)
	}
	return done, s.uninstall(v, seed, one)
}

// confirmed is the action that a form asks for, if the object is still as the page showed it and the user entered its name where that is
// needed.
func confirmed(v *visit, all []action, name string) (action, error) {
	at := slices.IndexFunc(all, func(one action) bool { return one.Do == v.form.Get("do") })
	switch {
	case at < 0 && v.form.Get("shown") == "":
		return action{}, wrong("this action is not possible")
	case at < 0 || v.form.Get("shown") != all[at].Shown:
		return action{}, changed(name)
	case all[at].Confirm != "" && v.form.Get("confirm") != all[at].Confirm:
		return action{}, wrong("enter the name " + all[at].Confirm + " to confirm this")
	}
	return all[at], nil
}

// uninstall deletes the installation that the page showed, and no other of its name.
func (s *Site) uninstall(v *visit, seed *upstream.Seed, one *v1.AddonInstallation) error {
	if v.form.Get("orphan") == "true" && one.Spec.DeletionPolicy != v1.DeletionOrphan {
		orphan := []operation{{"op": "add", "path": "/spec/deletionPolicy", "value": v1.DeletionOrphan}}
		if err := patch(v, seed.API, objectOf(one), one.Generation, orphan); err != nil {
			return err
		}
	}
	options := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &one.UID},
	}
	_, err := seed.API.Write(v.Context(), v.token(), upstream.Write{Object: objectOf(one), Method: http.MethodDelete, Body: options})
	if upstream.Is(err, http.StatusConflict) {
		return changed(one.Name)
	}
	return err
}
