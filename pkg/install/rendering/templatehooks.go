package rendering

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
)

// Keys by which Open Cluster Management marks a Job or Pod that runs before the deletion of an add-on, with any value
// (open-cluster-management.io/api, addon/v1alpha1).
const (
	ocmHookAnnotation = "addon.open-cluster-management.io/addon-pre-delete"
	ocmHookLabel      = "open-cluster-management.io/addon-pre-delete"
)

// HookError reports why an object of go-template can't be the hook that its annotations declare.
type HookError struct {
	Object  ownership.Key
	Problem string
}

func (e *HookError) Error() string { return fmt.Sprintf("hook %q: %s", e.Object, e.Problem) }

// templateEvents are the events that hooks of go-template may have.
func templateEvents() []string {
	return []string{
		hooks.ActionDelete.Pre(), hooks.ActionInstall.Pre(), hooks.ActionInstall.Post(), hooks.ActionUpgrade.Pre(),
		hooks.ActionUpgrade.Post(),
	}
}

// hooksAmong separates the hooks from the prepared objects of go-template. They run as a chart's, and are deleted
// after they succeeded: they are in no inventory, so no other step would remove them.
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

// eventsOf are the events of a hook; none for an ordinary object. As with Open Cluster Management, its keys count
// only on Jobs and Pods.
func eventsOf(object *unstructured.Unstructured) (events []string, problem string) {
	annotations := object.GetAnnotations()
	runs := calls.Runs(object.GroupVersionKind().GroupKind())
	text, isOurs := annotations[v1.AnnotationHook]
	_, isAnnotated := annotations[ocmHookAnnotation]
	_, isLabelled := object.GetLabels()[ocmHookLabel]
	isTheirs := runs && (isAnnotated || isLabelled)
	switch {
	case isOurs && !runs:
		return nil, fmt.Sprintf("annotation %s is allowed only on Jobs and Pods", v1.AnnotationHook)
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
			return nil, fmt.Sprintf("annotation %s needs %s, and is %q", v1.AnnotationHook, strings.Join(templateEvents(), ", "), event)
		}
		if !slices.Contains(asked, event) {
			asked = append(asked, event)
		}
	}
	if isTheirs && !slices.Equal(asked, events) {
		return nil, fmt.Sprintf("annotation %s is %q, and the annotation of Open Cluster Management means pre-delete: keep one of them",
			v1.AnnotationHook, text)
	}
	return asked, ""
}
