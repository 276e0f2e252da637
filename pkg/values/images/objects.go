package images

import (
	"slices"

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
	eachPod(content, func(spec map[string]any) {
		changed := false
		eachImage(spec, func(holder map[string]any, field string) { changed = r.field(holder, field) || changed })
		if changed && r.PullSecret != "" {
			addPullSecret(spec, r.PullSecret)
		}
	})
}

// Of are the images of objects, sorted, each once.
func Of(objects []*unstructured.Unstructured) (found []string) {
	for _, object := range objects {
		eachPod(object.Object, func(spec map[string]any) {
			eachImage(spec, func(holder map[string]any, field string) {
				if text, _ := holder[field].(string); text != "" {
					found = append(found, text)
				}
			})
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// eachPod visits the pod of an object, or those of a list.
func eachPod(content map[string]any, visit func(spec map[string]any)) {
	if items, ok := content["items"].([]any); ok {
		for _, entry := range entries(items) {
			eachPod(entry, visit)
		}
		return
	}
	if spec, ok := podOf(&unstructured.Unstructured{Object: content}); ok {
		visit(spec)
	}
}

// eachImage visits the fields of a pod's containers and volumes that name an image.
func eachImage(spec map[string]any, visit func(holder map[string]any, field string)) {
	for _, list := range containerLists {
		for _, container := range entries(spec[list]) {
			visit(container, "image")
		}
	}
	for _, volume := range entries(spec["volumes"]) {
		if image, ok := volume["image"].(map[string]any); ok {
			visit(image, "reference")
		}
	}
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
