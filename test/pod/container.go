package pod

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// SpecOf is that of the pods that a Deployment makes.
func SpecOf(object *unstructured.Unstructured) (corev1.PodSpec, error) {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return corev1.PodSpec{}, fmt.Errorf("reading Deployment %q: %w", object.GetName(), err)
	}
	return deployment.Spec.Template.Spec, nil
}

// environmentOf are the variables of a container: those that lead to the API server, its own, and what is added here.
func (n *Node) environmentOf(container Container) ([]string, error) {
	server, err := url.Parse(n.Cluster.Config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of cluster %q: %w", n.Cluster.Name, err)
	}
	environment := []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()}
	for _, variable := range container.Spec.Containers[0].Env {
		value, err := valueOf(container, variable)
		if err != nil {
			return nil, err
		}
		environment = append(environment, variable.Name+"="+value)
	}
	return lastOf(append(environment, container.Environment...)), nil
}

// lastOf has each variable once, with what it was set to last: a program takes its first mention.
func lastOf(environment []string) []string {
	var kept []string
	for at, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		isSetAgain := slices.ContainsFunc(environment[at+1:], func(later string) bool { return strings.HasPrefix(later, name+"=") })
		if !isSetAgain {
			kept = append(kept, variable)
		}
	}
	return kept
}

func valueOf(container Container, variable corev1.EnvVar) (string, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value, nil
	case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
		return strconv.FormatInt(container.Spec.Containers[0].Resources.Limits.Memory().Value(), 10), nil
	}
	return "", fmt.Errorf("variable %q is made of what no pod here has", variable.Name)
}

// reference of an argument to a variable.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// expanded are arguments with values in the place of references; one to a variable that is not there stays.
func expanded(arguments, environment []string) (made []string) {
	for _, argument := range arguments {
		made = append(made, reference.ReplaceAllStringFunc(argument, func(found string) string {
			for _, variable := range environment {
				if value, is := strings.CutPrefix(variable, found[2:len(found)-1]+"="); is {
					return value
				}
			}
			return found
		}))
	}
	return made
}
