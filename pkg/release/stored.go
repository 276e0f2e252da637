package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// helmUnpackedLimit bounds what a release in a user cluster may become. A Secret holds 1 MiB, a gzip bomb 1000 times that.
const helmUnpackedLimit = 16 << 20

// decoding lets one release be unpacked at a time: each may take some tens of MiB, and anybody's user cluster can have many.
var decoding sync.Mutex

// storedHelm is a release as Helm stores it (pkg/release of Helm), with the parts that are not looked at as they are: a small
// text decodes to far larger maps.
type storedHelm struct {
	Name      string          `json:"name,omitempty"`
	Info      json.RawMessage `json:"info,omitempty"`
	Chart     json.RawMessage `json:"chart,omitempty"`
	Config    json.RawMessage `json:"config,omitempty"`
	Manifest  string          `json:"manifest,omitempty"`
	Hooks     json.RawMessage `json:"hooks,omitempty"`
	Version   int             `json:"version,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
}

// storedInfo is what Helm says about a release, but for the resources, which it stores nowhere.
type storedInfo struct {
	FirstDeployed helmtime.Time      `json:"first_deployed"`
	LastDeployed  helmtime.Time      `json:"last_deployed"`
	Deleted       helmtime.Time      `json:"deleted"`
	Description   string             `json:"description,omitempty"`
	Status        helmrelease.Status `json:"status,omitempty"`
	Notes         string             `json:"notes,omitempty"`
}

// decodeHelm reads a release as Helm writes it, base64 of gzip of JSON, with a bound.
func decodeHelm(data []byte) (*storedHelm, error) {
	decoding.Lock()
	defer decoding.Unlock()
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
	var stored storedHelm
	if err := json.Unmarshal(plain, &stored); err != nil {
		return nil, fmt.Errorf("decoding a Helm release: %w", err)
	}
	return &stored, nil
}

func (s *storedHelm) info() (info storedInfo, err error) {
	err = json.Unmarshal(s.Info, &info)
	return info, err
}

// superseded is the Secret of the release when a later one has taken its place; all else of it stays as it was stored.
func (s *storedHelm) superseded(owner string) (*corev1.Secret, error) {
	info, err := s.info()
	if err != nil {
		return nil, fmt.Errorf("decoding a Helm release: %w", err)
	}
	info.Status = helmrelease.StatusSuperseded
	if s.Info, err = json.Marshal(info); err != nil {
		return nil, fmt.Errorf("encoding a Helm release: %w", err)
	}
	plain, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding a Helm release: %w", err)
	}
	var packed bytes.Buffer
	packer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression) // as helm packs it: it fits again
	if err != nil {
		return nil, fmt.Errorf("packing a Helm release: %w", err)
	}
	if _, err := packer.Write(plain); err != nil {
		return nil, fmt.Errorf("packing a Helm release: %w", err)
	}
	if err := packer.Close(); err != nil {
		return nil, fmt.Errorf("packing a Helm release: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(helmKeyFormat, s.Name, s.Version), Labels: map[string]string{
			"owner": "helm", "name": s.Name, "status": info.Status.String(), "version": strconv.Itoa(s.Version),
			v1.LabelInstallation: owner,
		}},
		Type: helmSecretType,
		Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}, nil
}

// HelmTooLargeError says that a release in a user cluster unpacks to more than is read.
type HelmTooLargeError struct{}

// Error implements error.
func (e *HelmTooLargeError) Error() string {
	return fmt.Sprintf("the Helm release unpacks to more than %d MiB", helmUnpackedLimit>>20)
}
