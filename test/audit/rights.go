package audit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Right is one verb for one resource, or for one object where a rule names objects.
type Right struct {
	// Namespace is where it holds; empty: everywhere.
	Namespace string
	// Resource is plural, with its subresource and, behind a dot, its group.
	Resource string
	Verb     string
	// Name is of the only object; empty: all of them.
	Name string
}

// String tells it in words.
func (r Right) String() string {
	text := r.Verb + " " + r.Resource
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in " + r.Namespace
	}
	return text
}

// Granted are the rights that bindings among the objects give a ServiceAccount ("namespace:name"), by roles among the objects. Those
// for the whole cluster come first, as an authorizer goes through them.
func Granted(objects []*unstructured.Unstructured, account string) ([]Right, error) {
	var everywhere, within []Right
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "RoleBinding") {
			continue
		}
		binding := rbacv1.RoleBinding{} // of the same form as a ClusterRoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &binding); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		if !slices.ContainsFunc(binding.Subjects, func(to rbacv1.Subject) bool { return to.Namespace+":"+to.Name == account }) {
			continue
		}
		rules, err := rulesOf(objects, binding)
		if err != nil {
			return nil, err
		}
		if binding.Namespace == "" {
			everywhere = append(everywhere, rightsOf(rules, "")...)
		} else {
			within = append(within, rightsOf(rules, binding.Namespace)...)
		}
	}
	return append(everywhere, within...), nil
}

func rulesOf(objects []*unstructured.Unstructured, binding rbacv1.RoleBinding) ([]rbacv1.PolicyRule, error) {
	for _, object := range objects {
		of := binding.RoleRef
		if object.GetKind() != of.Kind || object.GetName() != of.Name || of.Kind == "Role" && object.GetNamespace() != binding.Namespace {
			continue
		}
		role := rbacv1.Role{}
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role)
		return role.Rules, err
	}
	return nil, fmt.Errorf("there is no %s %q, which a binding names", binding.RoleRef.Kind, binding.RoleRef.Name)
}

func rightsOf(rules []rbacv1.PolicyRule, namespace string) []Right {
	var rights []Right
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, Right{Namespace: namespace, Resource: resourceIn(resource, group), Verb: verb, Name: name})
					}
				}
			}
		}
	}
	return rights
}

func resourceIn(resource, group string) string { return strings.TrimSuffix(resource+"."+group, ".") }

// allows is how RBAC decides: each part of a rule has to match, and what the rule leaves out matches all.
func (r Right) allows(e Event) bool {
	return r.Verb == e.Verb && r.Resource == resourceIn(e.resource(), e.ObjectRef.APIGroup) &&
		(r.Name == "" || r.Name == e.ObjectRef.Name) && (r.Namespace == "" || r.Namespace == e.ObjectRef.Namespace)
}

// Replay puts the calls of a user against the rights. A call uses the first right that allows it, so that one that another right
// has in it is spare. Foreign are calls that were let through by none of the rights.
func Replay(events []Event, user string, rights []Right) (refused, foreign []Event, spare []Right) {
	used := make([]bool, len(rights))
	for _, event := range events {
		if event.User.Username != user || event.ObjectRef == nil { // without an object: discovery
			continue
		}
		if event.isRefused() {
			refused = append(refused, event)
			continue
		}
		by := slices.IndexFunc(rights, func(r Right) bool { return r.allows(event) })
		if by < 0 {
			foreign = append(foreign, event)
			continue
		}
		used[by] = true
	}
	for i, right := range rights {
		if !used[i] {
			spare = append(spare, right)
		}
	}
	return refused, foreign, spare
}
