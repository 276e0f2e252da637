package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Limits of a bundle, in bytes before compression. A log is read up to logRead, and its end of logKept is kept.
const (
	fileLimit  = 8 << 20
	totalLimit = 48 << 20
	logKept    = 2 << 20
	logRead    = 16 << 20
	logLines   = 20_000
	pageSize   = 200
)

// managers selects the managers' Deployments and Pods.
const managers = "app.kubernetes.io/name in (trellis-master,trellis-seed)"

var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

type file struct {
	name    string
	content []byte
}

// bundle is what was collected, and what was left out.
type bundle struct {
	*cli.Platform
	// scope is the cluster that the bundle is about; empty: all.
	scope     target.Ref
	namespace string
	files     []file
	size      int
	left      []string
}

func (b *bundle) put(name string, content []byte) {
	if len(content) == 0 {
		return
	}
	if b.size+len(content) > totalLimit {
		b.leave(name, fmt.Errorf("the bundle has %d MiB already", totalLimit>>20))
		return
	}
	b.size += len(content)
	b.files = append(b.files, file{name, content})
}

func (b *bundle) leave(name string, err error) {
	b.left = append(b.left, text.Line(name+": "+text.Message(err.Error())))
}

// part is a file of objects of one kind.
type part struct {
	file    string
	kind    schema.GroupVersionKind
	options []client.ListOption
	// keep returns what is written of an object; nil: nothing.
	keep func(*unstructured.Unstructured) map[string]any
}

func (b *bundle) parts() []part {
	ours := func(kind string) schema.GroupVersionKind { return v1.GroupVersion.WithKind(kind) }
	inScope, inPlatform := client.InNamespace(b.scope.Namespace), client.InNamespace(b.namespace)
	catalogues := []client.ListOption{inScope}
	if b.scope.Namespace == "" {
		catalogues = append(catalogues, selecting(v1.LabelRole+"!="+v1.RoleAvailable)) // there is one for each cluster
	}
	ofManagers := []client.ListOption{inPlatform, selecting(managers)}
	made := []part{
		{"addoncatalogues.yaml", ours("AddonCatalogue"), catalogues, masked},
		{"addoninstallations.yaml", ours("AddonInstallation"), []client.ListOption{inScope}, b.ofScope},
		{"addonsets.yaml", ours("AddonSet"), nil, masked},
		{"events.yaml", schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, []client.ListOption{inScope}, aboutUs},
		{"customresourcedefinitions.yaml", definitions, nil, definition},
		{"deployments.yaml", schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, ofManagers, workload},
		{"pods.yaml", corev1.SchemeGroupVersion.WithKind("Pod"), ofManagers, workload},
	}
	for _, name := range []string{v1.ConfigMapOwners, v1.ConfigMapUsage, v1.ConfigMapSourceChecks} {
		named := []client.ListOption{inPlatform, client.MatchingFields{"metadata.name": name}}
		made = append(made, part{"configmap-" + name + ".yaml", corev1.SchemeGroupVersion.WithKind("ConfigMap"), named, masked})
	}
	return made
}

// collect reads all parts and the managers' logs. What can't be read is left out.
func (b *bundle) collect(ctx context.Context) {
	for _, one := range b.parts() {
		content, err := b.list(ctx, one)
		if err != nil {
			b.leave(one.file, err)
		}
		b.put(one.file, content)
	}
	if err := b.logs(ctx); err != nil {
		b.leave("logs", err)
	}
}

// list are the objects of a part, as documents of YAML, up to the limit of a file.
func (b *bundle) list(ctx context.Context, of part) ([]byte, error) {
	var content []byte
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
	listing := cli.Listing{Into: list, Options: append(of.options, client.Limit(pageSize))}
	_, err := cli.Each(ctx, b.Platform, listing, func(one *unstructured.Unstructured) error {
		kept := of.keep(one)
		if kept == nil {
			return nil
		}
		document, err := yaml.Marshal(kept)
		if err != nil {
			return err
		}
		if len(content)+len(document) > fileLimit {
			return fmt.Errorf("objects after the first %d MiB", fileLimit>>20)
		}
		content = append(append(content, "---\n"...), document...)
		return nil
	})
	return content, err
}

// logs are the ends of the managers' logs.
func (b *bundle) logs(ctx context.Context) error {
	pods, err := corev1client.NewForConfig(b.Config)
	if err != nil {
		return err
	}
	var found corev1.PodList
	if err := b.List(ctx, &found, client.InNamespace(b.namespace), selecting(managers)); err != nil {
		return err
	}
	lines := int64(logLines)
	for _, pod := range found.Items {
		for _, container := range pod.Spec.Containers {
			name := path.Join("logs", pod.Name, container.Name+".log")
			options := &corev1.PodLogOptions{Container: container.Name, TailLines: &lines}
			from, err := pods.Pods(b.namespace).GetLogs(pod.Name, options).Stream(ctx)
			if err != nil {
				b.leave(name, err)
				continue
			}
			content, err := tail(from, logKept, logRead)
			if err == nil && len(content) == 0 {
				err = errors.New("it is empty")
			}
			if err := errors.Join(err, from.Close()); err != nil {
				b.leave(name, err)
			}
			b.put(name, login.ReplaceAll(content, []byte("//"+mask+"@")))
		}
	}
	return nil
}

// tail is the end of a stream, of which it reads no more than a limit, from the beginning of a line.
func tail(from io.Reader, kept, read int) ([]byte, error) {
	end, err := io.ReadAll(io.LimitReader(from, int64(read)))
	if len(end) > kept {
		end = end[len(end)-kept:]
		end = end[bytes.IndexByte(end, '\n')+1:]
	}
	return end, err
}

// write writes the bundle, contents.txt first.
func (b *bundle) write(to io.Writer, now time.Time) error {
	var contents bytes.Buffer
	fmt.Fprintln(&contents, "Files in this bundle, with sizes in bytes. Values are replaced by \"***\", and Secrets are not read:")
	for _, one := range b.files {
		fmt.Fprintf(&contents, "  %s %d\n", one.name, len(one.content))
	}
	fmt.Fprintln(&contents, "Left out:")
	for _, left := range b.left {
		fmt.Fprintf(&contents, "  %s\n", left)
	}
	packed := gzip.NewWriter(to)
	archive := tar.NewWriter(packed)
	for _, one := range append([]file{{"contents.txt", contents.Bytes()}}, b.files...) {
		header := &tar.Header{Name: "trellis-support/" + one.name, Mode: 0o600, Size: int64(len(one.content)), ModTime: now}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(one.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}
