package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// helmUnpackedLimit bounds what a release in a user cluster may become. A Secret holds 1 MiB, a gzip bomb 1000 times that.
const helmUnpackedLimit = 32 << 20

// shelf is what Helm's driver writes to: the Secrets of one namespace, with a context of ours instead of the driver's
// endless one, and without a write where nothing differs.
type shelf struct {
	corev1client.SecretInterface
	ctx   context.Context
	owner string
	wrote bool
}

// Create implements SecretInterface for the driver: it writes the Secret, over an earlier one if that is ours.
func (s *shelf) Create(_ context.Context, want *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
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

// decodeHelm reads a release as Helm writes it, base64 of gzip of JSON, with a bound.
func decodeHelm(data []byte) (*helmrelease.Release, error) {
	packed := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data))
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpacking a Helm release: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(unpacked, helmUnpackedLimit+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking a Helm release: %w", err)
	}
	if len(plain) > helmUnpackedLimit {
		return nil, &HelmTooLargeError{}
	}
	var rel helmrelease.Release
	if err := json.Unmarshal(plain, &rel); err != nil {
		return nil, fmt.Errorf("decoding a Helm release: %w", err)
	}
	return &rel, nil
}

// HelmTooLargeError says that a release in a user cluster unpacks to more than is read.
type HelmTooLargeError struct{}

// Error implements error.
func (e *HelmTooLargeError) Error() string {
	return fmt.Sprintf("the Helm release unpacks to more than %d MiB", helmUnpackedLimit>>20)
}
