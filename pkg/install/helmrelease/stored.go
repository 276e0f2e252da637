package helmrelease

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// packers are reused: each takes more than a megabyte. They pack as helm does, for the same size.
var packers = sync.Pool{New: func() any {
	packer, _ := gzip.NewWriterLevel(nil, gzip.BestCompression) // the level is a constant: it does not fail
	return packer
}}

// secretFor has the name and labels of Helm's Secrets driver (pkg/storage/driver of Helm).
func secretFor(name string, revision int, status helm.Status, owner string, packed []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf(nameFormat, name, revision), Labels: map[string]string{
			"owner": "helm", "name": name, "status": status.String(), "version": strconv.Itoa(revision), v1.LabelInstallation: owner,
		}},
		Type: secretType,
		Data: map[string][]byte{dataKey: packed},
	}
}

func packRelease(plain []byte) ([]byte, error) {
	var packed bytes.Buffer
	packer := packers.Get().(*gzip.Writer)
	defer packers.Put(packer)
	packer.Reset(&packed)
	if _, err := packer.Write(plain); err != nil {
		return nil, err
	}
	if err := packer.Close(); err != nil {
		return nil, err
	}
	return base64.StdEncoding.AppendEncode(nil, packed.Bytes()), nil
}

// storedRelease are the fields that are read of a release as Helm stores it (pkg/release of Helm).
type storedRelease struct {
	Name, Namespace string
	Version         int
	Info            storedInfo
	Objects, Hooks  []ownership.Entry
	Unread          int
}

type storedInfo struct {
	FirstDeployed helmtime.Time `json:"first_deployed"`
	LastDeployed  helmtime.Time `json:"last_deployed"`
	Deleted       helmtime.Time `json:"deleted"`
	Description   string        `json:"description,omitempty"`
	Status        helm.Status   `json:"status,omitempty"`
	Notes         string        `json:"notes,omitempty"`
}

// decode reads a release as Helm writes it, base64 of gzip of JSON, within limits.
func decode(ctx context.Context, data []byte) (*storedRelease, error) {
	if err := unpacking.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer unpacking.Release(1)
	walk, err := open(ctx, data, unpackedLimit)
	if err != nil {
		return nil, err
	}
	var stored storedRelease
	objects, hooks := newManifest(), newManifest()
	err = walk.members(func(key string) error {
		switch key {
		case "manifest":
			defer objects.end()
			return walk.text(objects)
		case "hooks":
			return walk.elements('[', ']', func() error { return walk.hook(hooks) })
		case "info":
			text, err := walk.capture(walk.value)
			if json.Unmarshal(text, &stored.Info) != nil {
				stored.Info = storedInfo{} // only users read it; we need just a time
			}
			return err
		}
		return walk.about(key, &stored)
	})
	if err == nil && (objects.isTooLarge() || hooks.isTooLarge()) {
		err = &noReleaseError{"it names more objects than the limit"}
	}
	if err != nil {
		return nil, fmt.Errorf("reading a Helm release: %w", err)
	}
	stored.Objects, stored.Hooks, stored.Unread = objects.objects, hooks.objects, objects.unread+hooks.unread
	return &stored, nil
}

func (w *walker) hook(objects *manifest) error {
	return w.members(func(key string) error {
		if key != "manifest" {
			return w.value()
		}
		defer objects.end()
		return w.text(objects)
	})
}

// about reads the members that identify the release, and skips all others.
func (w *walker) about(key string, stored *storedRelease) error {
	into, ok := map[string]any{
		"name": &stored.Name, "namespace": &stored.Namespace, "version": &stored.Version, "info": &stored.Info,
	}[key]
	if !ok {
		return w.value()
	}
	text, err := w.capture(w.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// superseded is a release's Secret with that status; the rest stays byte for byte.
func superseded(ctx context.Context, data []byte, owner string) (*storedRelease, *corev1.Secret, error) {
	if err := unpacking.Acquire(ctx, 1); err != nil {
		return nil, nil, err
	}
	defer unpacking.Release(1)
	walk, err := open(ctx, data, rewrittenLimit)
	if err != nil {
		return nil, nil, err
	}
	var packed bytes.Buffer
	var stored storedRelease
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	packer := packers.Get().(*gzip.Writer)
	defer packers.Put(packer)
	packer.Reset(encoder)
	walk.out = packer
	err = walk.members(func(key string) error {
		if key != "info" {
			return walk.about(key, &stored)
		}
		walk.out = nil
		err := walk.about(key, &stored)
		walk.out = packer
		if err != nil {
			return err
		}
		stored.Info.Status = helm.StatusSuperseded
		info := json.NewEncoder(packer)
		info.SetEscapeHTML(false) // each "<" would become six bytes
		return info.Encode(stored.Info)
	})
	if err = errors.Join(err, packer.Close(), encoder.Close()); err != nil {
		return nil, nil, fmt.Errorf("superseding a Helm release: %w", err)
	}
	return &stored, secretFor(stored.Name, stored.Version, helm.StatusSuperseded, owner, packed.Bytes()), nil
}
