package release

import (
	"bytes"
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// shelf is what Helm's driver writes to: the Secrets of one namespace, with a context of ours instead of the driver's
// endless one, and without a write where nothing differs.
type shelf struct {
	corev1client.SecretInterface
	ctx   context.Context
	owner string
	wrote bool
	// version is the resource version of the Secret that was looked at or written last.
	version string
}

// Create implements SecretInterface for the driver: it writes the Secret, over an earlier one if that is ours.
func (s *shelf) Create(_ context.Context, want *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	if size := len(want.Data["release"]); size > corev1.MaxSecretSize { // no API server takes it
		return nil, &HelmCopyTooLargeError{Secret: want.Name, Size: size}
	}
	stored, err := s.store(want)
	if err == nil {
		s.version = stored.ResourceVersion
	}
	return stored, err
}

func (s *shelf) store(want *corev1.Secret) (*corev1.Secret, error) {
	have, err := s.Get(s.ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.wrote = true
		return s.SecretInterface.Create(s.ctx, want, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if have.Labels[v1.LabelInstallation] != s.owner {
		return nil, &HelmNameTakenError{Secret: have.Namespace + "/" + have.Name}
	}
	if sameRelease(have, want) {
		return have, nil
	}
	return s.update(have, want)
}

func (s *shelf) update(have, want *corev1.Secret) (*corev1.Secret, error) {
	want.ResourceVersion = have.ResourceVersion
	if made := have.Labels["createdAt"]; made != "" {
		want.Labels["createdAt"] = made
	}
	want.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	s.wrote = true
	return s.SecretInterface.Update(s.ctx, want, metav1.UpdateOptions{})
}

// sameRelease compares bytes: Helm's encoding of a release is always the same, so nothing needs to be decoded.
func sameRelease(have, want *corev1.Secret) bool {
	for _, label := range []string{"name", "owner", "status", "version"} {
		if have.Labels[label] != want.Labels[label] {
			return false
		}
	}
	return bytes.Equal(have.Data["release"], want.Data["release"])
}
