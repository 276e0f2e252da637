package rendering

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/hooks"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Keys by which Open Cluster Management marks a Job or Pod that runs before an add-on goes, whatever
// their value (open-cluster-management.io/api, addon/v1alpha1).
const (
	ocmHookAnnotation = "addon.open-cluster-management.io/addon-pre-delete"
	ocmHookLabel      = "open-cluster-management.io/addon-pre-delete"
)

// HookError says why an object of go-template can't be the hook that it says it is.
type HookError struct {
	Object  ownership.Key
	Problem string
}

func (e *HookError) Error() string { return fmt.Sprintf("hook %q: %s", e.Object, e.Problem) }

// templateEvents are those that a manifest of go-template may run around.
func templateEvents() []string {
	return []string{
		hooks.ActionDelete.Pre(), hooks.ActionInstall.Pre(), hooks.ActionInstall.Post(), hooks.ActionUpgrade.Pre(),
		hooks.ActionUpgrade.Post(),
	}
}

// hooksAmong takes the hooks out of the prepared objects of go-template. They run as a chart's, and
// go once they have succeeded: they are in no inventory, and nobody else would remove them.
func hooksAmong(objects []*unstructured.Unstructured) (rest []*unstructured.Unstructured, run []hooks.Hook, err error) {
	for _, object := range objects {
		events, problem := eventsOf(object)
		if problem != "" {
			return nil, nil, &HookError{Object: ownership.KeyOf(object), Problem: problem}
		}
		if len(events) == 0 {
			rest = append(rest, object)
			continue
		}
		encoded, err := json.Marshal(object.Object)
		if err != nil {
			return nil, nil, fmt.Errorf("encoding hook %q: %w", ownership.KeyOf(object), err)
		}
		run = append(run, hooks.Hook{
			Path: strings.TrimPrefix(object.GetNamespace()+"/", "/") + object.GetKind() + "/" + object.GetName(), Events: events, Object: encoded,
			DeletePolicies: []string{hooks.DeleteBefore, hooks.DeleteSucceeded},
		})
	}
	return rest, run, nil
}

// eventsOf are the events that an object runs around; none for an ordinary one. As with Open Cluster
// Management its keys mean nothing on other kinds than Job and Pod.
func eventsOf(object *unstructured.Unstructured) (events []string, problem string) {
	annotations := object.GetAnnotations()
	runs := calls.Runs(object.GroupVersionKind().GroupKind())
	text, isOurs := annotations[v1.AnnotationHook]
	_, isAnnotated := annotations[ocmHookAnnotation]
	_, isLabelled := object.GetLabels()[ocmHookLabel]
	isTheirs := runs && (isAnnotated || isLabelled)
	switch {
	case isOurs && !runs:
		return nil, fmt.Sprintf("annotation %s is for Jobs and Pods", v1.AnnotationHook)
	case isTheirs:
		events = []string{hooks.ActionDelete.Pre()}
	}
	if !isOurs {
		return events, ""
	}
	var asked []string
	for event := range strings.SplitSeq(text, ",") {
		event = strings.TrimSpace(event)
		if !slices.Contains(templateEvents(), event) {
			return nil, fmt.Sprintf("annotation %s is for %s, and says %q", v1.AnnotationHook, strings.Join(templateEvents(), ", "), event)
		}
		if !slices.Contains(asked, event) {
			asked = append(asked, event)
		}
	}
	if isTheirs && !slices.Equal(asked, events) {
		return nil, fmt.Sprintf("annotation %s says %q, and the mark of Open Cluster Management pre-delete: keep one of them",
			v1.AnnotationHook, text)
	}
	return asked, ""
}
