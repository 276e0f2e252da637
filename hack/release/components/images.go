package components

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// canonical gives images of Deployments the host that their names mean where they have none. clusterctl
// refuses such names: it looks at all of them, since its users may ask for other registries.
func canonical(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(object.Object, path...)
		if err != nil {
			return err
		}
		for _, one := range containers {
			if container, isContainer := one.(map[string]any); isContainer {
				image, _ := container["image"].(string)
				container["image"] = canonicalName(image)
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, path...); err != nil {
			return err
		}
	}
	return nil
}

// canonicalName of an image. Its first part is a host if it has a dot or a port, or is localhost, as all
// container engines have it.
func canonicalName(image string) string {
	first, _, hasPath := strings.Cut(image, "/")
	switch {
	case hasPath && (strings.ContainsAny(first, ".:") || first == "localhost"):
		return image
	case hasPath:
		return "docker.io/" + image
	}
	return "docker.io/library/" + image
}
