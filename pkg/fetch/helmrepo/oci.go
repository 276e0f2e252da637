package helmrepo

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Media types of charts, from Helm's specification.
const (
	chartConfig  = "application/vnd.cncf.helm.config.v1+json"
	chartContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

const ociScheme = "oci://"

func (l Location) isOCI() bool { return strings.HasPrefix(l.URL, ociScheme) }

func artifact(location Location) (registry.Reference, error) {
	refused := func(rule string) (registry.Reference, error) {
		return registry.Reference{}, &fetch.RefusedError{Subject: "the Helm repository", Rule: rule}
	}
	if err := checkChart(location); err != nil {
		return registry.Reference{}, err
	}
	at, err := url.Parse(location.URL)
	switch {
	case err != nil || at.Host == "" || at.Opaque != "":
		return refused("its URL can't be parsed")
	case at.User != nil:
		return refused("the URL holds a user or password; put them into the Secret of secretRef")
	case at.RawQuery != "" || at.ForceQuery || at.Fragment != "" || strings.ContainsAny(at.Path, ":@"):
		return refused("the URL has a query, a fragment, a tag or a digest")
	}
	path := strings.Trim(at.Path, "/")
	if path != "" {
		path += "/"
	}
	found, err := registry.Parse(at.Host + "/" + path + location.Chart + ":" + strings.ReplaceAll(string(location.Version), "+", "_"))
	if err != nil {
		return registry.Reference{}, err
	}
	if !strings.EqualFold(found.Repository.Host, at.Host) && at.Host != "docker.io" {
		return refused("its host has neither a dot nor a port, and would be read as a part of the name")
	}
	return found, nil
}

func (s *Source) resolveOCI(ctx context.Context, location Location, credentials fetch.Credentials) (fetch.Revision, error) {
	place, err := artifact(location)
	if err != nil {
		return fetch.Revision{}, err
	}
	session, err := registry.Open(s.network, place.Repository, credentials)
	if err != nil {
		return fetch.Revision{}, err
	}
	manifest, err := session.Manifest(ctx, place.Tag)
	if err != nil {
		return fetch.Revision{}, err
	}
	archive, rule := chartLayer(manifest)
	if rule != "" {
		return fetch.Revision{}, inChart(&fetch.RefusedError{Subject: place.Repository.String(), Rule: rule}, location)
	}
	return fetch.Revision{Name: string(location.Version), Digest: archive.Digest.String()}, nil
}

func chartLayer(manifest *registry.Manifest) (v1.Descriptor, string) {
	if manifest.Image == nil {
		return v1.Descriptor{}, "it is an index, not a chart"
	}
	if string(manifest.Image.Config.MediaType) != chartConfig {
		return v1.Descriptor{}, "it is an image or another artifact, not a chart"
	}
	var found []v1.Descriptor
	for _, layer := range manifest.Image.Layers {
		if string(layer.MediaType) == chartContent {
			found = append(found, layer) // others are its provenance and additions of registries
		}
	}
	switch {
	case len(found) != 1:
		return v1.Descriptor{}, "it has no archive of a chart, or more than one"
	case len(found[0].URLs) > 0:
		return v1.Descriptor{}, "its archive is at another address"
	case !registry.IsDigest(found[0].Digest.String()):
		return v1.Descriptor{}, "the digest of its archive is not a SHA-256"
	}
	return found[0], ""
}

var errNoDigest = errors.New("the digest of the chart in the registry is unknown, so the chart can't be downloaded")

// fromRegistry downloads the archive with the digest from Resolve.
func (s *Source) fromRegistry(
	ctx context.Context, location Location, reference fetch.Reference, revision fetch.Revision, file io.Writer,
) (string, error) {
	place, err := artifact(location)
	if err != nil {
		return "", err
	}
	if revision.Digest == "" {
		return "", errNoDigest
	}
	session, err := registry.Open(s.network, place.Repository, reference.Credentials)
	if err != nil {
		return "", err
	}
	return revision.Digest, session.Blob(ctx, revision.Digest, archiveLimit, file)
}
