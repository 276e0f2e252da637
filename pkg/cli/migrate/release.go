package migrate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
)

// Limits of Helm releases: stored revisions whose metadata is read, and in one answer, and the size of one, unpacked, in bytes.
const (
	mostRevisions = 5000
	revisionsPage = 100
	releaseLimit  = 64 << 20
)

// helmSecret is the type of Helm's Secrets, and helmKey the key with the release.
const (
	helmSecret = "helm.sh/release.v1"
	helmKey    = "release"
)

// stored are the fields that are read of a release as Helm stores it.
type stored struct {
	Name, Namespace string
	Version         int
	Info            struct{ Status string }
	Chart           struct {
		Metadata struct{ Name, Version string }
	}
	Config json.RawMessage
}

// newest is the Secret of a release's newest revision.
type newest struct {
	key      client.ObjectKey
	revision int
	isOurs   bool
}

// releases adds the Helm releases of the user cluster that belong to no object of another tool and no installation. It holds
// one Secret at a time: a user may store thousands of 1 MiB.
func (p *plan) releases(ctx context.Context, user *cli.Platform) error {
	found, err := p.revisions(ctx, user)
	if err != nil {
		return fmt.Errorf("reading Helm releases: %w", err)
	}
	for _, item := range p.items {
		delete(found, item.namespace+"/"+item.release)
	}
	maps.DeleteFunc(found, func(_ string, one newest) bool { return one.isOurs })
	keys := slices.Sorted(maps.Keys(found))
	if len(keys) > mostObjects {
		p.notes = append(p.notes, fmt.Sprintf("only the first %d of %d Helm releases were read", mostObjects, len(keys)))
		keys = keys[:mostObjects]
	}
	for _, key := range keys {
		secret := &corev1.Secret{}
		if err := user.Get(ctx, found[key].key, secret); err != nil {
			return fmt.Errorf("reading Helm release %q: %w", key, err)
		}
		p.items = append(p.items, released(secret))
	}
	return nil
}

// revisions are the newest revisions of releases by namespace/name.
func (p *plan) revisions(ctx context.Context, user *cli.Platform) (map[string]newest, error) {
	found, list := map[string]newest{}, &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	listing := cli.Listing{Into: list, Most: mostRevisions, Options: []client.ListOption{
		client.MatchingLabels{"owner": "helm"}, client.MatchingFields{"type": helmSecret}, client.Limit(revisionsPage),
	}}
	isCut, err := cli.Each(ctx, user, listing, func(one *metav1.PartialObjectMetadata) error {
		name, at := one.Namespace+"/"+one.Labels["name"], revision(one)
		if before, isKnown := found[name]; !isKnown || before.revision < at {
			found[name] = newest{client.ObjectKeyFromObject(one), at, one.Labels[v1.LabelInstallation] != ""}
		}
		return nil
	})
	if isCut {
		p.notes = append(p.notes, fmt.Sprintf("only the first %d revisions of Helm releases were read", mostRevisions))
	}
	return found, err
}

func revision(of client.Object) int {
	found, _ := strconv.Atoi(of.GetLabels()["version"])
	return found
}

// released is the item of a Helm release.
func released(secret *corev1.Secret) *item {
	name := secret.Labels["name"]
	made := &item{tool: helm, name: name, release: name, namespace: secret.Namespace}
	made.from = fmt.Sprintf("%s %s/%s", helm, secret.Namespace, name)
	read, err := unpack(secret.Data[helmKey])
	switch {
	case err != nil:
		made.fails("Secret %q is not a Helm release, or unpacks to more than %d MiB", secret.Name, releaseLimit>>20)
	case read.Name != name || read.Namespace != secret.Namespace || read.Version != revision(secret):
		made.fails("the content of Secret %q belongs to a different release than its name says", secret.Name)
	default:
		made.addon, made.version = read.Chart.Metadata.Name, read.Chart.Metadata.Version
		if len(read.Config) > 0 && string(read.Config) != "null" {
			made.decode(read.Config, nil)
		}
		if read.Info.Status != "deployed" {
			made.fails("its newest revision %d is %q: finish it, or roll it back with helm, first", read.Version, read.Info.Status)
		}
	}
	return made
}

// unpack reads a release as Helm stores it: base64 of gzip of JSON.
func unpack(data []byte) (*stored, error) {
	plain, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	read := &stored{}
	return read, json.NewDecoder(io.LimitReader(plain, releaseLimit)).Decode(read)
}
