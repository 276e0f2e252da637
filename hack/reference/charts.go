package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trellis-addons/trellis/test/charts"
)

// chartNames are the names with our prefix that objects of the charts have as keys, beside the known ones.
func chartNames(known []group) (group, error) {
	var all []*unstructured.Unstructured
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		_, objects, err := charts.Render(chart, namespace, nil)
		if err != nil {
			return group{}, err
		}
		all = append(all, objects...)
	}
	return namesBeside(known, all)
}

// namesBeside are the names of objects that are not known: labels by which ClusterRoles gather the rules of others. Another one is an
// error, since nothing says what it means.
func namesBeside(known []group, objects []*unstructured.Unstructured) (group, error) {
	made, keys, gatherers := group{}, map[string]bool{}, map[string]string{}
	for _, object := range objects {
		ownKeys(object.Object, keys)
		if err := gatheredBy(object, gatherers); err != nil {
			return group{}, fmt.Errorf("%s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, one := range known {
		for _, constant := range one.constants {
			delete(keys, constant.value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		role, found := gatherers[key]
		if !found {
			return group{}, fmt.Errorf("the charts have %q, and nothing says what it means: it belongs to %s", key, namesFile)
		}
		says := `= "true" on a ClusterRole adds its rules to ClusterRole ` + code(role) + "."
		made.constants = append(made.constants, named{value: key, says: says})
	}
	return made, nil
}

// ownKeys adds the keys with our prefix that a part of an object has.
func ownKeys(part any, keys map[string]bool) {
	switch part := part.(type) {
	case map[string]any:
		for key, below := range part {
			if strings.HasPrefix(key, prefix) {
				keys[key] = true
			}
			ownKeys(below, keys)
		}
	case []any:
		for _, below := range part {
			ownKeys(below, keys)
		}
	}
}

// gatheredBy adds the labels that an object, if it is a ClusterRole that gathers others' rules, finds them by.
func gatheredBy(object *unstructured.Unstructured, gatherers map[string]string) error {
	if object.GetKind() != "ClusterRole" {
		return nil
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil || role.AggregationRule == nil {
		return err
	}
	for _, selector := range role.AggregationRule.ClusterRoleSelectors {
		for label := range selector.MatchLabels {
			gatherers[label] = role.Name
		}
	}
	return nil
}
