package pod

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/pod/entry"
)

// Image is one that was pulled and unpacked.
type Image struct {
	// Folder has its files.
	Folder string
	// Entrypoint is the program by its path within, and User whom it runs as.
	Entrypoint string
	User       int64
}

var (
	errEntrypoint = errors.New("it has to have one program as its entrypoint, and a user by number")
	errFile       = errors.New("it is neither a folder nor a file")
)

// Pull unpacks the image of a container for this machine, with the logins of the pod's pull Secrets and of nobody else.
func (n *Node) Pull(ctx context.Context, container Container, transport http.RoundTripper) (*Image, error) {
	pulled, err := n.pull(ctx, container, transport)
	if err != nil {
		return nil, fmt.Errorf("pulling %q for pod %q in namespace %q of cluster %q: %w",
			container.Spec.Containers[0].Image, container.Name, container.Namespace, n.Cluster.Name, err)
	}
	return pulled, nil
}

func (n *Node) pull(ctx context.Context, container Container, transport http.RoundTripper) (*Image, error) {
	named, err := name.ParseReference(container.Spec.Containers[0].Image)
	if err != nil {
		return nil, err
	}
	login, err := n.login(ctx, container, named.Context().RegistryStr())
	if err != nil {
		return nil, err
	}
	found, err := remote.Image(named, remote.WithContext(ctx), remote.WithTransport(transport), remote.WithAuth(login),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return nil, err
	}
	config, err := found.ConfigFile()
	if err != nil {
		return nil, err
	}
	user, _, _ := strings.Cut(config.Config.User, ":")
	number, err := strconv.ParseInt(user, 10, 64)
	if err != nil || len(config.Config.Entrypoint) != 1 {
		return nil, errEntrypoint
	}
	pulled := &Image{Folder: filepath.Join(n.folderOf(container), "image"), Entrypoint: config.Config.Entrypoint[0], User: number}
	return pulled, unpack(found, pulled.Folder)
}

// login is that of a registry among the pull Secrets of the pod, which admission takes from its account where it names none; anonymous
// where there is none.
func (n *Node) login(ctx context.Context, container Container, registry string) (authn.Authenticator, error) {
	named := container.Spec.ImagePullSecrets
	if len(named) == 0 {
		account := &corev1.ServiceAccount{}
		key := client.ObjectKey{Namespace: container.Namespace, Name: container.Spec.ServiceAccountName}
		if err := n.Client.Get(ctx, key, account); err != nil {
			return nil, err
		}
		named = account.ImagePullSecrets
	}
	for _, of := range named {
		secret := &corev1.Secret{}
		if err := n.Client.Get(ctx, client.ObjectKey{Namespace: container.Namespace, Name: of.Name}, secret); err != nil {
			return nil, err
		}
		var config struct {
			Auths map[string]authn.AuthConfig `json:"auths"`
		}
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
			return nil, fmt.Errorf("reading pull Secret %q: %w", of.Name, err)
		}
		if login, is := config.Auths[registry]; is {
			return authn.FromConfig(login), nil
		}
	}
	return authn.Anonymous, nil
}

func unpack(image v1.Image, into string) error {
	content := mutate.Extract(image)
	defer content.Close()
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at := filepath.Join(into, path.Clean("/"+header.Name))
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(at, 0o755)
		case tar.TypeReg:
			err = write(at, files, fs.FileMode(header.Mode))
		default:
			err = errFile
		}
		if err != nil {
			return fmt.Errorf("unpacking %q: %w", header.Name, err)
		}
	}
}

func write(at string, content io.Reader, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// mounts are the image's files, each at its place: folders of volumes may lie beside them.
func (i *Image) mounts() (made []entry.Mount, err error) {
	err = filepath.WalkDir(i.Folder, func(at string, found fs.DirEntry, err error) error {
		if err == nil && !found.IsDir() {
			made = append(made, entry.Mount{From: at, To: strings.TrimPrefix(at, i.Folder)})
		}
		return err
	})
	return made, err
}
