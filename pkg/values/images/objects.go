package images

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podSpecs are the paths of pods in Kubernetes' own kinds.
var podSpecs = map[schema.GroupKind][]string{
	{Kind: "Pod"}:                        {"spec"},
	{Kind: "PodTemplate"}:                {"template", "spec"},
	{Kind: "ReplicationController"}:      {"spec", "template", "spec"},
	{Group: "apps", Kind: "DaemonSet"}:   {"spec", "template", "spec"},
	{Group: "apps", Kind: "Deployment"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "template", "spec"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "template", "spec"},
	{Group: "batch", Kind: "Job"}:        {"spec", "template", "spec"},
	{Group: "batch", Kind: "CronJob"}:    {"spec", "jobTemplate", "spec", "template", "spec"},
}

// containerLists are the fields of a pod that have containers.
var containerLists = []string{"initContainers", "containers", "ephemeralContainers"}

// Rewrite changes images in place, and adds the pull secret to changed pods.
func (r Rules) Rewrite(objects []*unstructured.Unstructured) {
	if r.Empty() {
		return
	}
	for _, object := range objects {
		r.object(object.Object)
	}
}

func (r Rules) object(content map[string]any) {
	object := unstructured.Unstructured{Object: content}
	if items, ok := content["items"].([]any); ok {
		for _, item := range items {
			if entry, ok := item.(map[string]any); ok {
				r.object(entry)
			}
		}
		return
	}
	if spec, ok := podOf(&object); ok && r.pod(spec) && r.PullSecret != "" {
		addPullSecret(spec, r.PullSecret)
	}
}

// pod changes the images of a pod's containers and volumes, and reports whether any changed.
func (r Rules) pod(spec map[string]any) bool {
	changed := false
	for _, list := range containerLists {
		for _, container := range entries(spec[list]) {
			changed = r.field(container, "image") || changed
		}
	}
	for _, volume := range entries(spec["volumes"]) {
		if image, ok := volume["image"].(map[string]any); ok {
			changed = r.field(image, "reference") || changed
		}
	}
	return changed
}

func (r Rules) field(holder map[string]any, name string) bool {
	text, ok := holder[name].(string)
	if !ok {
		return false
	}
	image, changed := r.Image(text)
	if changed {
		holder[name] = image
	}
	return changed
}

func entries(list any) []map[string]any {
	var maps []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		if entry, ok := item.(map[string]any); ok {
			maps = append(maps, entry)
		}
	}
	return maps
}

// addPullSecret adds the Secret after the author's.
func addPullSecret(spec map[string]any, name string) {
	list, ok := spec["imagePullSecrets"].([]any)
	if spec["imagePullSecrets"] != nil && !ok {
		return
	}
	for _, secret := range entries(spec["imagePullSecrets"]) {
		if secret["name"] == name {
			return
		}
	}
	spec["imagePullSecrets"] = append(list, map[string]any{"name": name})
}
