package main

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-addons/trellis/test/charts"
)

// namespace of the platform, which the pages speak of.
const namespace = "kubermatic"

// rbacPage is what the roles of the charts allow, as they are rendered with the charts' defaults.
func rbacPage(string) (string, error) {
	page := begin("rbac")
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		_, objects, err := charts.Render(chart, namespace, nil)
		if err != nil {
			return "", err
		}
		for _, object := range objects {
			if err := roleOf(page, object); err != nil {
				return "", fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return page.String(), nil
}

func roleOf(page *document, object *unstructured.Unstructured) error {
	if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
		return nil
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		return err
	}
	page.heading(object.GetKind() + " " + role.Name)
	if object.GetNamespace() != "" {
		page.paragraph("In namespace " + code(object.GetNamespace()) + ".")
	}
	if role.AggregationRule != nil {
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			for label, value := range selector.MatchLabels {
				page.paragraph("Aggregates all ClusterRoles with label " + code(label+": \""+value+"\"") + ".")
			}
		}
		return nil
	}
	page.head("groups", "resources", "names", "verbs")
	for _, rule := range role.Rules {
		resources := codes(rule.Resources)
		if len(rule.NonResourceURLs) > 0 {
			resources = codes(rule.NonResourceURLs)
		}
		page.row(codes(rule.APIGroups), resources, codes(rule.ResourceNames), codes(rule.Verbs))
	}
	return nil
}
