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

// CatalogueUser is an AddonCatalogue as a user of Secrets. For a generated one it is the catalogue in git.
func CatalogueUser(object *v1.AddonCatalogue) SecretUser {
	return SecretUser{"AddonCatalogue/" + object.Name, object.UID, typeOf(&object.Spec) == v1.CatalogueCore}
}

// PreviousUsers are those that used Secrets before annotation used-by was required. Each is a line with name and UID of
// both: an object that is created later under the same name does not match.
type PreviousUsers map[string]bool

// ReadPreviousUsers reads the result of String.
func ReadPreviousUsers(text string) PreviousUsers {
	users := PreviousUsers{}
	for line := range strings.Lines(text) {
		users[strings.TrimSpace(line)] = true
	}
	return users
}

// String has a line for each, sorted.
func (f PreviousUsers) String() string { return strings.Join(slices.Sorted(maps.Keys(f)), "\n") }

const (
	// mostPreviousBytes is the maximum size of String, in bytes; a ConfigMap may have 1 MiB.
	mostPreviousBytes = 256 << 10
	// mostOfOne is the maximum number of Secrets that are noted for one user.
	mostOfOne = 32
)

// Note records a user of Secrets without the annotation, as far as there is space in 256 KiB: 32 Secrets for each
// user. All others need the annotation, so note older users first.
func (f PreviousUsers) Note(user SecretUser, secrets ...metav1.Object) {
	if user.Core {
		return
	}
	bytes, count := 0, 0
	for line := range f {
		bytes += len(line) + 1
		if strings.HasSuffix(line, previousSuffix(user)) {
			count++
		}
	}
	for _, secret := range secrets {
		line := previousUser(secret, user)
		if _, annotated := secret.GetAnnotations()[v1.AnnotationUsedBy]; annotated || f[line] {
			continue
		}
		if bytes, count = bytes+len(line)+1, count+1; bytes > mostPreviousBytes || count > mostOfOne {
			return
		}
		f[line] = true
	}
}

func previousUser(secret metav1.Object, user SecretUser) string {
	return fmt.Sprintf("Secret/%s %s%s", secret.GetName(), secret.GetUID(), previousSuffix(user))
}

func previousSuffix(user SecretUser) string { return fmt.Sprintf(" %s %s", user.Name, user.UID) }

// NotAllowedError reports that a user may not use a Secret of the platform.
type NotAllowedError struct {
	// Remedy says how an admin corrects it.
	Secret, User, Remedy string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("Secret %q may not be used by %s: %s", e.Secret, e.User, e.Remedy)
}

// MayUse reports whether a user may use a Secret of the platform. The warning says how to keep it usable if it is
// allowed only because it was used before. Without the annotation, only users of type Core may use it.
func (f PreviousUsers) MayUse(secret metav1.Object, user SecretUser) (warning string, refusal error) {
	listed, annotated := secret.GetAnnotations()[v1.AnnotationUsedBy]
	switch {
	case annotated && IsUsedBy(listed, user.Name), !annotated && user.Core:
		return "", nil
	case annotated:
		return "", &NotAllowedError{
			Secret: secret.GetName(), User: user.Name, Remedy: "add " + user.Name + " to its annotation " + v1.AnnotationUsedBy,
		}
	case f[previousUser(secret, user)]:
		return fmt.Sprintf("Secret %q names no users, and %s may use it only because it did so before: annotate the Secret with %s=%s",
			secret.GetName(), user.Name, v1.AnnotationUsedBy, user.Name), nil
	}
	return "", &NotAllowedError{
		Secret: secret.GetName(), User: user.Name, Remedy: "annotate the Secret with " + v1.AnnotationUsedBy + "=" + user.Name,
	}
}

// IsUsedBy reports whether a value of annotation used-by has a name of SecretUser, or "*" for all.
func IsUsedBy(listed, name string) bool {
	for one := range strings.SplitSeq(listed, ",") {
		if one = strings.TrimSpace(one); one == "*" || one == name {
			return true
		}
	}
	return false
}
