package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/fleet"
)

const (
	// accountFolder is where every container finds who it is.
	accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenLife is how long the token of an account lasts: nothing renews it, and a sandbox may stay for days.
	tokenLife = 30 * 24 * time.Hour
	// lookEvery is how often volumes are compared with what they are made of. A kubelet takes a minute.
	lookEvery = 200 * time.Millisecond
)

// volume of a container.
type volume struct {
	// at is where it is mounted, folder where it is on this machine.
	at, folder string
	isWritable bool
	// read gives the files that it is made of; nil: it is the container's own, or stays as it is.
	read func(context.Context) (map[string][]byte, error)
	// has are the files that it shows.
	has map[string][]byte
}

// layOut makes the volumes of a container.
func (n *Node) layOut(ctx context.Context, container Container) ([]volume, error) {
	made, err := n.account(ctx, container)
	if err != nil {
		return nil, err
	}
	for _, mount := range container.Spec.Containers[0].VolumeMounts {
		of := slices.IndexFunc(container.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if of < 0 || mount.SubPath+mount.SubPathExpr != "" {
			return nil, fmt.Errorf("mount %q is of no volume, or of a part of one", mount.MountPath)
		}
		one := volume{at: mount.MountPath, folder: filepath.Join(n.folderOf(container), mount.Name), isWritable: !mount.ReadOnly}
		if one.read, err = n.source(container, &container.Spec.Volumes[of]); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(one.folder, 0o700); err != nil {
			return nil, err
		}
		if err := one.look(ctx); err != nil {
			return nil, fmt.Errorf("volume %q: %w", mount.Name, err)
		}
		made = append(made, one)
	}
	return made, nil
}

// account is the volume that every pod has whose account's token is not kept from it.
func (n *Node) account(ctx context.Context, container Container) ([]volume, error) {
	if automount := container.Spec.AutomountServiceAccountToken; automount != nil && !*automount {
		return nil, nil
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: container.Namespace, Name: container.Spec.ServiceAccountName}}
	if err := n.Client.SubResource("token").Create(ctx, of, token); err != nil {
		return nil, fmt.Errorf("asking for a token of %q: %w", of.Name, err)
	}
	one := volume{at: accountFolder, folder: filepath.Join(n.folderOf(container), "account")}
	if err := os.MkdirAll(one.folder, 0o700); err != nil {
		return nil, err
	}
	return []volume{one}, one.show(map[string][]byte{
		"token": []byte(token.Status.Token), "ca.crt": n.Cluster.Config.CAData, "namespace": []byte(container.Namespace),
	})
}

// kubeconfig writes one with the token of an account beside its volume, for a plain process, and gives its path.
func (n *Node) kubeconfig(account volume) (string, error) {
	content, err := n.Cluster.KubeconfigFor(string(account.has["token"]))
	if err != nil {
		return "", err
	}
	path := account.folder + ".yaml"
	return path, os.WriteFile(path, content, 0o600)
}

// source gives what a volume is made of; nil for an empty one.
func (n *Node) source(container Container, of *corev1.Volume) (func(context.Context) (map[string][]byte, error), error) {
	switch {
	case of.EmptyDir != nil:
		return nil, nil
	case of.Secret != nil && len(of.Secret.Items) == 0 && of.Secret.Optional == nil:
		return func(ctx context.Context) (map[string][]byte, error) {
			found := &corev1.Secret{}
			err := n.Client.Get(ctx, client.ObjectKey{Namespace: container.Namespace, Name: of.Secret.SecretName}, found)
			return found.Data, err
		}, nil
	case of.ConfigMap != nil && of.ConfigMap.Optional == nil:
		return func(ctx context.Context) (map[string][]byte, error) {
			found := &corev1.ConfigMap{}
			if err := n.Client.Get(ctx, client.ObjectKey{Namespace: container.Namespace, Name: of.ConfigMap.Name}, found); err != nil {
				return nil, err
			}
			return itemsOf(found, of.ConfigMap.Items)
		}, nil
	}
	return nil, fmt.Errorf("volume %q is of a kind that no pod here has", of.Name)
}

// itemsOf are the files of a ConfigMap: all of its texts, or some of them under names of the volume.
func itemsOf(from *corev1.ConfigMap, items []corev1.KeyToPath) (map[string][]byte, error) {
	files := map[string][]byte{}
	if len(items) == 0 {
		for key, content := range from.Data {
			files[key] = []byte(content)
		}
		return files, nil
	}
	for _, item := range items {
		content, isThere := from.Data[item.Key]
		if !isThere || strings.Contains(item.Path, "/") {
			return nil, fmt.Errorf("ConfigMap %q has no key %q, or it is wanted in a folder, which no volume here has", from.Name, item.Key)
		}
		files[item.Path] = []byte(content)
	}
	return files, nil
}

// look shows what the volume is made of now.
func (v *volume) look(ctx context.Context) error {
	if v.read == nil {
		return nil
	}
	files, err := v.read(ctx)
	if err != nil {
		return err
	}
	if files == nil {
		files = map[string][]byte{} // that is shown too, once
	}
	return v.show(files)
}

// show has a volume hold files, as a kubelet has it: they are links through "..data", which is put in the place of the old one.
func (v *volume) show(files map[string][]byte) error {
	if v.has != nil && maps.EqualFunc(v.has, files, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	inside, err := os.MkdirTemp(v.folder, "..")
	if err != nil {
		return err
	}
	for key, content := range files {
		if err := os.WriteFile(filepath.Join(inside, key), content, 0o600); err != nil {
			return err
		}
		err := os.Symlink(filepath.Join("..data", key), filepath.Join(v.folder, key))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	next, data := filepath.Join(v.folder, "..next"), filepath.Join(v.folder, "..data")
	_ = os.Remove(next) // of one that was ended in the middle
	if err := os.Symlink(filepath.Base(inside), next); err != nil {
		return err
	}
	old, _ := os.Readlink(data) // there is none at first
	if err := os.Rename(next, data); err != nil {
		return err
	}
	for key := range v.has {
		if _, stays := files[key]; !stays {
			_ = os.Remove(filepath.Join(v.folder, key)) // it leads nowhere
		}
	}
	v.has = files
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(v.folder, old))
}

// follow has volumes hold what they are made of until a process ends. What is gone, or can't be read at the moment, stays as it is.
func (n *Node) follow(process *fleet.Process, volumes []volume) {
	volumes = slices.DeleteFunc(volumes, func(v volume) bool { return v.read == nil })
	if len(volumes) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-process.Done()
		stop()
	}()
	n.following.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				for at := range volumes {
					_ = volumes[at].look(ctx)
				}
			}
		}
	})
}

// Wait returns when no volume is followed any more: all containers have ended, and nothing is written to the Folder.
func (n *Node) Wait() { n.following.Wait() }
