package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestSubjects fails when a certificate gets a subject with built-in rights, also by way of names that tenants and
// authors choose, when an add-on of a Custom catalogue gets that of another add-on, and when the API server's own signer
// is asked for another subject than the one that rights are bound to.
func TestSubjects(t *testing.T) {
	data := SubjectData{Addon: "web", Cluster: "a", Namespace: "cluster-a"}
	for _, row := range []struct {
		why, user, groups string
		data              SubjectData
		isCore            bool
		want, says        string
	}{
		{why: "variables", user: "$(addon):$(namespace)/$(cluster)", groups: "$(addon):x", want: "web:cluster-a/a web:x"},
		{why: "a Core catalogue", isCore: true, user: "observer", groups: "metrics, team-$(cluster)", want: "observer metrics team-a"},
		{why: "another add-on's", user: "mail:agent", says: "does not begin with $(addon):"},
		{why: "another add-on's group", user: "$(addon):x", groups: "mail:agent", says: "does not begin with $(addon):"},
		{why: "one that begins like an add-on's", user: "$(addon)-b:x", says: "does not begin with $(addon):"},
		{why: "built-in", isCore: true, user: "observer", groups: "system:masters", says: "built-in rights"},
		{why: "built-in, in capitals", isCore: true, user: "System:admin", says: "built-in rights"},
		{why: "kubeadm's", isCore: true, user: "observer", groups: "kubeadm:cluster-admins", says: "built-in rights"},
		{why: "built-in, by the add-on's name", data: SubjectData{Addon: "system"}, user: "$(addon):masters", says: "built-in rights"},
		{why: "built-in, by the Cluster's name", data: SubjectData{Cluster: "kubeadm"}, isCore: true, user: "$(cluster):x", says: "built-in rights"},
		{why: "an unknown variable", user: "$(addon):$(installation)", says: "unknown variable"},
		{why: "a line break", user: "$(addon):a\nb", says: "characters other"},
		{why: "nothing", isCore: true, says: "is empty"},
		{why: "too long", user: "$(addon):" + strings.Repeat("x", 256), says: "at most 256"},
	} {
		t.Run(row.why, func(t *testing.T) {
			access := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: "signer.example.com/x", Subject: &v1.AccessSubject{User: row.user}}
			if row.groups != "" {
				access.Subject.Groups = strings.Split(row.groups, ", ")
			}
			if row.data == (SubjectData{}) {
				row.data = data
			}
			user, groups, err := Subject(access, row.data, row.isCore)
			if got := strings.Join(append([]string{user}, groups...), " "); got != row.want {
				t.Errorf("it is %q, not %q", got, row.want)
			}
			if said := fmt.Sprint(err); row.says == "" && err != nil || !strings.Contains(said, row.says) {
				t.Errorf("the error is %v, not %q", err, row.says)
			}
		})
	}
	for _, signer := range []string{"", v1.SignerAPIServer} {
		refused(t, v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: signer, Subject: &v1.AccessSubject{User: "x"}}, "subject", "signerName")
	}
	refused(t, read(t, "{type: Certificate, signerName: signer.example.com/x, subject: {user: 'system:admin'}}"), "subject", "built-in rights")
	refused(t, read(t, "{type: Certificate, signerName: signer.example.com/x, subject: {user: x, groups: "+many(9, "g")+"}}"), "subject", "at most 8")
}

// TestSecretNames fails when a version names a Secret as no API server takes it, for the longest installation too, or the
// one that hosted parts need, or one for two credentials.
func TestSecretNames(t *testing.T) {
	for _, name := range []string{"$(installation)-hub-kubeconfig", "hub.kubeconfig"} {
		if field, err := CheckVersion(version(v1.Access{Name: "x", SecretName: name})); err != nil {
			t.Errorf("%s: %s: %v", name, field, err)
		}
	}
	for _, name := range []string{"Hub", "$(addon)-x", "-x", "$(installation)-", "$(installation)" + strings.Repeat("x", 136)} {
		refused(t, v1.Access{Name: "x", SecretName: name}, "secretName", "not the name of a Secret")
	}
	refused(t, v1.Access{Name: "x", SecretName: "$(installation)-managed-kubeconfig"}, "secretName", "reserved")
	one, other := v1.Access{Name: "hub"}, v1.Access{Name: "x", SecretName: "$(installation)-hub"}
	for _, both := range [][]v1.Access{{one, other}, {other, one}} {
		field, err := CheckVersion(version(both...))
		if err == nil || !slices.Contains([]string{"template.access[1].secretName"}, field) {
			t.Errorf("two with one Secret: %s, %v", field, err)
		}
	}
}
