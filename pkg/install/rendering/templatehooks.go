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
	"github.com/trellis-addons/trellis/pkg/render"
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

// eventsOf are the events of a hook; none for an ordinary object.
func eventsOf(object *unstructured.Unstructured) (events []string, problem string) {
	runs := calls.Runs(object.GroupVersionKind().GroupKind())
	text, isOurs := object.GetAnnotations()[v1.AnnotationHook]
	isTheirs := render.MarkedPreDelete(object)
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
		return nil, fmt.Sprintf("annotation %s is %q, and the mark of Open Cluster Management means pre-delete: keep one of them",
			v1.AnnotationHook, text)
	}
	return asked, ""
}
