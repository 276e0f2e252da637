package chart

import (
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
)

// capabilitiesOf is what a chart learns of the cluster, and of the kinds that its own crds/ folder brings.
func capabilitiesOf(input render.Capabilities, crds []*unstructured.Unstructured) (*chartutil.Capabilities, error) {
	version, err := chartutil.ParseKubeVersion(input.KubeVersion)
	if err != nil {
		return nil, &render.ChartError{Problem: "needs the cluster's Kubernetes version, which is not known"}
	}
	known := slices.Clone(input.APIVersions)
	for _, crd := range crds {
		known = append(known, servedBy(crd)...)
	}
	slices.Sort(known)
	return &chartutil.Capabilities{
		KubeVersion: *version, APIVersions: slices.Compact(known), HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, nil
}

// servedBy are the group/versions and group/version/Kinds that a CRD brings.
func servedBy(crd *unstructured.Unstructured) []string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var served []string
	for _, entry := range versions {
		version, ok := entry.(map[string]any)
		if !ok || version["served"] != true {
			continue
		}
		if name, ok := version["name"].(string); ok {
			served = append(served, group+"/"+name, group+"/"+name+"/"+kind)
		}
	}
	return served
}
