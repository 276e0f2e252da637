package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hook is an object of a chart that is created at certain events of a release, not with it. Its text is only in the
// object, so the two can't differ.
type Hook struct {
	// Path of the template, from the chart's folder up.
	Path string
	// Events at which it runs; see HookEvents. At least one, none twice.
	Events []string
	// Weight orders the hooks of an event, lowest first.
	Weight int
	// DeletePolicies are some of HookDeletePolicies. None is before-hook-creation.
	DeletePolicies []string `json:",omitempty"`
	// LogPolicies decide when the helm program shows its logs; see HookLogPolicies.
	LogPolicies []string `json:",omitempty"`
	Object      *unstructured.Unstructured
}

// HookTest is the event of `helm test`.
const HookTest = "test"

// HookEvents are all events, as Helm names them (pkg/release/hook.go).
var HookEvents = []string{
	"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "pre-delete", "post-delete", HookTest,
}

// HookDeletePolicies decide when an object of a hook is deleted.
var HookDeletePolicies = []string{"before-hook-creation", "hook-succeeded", "hook-failed"}

// HookLogPolicies decide when the helm program shows the output of a hook's pods.
var HookLogPolicies = []string{"hook-succeeded", "hook-failed"}

const maxHookPath = 1024

// Keys by which Open Cluster Management marks a Job or Pod that runs before the deletion of an add-on, with any value.
// The newer key is an annotation or a label, the older one a label only (addon-framework,
// pkg/addonmanager/controllers/agentdeploy/utils.go, and its documentation).
const (
	ocmPreDelete      = "addon.open-cluster-management.io/addon-pre-delete"
	ocmPreDeleteLabel = "open-cluster-management.io/addon-pre-delete"
)

// MarkedPreDelete reports whether Open Cluster Management would run an object before the deletion of its add-on. As
// there, the marks count only on Jobs and Pods.
func MarkedPreDelete(object *unstructured.Unstructured) bool {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}:
	default:
		return false
	}
	_, isAnnotated := object.GetAnnotations()[ocmPreDelete]
	_, isLabelled := object.GetLabels()[ocmPreDelete]
	_, hasOlder := object.GetLabels()[ocmPreDeleteLabel]
	return isAnnotated || isLabelled || hasOlder
}

// Check refuses a hook that no renderer of ours returns. Errors are *TemplateError.
func (h Hook) Check() error {
	var problem string
	switch {
	case h.Object == nil || h.Object.GetAPIVersion() == "" || h.Object.GetKind() == "" || h.Object.GetName() == "":
		problem = "has no object"
	case len(h.Path) > maxHookPath || strings.ContainsFunc(h.Path, func(char rune) bool { return char < ' ' }):
		problem = "has a path that is not valid"
	case len(h.Events) == 0 || !someOf(h.Events, HookEvents):
		problem = "has no event, an unknown event, or one event twice"
	case !someOf(h.DeletePolicies, HookDeletePolicies) || !someOf(h.LogPolicies, HookLogPolicies):
		problem = "has an unknown policy, or one policy twice"
	default:
		return nil
	}
	return &TemplateError{File: h.Path[:min(len(h.Path), maxHookPath)], Problem: fmt.Sprintf("a hook %s", problem)}
}

// someOf reports whether all words are known, and each occurs once.
func someOf(words, known []string) bool {
	if len(words) > len(known) {
		return false
	}
	for i, word := range words {
		if !slices.Contains(known, word) || slices.Contains(words[:i], word) {
			return false
		}
	}
	return true
}
