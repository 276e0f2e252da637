package access

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// Trim keeps the parts of an object that a Keeper reads from a cache: with Cluster API, owners of the namespace may write
// objects with our label, of any size.
func Trim(object any) (any, error) {
	held, isObject := object.(client.Object)
	if !isObject {
		return object, nil
	}
	held.SetManagedFields(nil)
	held.SetFinalizers(nil)
	held.SetAnnotations(only(held.GetAnnotations(), v1.AnnotationAccessOf, v1.AnnotationRotateAt, v1.LabelAgents))
	held.SetLabels(only(held.GetLabels(), v1.LabelAccess, v1.LabelAgents))
	isOfAgent := strings.HasPrefix(held.GetName(), rights.AgentPrefix)
	switch held := held.(type) {
	case *corev1.ServiceAccount:
		held.Secrets, held.ImagePullSecrets = nil, nil
	case *rbacv1.Role:
		if !isOfAgent {
			held.Rules = nil
		}
	case *rbacv1.RoleBinding:
		if !isOfAgent {
			held.Subjects = nil
		}
	}
	return object, nil
}

// only returns some of the pairs, without absent ones.
func only(pairs map[string]string, keys ...string) map[string]string {
	kept := map[string]string{}
	for _, key := range keys {
		if value, has := pairs[key]; has {
			kept[key] = value
		}
	}
	if maps.Equal(kept, pairs) {
		return pairs
	}
	return kept
}
