package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/fieldsets"
)

// maxDryRuns bounds the searches of one reconciliation, for all of its objects.
const maxDryRuns = 300

// surplus searches the live fields that the API server refuses together with the wanted object (ADR 105).
type surplus struct {
	client calls.Client
	it     *item
	live   *unstructured.Unstructured
	merge  *fieldsets.Merge
	// runs counts dry runs; most is how many dry runs are left for this search.
	runs, most int
	// mayPass: the refusal of a dry run may be temporary.
	mayPass bool
}

// takeSurplus makes the fields ours that the API server refuses together with the wanted object, which lacks them:
// the next patch removes them. Again: such fields were found.
func (w *writer) takeSurplus(ctx context.Context, client calls.Client, it *item, cause error, how *attempt) (again bool, err error) {
	search, taken, err := w.search(ctx, client, it, cause, how)
	if err != nil || len(taken) == 0 {
		return false, err
	}
	now, err := client.Read(ctx, it.key) // its status changes all the time
	if err != nil || now == nil || contentOf(now) != contentOf(search.live) {
		how.surplus = false
		return err == nil, err
	}
	managed, notes := w.moved(it, now.ManagedFields, taken)
	if it.note != nil {
		return false, nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": managed},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": now.ResourceVersion},
	})
	if err != nil {
		return false, err
	}
	after, err := client.Patch(ctx, it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsConflict(err):
		how.surplus = false
		return true, nil
	case err != nil:
		return false, fmt.Errorf("removing fields of %q: %w", it.key, calls.Masked(it.object, err))
	}
	how.withoutNulls = true // otherwise they would keep the taken fields
	how.version, it.taken = after.ResourceVersion, append(it.taken, notes...)
	return true, nil
}

// search returns the fields that the API server refuses together with the wanted object. It returns none if the object waits for
// another reconciliation, or if no such fields were found.
func (w *writer) search(
	ctx context.Context, client calls.Client, it *item, cause error, how *attempt,
) (search *surplus, taken []fieldpath.Path, err error) {
	w.searching.Lock() // one at a time: each can use all that are left
	defer w.searching.Unlock()
	if may, err := w.maySearch(ctx, client, it, cause); err != nil || !may {
		return nil, nil, err
	}
	search, err = w.newSurplus(ctx, client, it, how)
	if err != nil || search == nil {
		return nil, nil, err
	}
	taken, err = search.find(ctx, scopesOf(cause))
	w.runs += search.runs
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("looking for the fields of %q that are refused: %w", it.key, calls.Masked(it.object, err))
	case search.isOver() && search.most < maxDryRuns:
		it.queue()
	case len(taken) == 0:
		it.inVain = true
		search.remember(cause)
	}
	return search, taken, nil
}

// maySearch says whether dry runs are left (the object waits otherwise), and whether the last search about this
// refusal, if it found nothing, was of other content.
func (w *writer) maySearch(ctx context.Context, client calls.Client, it *item, cause error) (bool, error) {
	if it.searched != "" {
		live, err := client.Read(ctx, it.key)
		if err != nil || live != nil && searchOf(live, cause) == it.searched {
			return false, err
		}
	}
	switch {
	case it.inVain: // other objects come first
		return false, nil
	case w.runs >= maxDryRuns:
		it.queue()
		return false, nil
	}
	return true, nil
}

// queue makes the object wait for a reconciliation that has dry runs left.
func (i *item) queue() {
	i.queued = true
	i.wait(kubermaticv1.ReasonProgressing, fmt.Sprintf("%s waits for the next reconciliation, which starts immediately: other objects used "+
		"all dry runs that find out which fields the user cluster refuses", i.key))
}

// remember prevents a repetition of a search that found nothing, unless the refusal may be temporary.
func (s *surplus) remember(cause error) {
	if !s.mayPass && isLasting(cause) {
		s.it.searched = searchOf(s.live, cause)
	}
}

// searchOf identifies the content of an object, and the fields of a refusal.
func searchOf(live metav1.Object, cause error) string {
	return fmt.Sprintf("%s %q", contentOf(live), scopesOf(cause))
}

// contentOf identifies the content of an object. Kinds without generations count each change.
func contentOf(live metav1.Object) string {
	if live.GetGeneration() == 0 {
		return string(live.GetUID()) + " at " + live.GetResourceVersion()
	}
	return fmt.Sprintf("%s %d", live.GetUID(), live.GetGeneration())
}

// isLasting says whether the API server itself refuses the object. Webhooks and policies may decide differently
// later.
func isLasting(err error) bool {
	var answer apierrors.APIStatus
	causes := calls.CausesOf(err)
	return errors.As(err, &answer) && apierrors.IsInvalid(err) && len(causes) > 0 &&
		!strings.HasPrefix(answer.Status().Message, "admission webhook ") &&
		!slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return cause.Type == "" })
}

// newSurplus reads the object; nil if it was replaced or deleted.
func (w *writer) newSurplus(ctx context.Context, client calls.Client, it *item, how *attempt) (*surplus, error) {
	where, served, err := w.kinds.Find(it.object.GroupVersionKind())
	if err != nil || !served {
		return nil, err
	}
	at := calls.Place{Namespace: it.key.Namespace, Name: it.key.Name}
	live, err := calls.ReadWhole(ctx, calls.DynamicOf(w.target, where, at.Namespace), at)
	if err == nil {
		err = calls.CheckManaged(live.GetManagedFields(), at.Name)
	}
	if apierrors.IsNotFound(err) || err == nil && live.GetUID() != it.entry.UID {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", it.key, err)
	}
	whole, err := json.Marshal(live.Object)
	if err != nil || len(whole) > maxSearched {
		return nil, err
	}
	merge, err := fieldsets.NewMerge(live.Object, patchBody(it, *how).Object, live.GetManagedFields(), w.owner.FieldManager())
	if err != nil {
		return nil, calls.Misbehaves("the managed fields of %q are not field sets", it.key)
	}
	return &surplus{client: client, it: it, live: live, merge: merge, most: maxDryRuns - w.runs}, nil
}

// scopesOf are the paths that a refusal names, up to the first list.
func scopesOf(cause error) (scopes [][]string) {
	for _, cause := range calls.CausesOf(cause) {
		field, _, _ := strings.Cut(calls.Excerpt(cause.Field), "[")
		if field = strings.TrimSuffix(field, "."); field != "" && field != "<nil>" {
			steps := strings.Split(field, ".")
			scopes = append(scopes, steps[:min(len(steps), maxScope)])
		} else {
			scopes = append(scopes, nil)
		}
		if len(scopes) == maxScopes {
			break
		}
	}
	return scopes
}

const (
	maxScopes = 16
	// maxScope is how many elements of a refused field's path count.
	maxScope = 32
	// maxSurplus is how many fields are searched at most.
	maxSurplus = 1000
	// maxSearched is larger than any object that etcd holds, in bytes.
	maxSearched = 2 << 20
)

// find looks below the refused fields first, then below their parents. It returns the fewest fields whose removal
// makes the API server accept the wanted object, or none if it never does.
func (s *surplus) find(ctx context.Context, scopes [][]string) (taken []fieldpath.Path, err error) {
	all, before := s.merge.Surplus(), 0
	if len(all) > maxSurplus {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b fieldpath.Path) int { return cmp.Compare(shapeOf(a), shapeOf(b)) })
	for len(scopes) > 0 {
		within := slices.DeleteFunc(slices.Clone(all), func(path fieldpath.Path) bool {
			return !slices.ContainsFunc(scopes, func(scope []string) bool { return isWithin(path, scope) })
		})
		if len(within) > before {
			before = len(within)
			if accepted, err := s.isAccepted(ctx, within); err != nil || accepted {
				if accepted {
					taken, err = s.fewest(ctx, nil, within, true) // none if it is no longer refused
				}
				if s.isOver() {
					return nil, err // it is not known which of them are refused
				}
				return taken, err
			}
		}
		scopes = slices.DeleteFunc(scopes, func(scope []string) bool { return len(scope) == 0 })
		for i, scope := range scopes {
			scopes[i] = scope[:len(scope)-1]
		}
	}
	return nil, nil
}

// shapeOf is a path without the keys of lists. Fields of the same shape are mostly refused all or not at all: side by
// side they take the fewest dry runs.
func shapeOf(path fieldpath.Path) string {
	var names strings.Builder
	for _, element := range path {
		if element.FieldName != nil {
			names.WriteString("." + *element.FieldName)
		}
	}
	return names.String()
}

// isOver says whether a search ended because no dry runs were left.
func (s *surplus) isOver() bool { return s.runs > s.most }

// isWithin says whether a path leads to a scope, or into it.
func isWithin(path fieldpath.Path, scope []string) bool {
	for i := range min(len(path), len(scope)) {
		if path[i].FieldName == nil || *path[i].FieldName != scope[i] {
			return path[i].FieldName == nil
		}
	}
	return true
}

// fewest divides by halves (QuickXplain): it returns the paths that must be removed in addition to the base.
func (s *surplus) fewest(ctx context.Context, base, paths []fieldpath.Path, isNew bool) ([]fieldpath.Path, error) {
	if isNew {
		if accepted, err := s.isAccepted(ctx, base); err != nil || accepted {
			return nil, err
		}
	}
	if len(paths) == 1 {
		return paths, nil
	}
	half := len(paths) / 2
	second, err := s.fewest(ctx, slices.Concat(base, paths[:half]), paths[half:], true)
	if err != nil {
		return nil, err
	}
	first, err := s.fewest(ctx, slices.Concat(base, second), paths[:half], len(second) > 0)
	return slices.Concat(first, second), err
}

// isAccepted tries by a dry run whether the API server accepts the wanted object without these fields.
func (s *surplus) isAccepted(ctx context.Context, without []fieldpath.Path) (bool, error) {
	if s.runs++; s.isOver() {
		return false, nil
	}
	content := s.merge.Without(fieldpath.NewSet(without...))
	var operations []map[string]any
	for field := range s.live.Object {
		if _, stays := content[field]; !stays && !slices.Contains(fieldsets.NotContent, field) {
			operations = append(operations, map[string]any{"op": "remove", "path": "/" + pointer(field)})
		}
	}
	for field, value := range content {
		operations = append(operations, map[string]any{"op": "add", "path": "/" + pointer(field), "value": value})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return false, err
	}
	_, err = s.client.Patch(ctx, s.it.key.Name, types.JSONPatchType, patch, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore,
	})
	if calls.IsRefusal(err) || calls.IsUnexplained(err) {
		s.mayPass = s.mayPass || !isLasting(err)
		return false, nil
	}
	return err == nil, err
}

func pointer(field string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(field) }

// moved returns the managed fields with some paths as ours alone, and notes about the owners that lose them. It
// refuses if one of them is another installation.
func (w *writer) moved(
	it *item, managed []metav1.ManagedFieldsEntry, paths []fieldpath.Path,
) (after []metav1.ManagedFieldsEntry, notes []calls.Note) {
	taken := fieldpath.NewSet(paths...)
	ours := metav1.ManagedFieldsEntry{
		Manager: w.owner.FieldManager(), Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: it.object.GetAPIVersion(), FieldsType: "FieldsV1",
	}
	all := taken
	for _, entry := range managed {
		if entry.FieldsV1 == nil {
			continue
		}
		set := fieldsets.Parse(entry.FieldsV1.GetRawBytes())
		if fieldsets.IsApplied(&entry, ours.Manager) {
			ours, all = entry, all.Union(set)
			continue
		}
		left := set.RecursiveDifference(taken)
		if lost := set.Difference(left); !lost.Empty() {
			if w.isInstallation(entry.Manager) {
				it.refuse(kubermaticv1.ReasonConflict, fmt.Sprintf("%s: field %s belongs to %s, and the API server refuses this field together "+
					"with the fields of this add-on: remove the conflicting field from one of the two add-ons",
					it.key, fieldsIn(lost, paths), w.managerOf(entry.Manager)))
				return nil, nil
			}
			notes = append(notes, calls.Note{Key: it.key, Message: fmt.Sprintf(
				"%s: field %s, which field manager %q owned, was removed: the API server refuses it together with "+
					"what the add-on has", it.key, fieldsIn(lost, paths), calls.CutText(entry.Manager))})
			if left.Empty() {
				continue
			}
			entry.FieldsV1 = encoded(left)
		}
		after = append(after, entry)
	}
	ours.FieldsV1 = encoded(all)
	return append(after, ours), notes
}

func encoded(set *fieldpath.Set) *metav1.FieldsV1 {
	text, err := set.ToJSON()
	if err != nil {
		return metav1.NewFieldsV1("{}")
	}
	return metav1.NewFieldsV1(string(text))
}

// fieldsIn are the paths that a set has, or that have members of the set below them.
func fieldsIn(set *fieldpath.Set, paths []fieldpath.Path) string {
	var fields []string
	for _, path := range paths {
		if !set.Difference(set.RecursiveDifference(fieldpath.NewSet(path))).Empty() {
			fields = append(fields, path.String())
		}
	}
	return calls.CutText(strings.Join(fields, ", "))
}
