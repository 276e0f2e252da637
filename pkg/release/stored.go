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

// helmPackers are kept, since each holds more than a megabyte. Releases are packed as helm packs them, so what fitted fits again.
var helmPackers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // the level is a constant: it does not fail
	return packer
}}

// helmSecret is the Secret that shows a revision of a Helm release, given as JSON, by the names and labels of Helm's Secrets driver
// (pkg/storage/driver of Helm).
func helmSecret(name string, revision int, status helmrelease.Status, owner string, release []byte) (*corev1.Secret, error) {
	packed, err := packRelease(release)
	if err != nil {
		return nil, fmt.Errorf("packing revision %d of Helm release %q: %w", revision, name, err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(helmKeyFormat, name, revision), Labels: map[string]string{
			"owner": "helm", "name": name, "status": status.String(), "version": strconv.Itoa(revision), v1.LabelInstallation: owner,
		}},
		Type: helmSecretType,
		Data: map[string][]byte{helmKey: packed},
	}, nil
}

// packRelease is base64 of gzip.
func packRelease(plain []byte) ([]byte, error) {
	var packed bytes.Buffer
	packer := helmPackers.Get().(*gzip.Writer)
	defer helmPackers.Put(packer)
	packer.Reset(&packed)
	if _, err := packer.Write(plain); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), nil
}

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

// superseded is the Secret of the release when a later one has taken its place; all else of it stays as it was stored. Like decoding,
// it is done for one release at a time.
func (s *storedHelm) superseded(owner string) (*corev1.Secret, error) {
	decoding.Lock()
	defer decoding.Unlock()
	info, err := s.info()
	if err != nil {
		return nil, fmt.Errorf("decoding a Helm release: %w", err)
	}
	info.Status = helmrelease.StatusSuperseded
	if s.Info, err = json.Marshal(info); err != nil {
		return nil, fmt.Errorf("encoding a Helm release: %w", err)
	}
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false) // each "<" would become six bytes
	if err := encoder.Encode(s); err != nil {
		return nil, fmt.Errorf("encoding a Helm release: %w", err)
	}
	return helmSecret(s.Name, s.Version, info.Status, owner, plain.Bytes())
}

// HelmTooLargeError says that a release in a user cluster unpacks to more than is read.
type HelmTooLargeError struct{}

// Error implements error.
func (e *HelmTooLargeError) Error() string {
	return fmt.Sprintf("the Helm release unpacks to more than %d MiB", helmUnpackedLimit>>20)
}
