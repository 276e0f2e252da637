package given

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Secret has some content.
func Secret(namespace, name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// MarkedSecret is one that the platform may use, for sources, values or pulls.
func MarkedSecret(use, namespace, name string, data map[string][]byte) *corev1.Secret {
	made := Secret(namespace, name, data)
	made.Labels = map[string]string{v1.LabelUse: use}
	return made
}

// SourceSecret is a Secret for sources on this machine.
func SourceSecret(namespace, name string, data map[string][]byte) *corev1.Secret {
	made := MarkedSecret(v1.UseSource, namespace, name, data)
	made.Annotations = map[string]string{v1.AnnotationHosts: "127.0.0.1"}
	return made
}

// AuthoritySecret has the certificates of the sources, in PEM.
func AuthoritySecret(namespace string, certificates []byte) *corev1.Secret {
	return SourceSecret(namespace, Authority, map[string][]byte{"ca.crt": certificates})
}

// Kubeconfig is the Secret that leads to the user cluster of a Cluster of KKP.
func Kubeconfig(namespace string, kubeconfig []byte) *corev1.Secret {
	return Secret(namespace, "internal-admin-kubeconfig", map[string][]byte{"kubeconfig": kubeconfig})
}

// Seed is a Seed on the master, behind the Secret with its kubeconfig.
func Seed(namespace, name string, kubeconfig []byte) []client.Object {
	return []client.Object{SeedSecret(namespace, name, kubeconfig), ListedSeed(namespace, name)}
}

// SeedSecret has the kubeconfig of a Seed.
func SeedSecret(namespace, name string, kubeconfig []byte) *corev1.Secret {
	return Secret(namespace, "kubeconfig-"+name, map[string][]byte{"kubeconfig": kubeconfig})
}

// ListedSeed is a Seed whose kubeconfig is in SeedSecret.
func ListedSeed(namespace, name string) *kkpv1.Seed {
	return &kkpv1.Seed{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       kkpv1.SeedSpec{Kubeconfig: kkpv1.ObjectReference{Name: "kubeconfig-" + name, Namespace: namespace}},
	}
}

// CoreList is the custom core list of a seed, in YAML.
func CoreList(namespace, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "custom-core-addons"}, Data: map[string]string{"addons.yaml": text},
	}
}

// AgentRights are what agents of Custom add-ons may be given on a seed.
func AgentRights(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelAgents: v1.AgentsCustom}}, Rules: rules,
	}
}

// UserRights give a user rights in the whole cluster: a ClusterRole of the user's name, and its binding.
func UserRights(user string, rules ...rbacv1.PolicyRule) []client.Object {
	named := metav1.ObjectMeta{Name: user}
	return []client.Object{&rbacv1.ClusterRole{ObjectMeta: named, Rules: rules}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}}
}
