package certmanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mount is a folder that has a Secret as a kubelet's volume has it: files are links through "..data", which is put in the place of the
// old one when the Secret changes.
type mount struct {
	folder string
	times  int
	has    map[string][]byte
}

// show the Secret's present data, if it is other than before.
func (m *mount) show(data map[string][]byte) error {
	if m.has != nil && maps.EqualFunc(m.has, data, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	m.times++
	inside := fmt.Sprintf("..%d", m.times)
	if err := os.Mkdir(filepath.Join(m.folder, inside), 0o700); err != nil {
		return err
	}
	for key, content := range data {
		if err := os.WriteFile(filepath.Join(m.folder, inside, key), content, 0o600); err != nil {
			return err
		}
		err := os.Symlink(filepath.Join("..data", key), filepath.Join(m.folder, key))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	next := filepath.Join(m.folder, "..next")
	if err := os.Symlink(inside, next); err != nil {
		return err
	}
	m.has = data
	return os.Rename(next, filepath.Join(m.folder, "..data"))
}

// mounted gives the folder of a Secret that is there, and follows it until the test ends. A Secret that is gone leaves the folder as it is.
func mounted(t *testing.T, c client.Client, secret string) string {
	t.Helper()
	made := &mount{folder: t.TempDir()}
	look := func(ctx context.Context) error {
		found := &corev1.Secret{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secret}, found); err != nil {
			return client.IgnoreNotFound(err)
		}
		if len(found.Data) == 0 {
			return nil
		}
		return made.show(found.Data)
	}
	if err := look(t.Context()); err != nil || made.times == 0 {
		t.Fatalf("mounting Secret %q: %v", secret, errors.Join(errNothing, err))
	}
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ticker := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				if err := look(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("mounting Secret %q: %v", secret, err)
				}
			}
		}
	})
	t.Cleanup(func() {
		stop()
		done.Wait()
	})
	return made.folder
}

var errNothing = errors.New("it has nothing")
