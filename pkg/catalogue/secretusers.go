package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// SecretUser is an AddonSet or AddonCatalogue that names Secrets of the platform.
type SecretUser struct {
	// Name as in annotation used-by, such as "AddonSet/monitoring".
	Name string
	UID  types.UID
	// Core says that its authors need verb manage-core.
	Core bool
}

// SetUser is an AddonSet as a user of Secrets.
func SetUser(set *v1.AddonSet) SecretUser {
	return SecretUser{SetUserName(set.Name), set.UID, set.Spec.Type == v1.AddonSetCore}
}

// SetUserName is the name by which annotation used-by lists an AddonSet.
func SetUserName(set string) string { return "AddonSet/" + set }

// CatalogueUser is an AddonCatalogue as a user of Secrets. For a generated one it is that in git which is meant.
func CatalogueUser(object *v1.AddonCatalogue) SecretUser {
	return SecretUser{"AddonCatalogue/" + object.Name, object.UID, typeOf(&object.Spec) == v1.CatalogueCore}
}

// FormerUsers are those that used Secrets before annotation used-by was asked for. Each is a line with name and UID of both: what is made
// later under one of the names is another.
type FormerUsers map[string]bool

// ReadFormerUsers reads what String wrote.
func ReadFormerUsers(text string) FormerUsers {
	users := FormerUsers{}
	for line := range strings.Lines(text) {
		users[strings.TrimSpace(line)] = true
	}
	return users
}

// String has a line for each, sorted.
func (f FormerUsers) String() string { return strings.Join(slices.Sorted(maps.Keys(f)), "\n") }

const (
	// mostFormerBytes are what String has at most; a ConfigMap may have 1 MiB.
	mostFormerBytes = 256 << 10
	// mostOfOne is how many Secrets of one user are noted.
	mostOfOne = 32
)

// Note adds a user of Secrets, for those that have no annotation, as far as there is room in 256 KiB: 32 for each user. All others need the
// annotation, so older users are to be noted first.
func (f FormerUsers) Note(user SecretUser, secrets ...metav1.Object) {
	if user.Core {
		return
	}
	bytes, count := 0, 0
	for line := range f {
		bytes += len(line) + 1
		if strings.HasSuffix(line, formerSuffix(user)) {
			count++
		}
	}
	for _, secret := range secrets {
		line := formerUser(secret, user)
		if _, annotated := secret.GetAnnotations()[v1.AnnotationUsedBy]; annotated || f[line] {
			continue
		}
		if bytes, count = bytes+len(line)+1, count+1; bytes > mostFormerBytes || count > mostOfOne {
			return
		}
		f[line] = true
	}
}

func formerUser(secret metav1.Object, user SecretUser) string {
	return fmt.Sprintf("Secret/%s %s%s", secret.GetName(), secret.GetUID(), formerSuffix(user))
}

func formerSuffix(user SecretUser) string { return fmt.Sprintf(" %s %s", user.Name, user.UID) }

// NotAllowedError says that a Secret of the platform is not for a user.
type NotAllowedError struct {
	// Remedy is what an admin does about it.
	Secret, User, Remedy string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("Secret %q may not be used by %s: %s", e.Secret, e.User, e.Remedy)
}

// MayUse says whether a Secret of the platform is for a user; the warning is what to do where it is only because it was before. Without
// the annotation it is for users of type Core.
func (f FormerUsers) MayUse(secret metav1.Object, user SecretUser) (warning string, refusal error) {
	listed, annotated := secret.GetAnnotations()[v1.AnnotationUsedBy]
	switch {
	case annotated && IsUsedBy(listed, user.Name), !annotated && user.Core:
		return "", nil
	case annotated:
		return "", &NotAllowedError{
			Secret: secret.GetName(), User: user.Name, Remedy: "add " + user.Name + " to its annotation " + v1.AnnotationUsedBy,
		}
	case f[formerUser(secret, user)]:
		return fmt.Sprintf("Secret %q names no users, and %s goes on since it used it before: annotate the Secret with %s=%s",
			secret.GetName(), user.Name, v1.AnnotationUsedBy, user.Name), nil
	}
	return "", &NotAllowedError{
		Secret: secret.GetName(), User: user.Name, Remedy: "annotate the Secret with " + v1.AnnotationUsedBy + "=" + user.Name,
	}
}

// IsUsedBy says whether a value of annotation used-by has a name of SecretUser, or "*" for all.
func IsUsedBy(listed, name string) bool {
	for one := range strings.SplitSeq(listed, ",") {
		if one = strings.TrimSpace(one); one == "*" || one == name {
			return true
		}
	}
	return false
}
