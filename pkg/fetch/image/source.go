package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/registry"
)

// Source is the fetch.Kind of folders in container images.
type Source struct {
	network *outbound.Network
	limits  archive.Limits
}

// New creates a Source whose requests go through the network.
func New(network *outbound.Network) *Source {
	return &Source{network: network, limits: archive.Defaults}
}

// Resolve returns the reference's digest, with one to three requests unless it names a digest.
func (s *Source) Resolve(ctx context.Context, reference fetch.Reference) (fetch.Revision, error) {
	_, named, err := s.check(reference)
	if err != nil {
		return fetch.Revision{}, err
	}
	if named.Digest != "" {
		return fetch.Revision{Name: named.Digest}, nil
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	session, err := registry.Open(s.network, named.Repository, reference.Credentials)
	if err != nil {
		return fetch.Revision{}, err
	}
	manifest, err := session.Manifest(ctx, named.Tag)
	if err != nil {
		return fetch.Revision{}, err
	}
	return fetch.Revision{Name: manifest.Digest}, nil
}

// check refuses a reference before anything is sent.
func (s *Source) check(reference fetch.Reference) (Location, registry.Reference, error) {
	location, ok := reference.Location.(Location)
	if !ok {
		return Location{}, registry.Reference{}, errors.New("not an image reference")
	}
	if _, err := archive.CleanPath(location.Path); err != nil {
		return Location{}, registry.Reference{}, err
	}
	named, err := registry.Parse(string(location.Image))
	return location, named, err
}

// Fetch unpacks the content below the reference's path in the image of that digest.
func (s *Source) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	location, named, err := s.check(reference)
	if err != nil {
		return "", err
	}
	if !registry.IsDigest(revision.Name) {
		return "", fmt.Errorf("revision %q is not a digest", revision.Name)
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	session, err := registry.Open(s.network, named.Repository, reference.Credentials)
	if err != nil {
		return "", err
	}
	about := fmt.Sprintf("image %s@%s", named.Repository, revision.Name)
	layers, err := findLayers(ctx, session, revision.Name, about)
	if err != nil {
		return "", err
	}
	return s.unpack(ctx, session, layers, job{about: about, path: location.Path, folder: folder})
}

type job struct {
	about        string
	path, folder string
}

func (s *Source) unpack(ctx context.Context, session *registry.Session, layers []v1.Descriptor, job job) (string, error) {
	below, err := archive.CleanPath(job.path)
	if err != nil {
		return "", err
	}
	into, err := archive.OpenFolder(ctx, job.folder, s.limits)
	if err != nil {
		return "", err
	}
	defer into.Close()
	stack := newStack(into, below, s.limits.Entries)
	for _, layer := range slices.Backward(layers) {
		if err := addLayer(ctx, session, layer, stack, job.folder); err != nil {
			return "", inImage(err, job.about)
		}
	}
	if !stack.found {
		return "", &fetch.NotFoundError{What: fmt.Sprintf("path %q in %s", below, job.about)}
	}
	return into.Digest(), nil
}

func inImage(err error, about string) error {
	if refusal, ok := errors.AsType[*fetch.RefusedError](err); ok {
		return &fetch.RefusedError{Subject: about + ": " + refusal.Subject, Rule: refusal.Rule}
	}
	return err
}

// Location is a folder in a container image.
type Location struct {
	Image Name
	// Path is the folder, slash-separated, relative; "" is the root.
	Path string
}

// Name of an image is host/name:tag, host/name@sha256:…, or both.
type Name string

// Place is the image without tag and digest, which select a revision.
func (n Name) Place() string { return registry.WithoutRevision(string(n)) }

// dockerHub is the host of images whose reference names none.
const dockerHub = "index.docker.io"

// Name implements fetch.Kind.
func (*Source) Name() string { return "image" }

// Locate implements fetch.Kind.
func (*Source) Locate(kind kubermaticv1.SourceKind) (Location, bool) {
	source, ok := kind.(*kubermaticv1.ImageSource)
	if !ok {
		return Location{}, false
	}
	return Location{Image: Name(source.Image), Path: source.Path}, true
}

// SecretKeys implements fetch.Kind.
func (*Source) SecretKeys() []fetch.SecretKey { return registry.SecretKeys() }

// Host implements fetch.Location.
func (l Location) Host() string {
	first, _, more := strings.Cut(string(l.Image), "/")
	if !more || !strings.ContainsAny(first, ".:") && first != "localhost" {
		return dockerHub
	}
	return first
}

// Mirrored implements fetch.Location.
func (l Location) Mirrored(mirrors fetch.Mirrors) (fetch.Location, bool) {
	place, changed := mirrors.Image(string(l.Image))
	l.Image = Name(place)
	return l, changed
}

// IsFixed implements fetch.Location. A check of a digest costs no request.
func (Location) IsFixed() bool { return false }
