package helmrelease

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

type driver struct {
	secrets corev1client.SecretInterface
	owner   string
	// isNew says that most likely there is no such Secret yet.
	isNew bool
	wrote bool
}

// put writes a Secret, over an earlier one if the owner has it, and returns the stored one.
func (s *driver) put(ctx context.Context, want *corev1.Secret) (*corev1.Secret, error) {
	if size := len(want.Data[dataKey]); size > corev1.MaxSecretSize { // no API server accepts it
		return nil, &CopyTooLargeError{Secret: want.Name, Size: size}
	}
	if s.isNew {
		s.isNew = false
		made, err := s.make(ctx, want)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
	}
	have, err := s.secrets.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return s.make(ctx, want)
	}
	if err != nil {
		return nil, err
	}
	if have.Labels[v1.LabelInstallation] != s.owner {
		return nil, &NameTakenError{Secret: have.Namespace + "/" + have.Name}
	}
	if sameRelease(have, want) {
		return have, nil
	}
	return s.update(ctx, have, want)
}

func (s *driver) make(ctx context.Context, want *corev1.Secret) (*corev1.Secret, error) {
	want.Labels["createdAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	made, err := s.secrets.Create(ctx, want, metav1.CreateOptions{})
	s.wrote = err == nil
	return made, err
}

func (s *driver) update(ctx context.Context, have, want *corev1.Secret) (*corev1.Secret, error) {
	want.ResourceVersion = have.ResourceVersion
	if made := have.Labels["createdAt"]; made != "" {
		want.Labels["createdAt"] = made
	}
	want.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	s.wrote = true
	return s.secrets.Update(ctx, want, metav1.UpdateOptions{})
}

// sameRelease compares bytes: the encoding of a release is always the same.
func sameRelease(have, want *corev1.Secret) bool {
	differs := func(label string) bool { return have.Labels[label] != want.Labels[label] }
	return !slices.ContainsFunc([]string{"name", "owner", "status", "version"}, differs) &&
		bytes.Equal(have.Data[dataKey], want.Data[dataKey])
}

// NameTakenError says that the user cluster has a Helm release of the name that is not ours.
type NameTakenError struct{ Secret string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the Helm release in Secret %q was not created by this installation", e.Secret)
}

// CopyTooLargeError says that a release does not fit into one Secret, so Helm can't show it.
type CopyTooLargeError struct {
	Secret string
	Size   int
}

func (e *CopyTooLargeError) Error() string {
	return fmt.Sprintf("Secret %q would have %d KiB, and at most 1024 are allowed", e.Secret, e.Size>>10)
}
