package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

const (
	// mostContents is how many contents are listed, and mostUsers how many installations of each.
	mostContents = 1000
	mostUsers    = 200
)

// contentUnknown is the kind of content that was applied from a version that the catalogue no longer has, or has with other content. Other
// kinds are those of sources.
const contentUnknown = "Unknown"

// images lists what installations run, by content, to callers who may also list the catalogue's versions: these have the sources.
func (s *Server) images(ctx context.Context, of *call) (*content, error) {
	if err := s.Reviews.Authorise(ctx, of.identity, s.everything()); err != nil {
		return nil, err
	}
	seen, end, err := s.reads(ctx, of)
	if err != nil {
		return nil, err
	}
	defer end()
	at, err := s.snapshot()
	if err != nil {
		return nil, err
	}
	sources := sourcesOf{at: at, known: map[[2]string]knownSource{}, images: map[string]view.ContentKey{}}
	found := map[view.ContentKey]*view.Content{}
	use := func(key view.ContentKey, one *row) {
		used := found[key]
		if used == nil {
			used = &view.Content{ContentKey: key}
			found[key] = used
		}
		if used.Count++; used.Count <= mostUsers {
			used.Installations = append(used.Installations, one.Namespace+"/"+one.Name)
		}
	}
	s.Rows.each(seen, func(one *row) {
		if one.applied == nil || !of.given.rows.admits(one) {
			return
		}
		use(sources.contentOf(one), one)
		for _, image := range one.applied.Images {
			use(sources.imageOf(image), one)
		}
	})
	all := slices.SortedFunc(maps.Values(found), func(a, b *view.Content) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Revision, b.Revision),
			cmp.Compare(a.Digest, b.Digest))
	})
	answer := view.Contents{Contents: []view.Content{}, Total: len(all), Truncated: seen.truncated || len(all) > mostContents}
	for _, one := range all[:min(len(all), mostContents)] {
		answer.Contents = append(answer.Contents, *one)
	}
	return answerOf(answer)
}

// sourcesOf finds the sources of applied versions in the merged catalogue, once for each version.
type sourcesOf struct {
	at    *snapshot
	known map[[2]string]knownSource
	// images are the keys of the images of containers.
	images map[string]view.ContentKey
}

// imageOf is the key of an image: by its digest if the reference has one, else by its tag.
func (s *sourcesOf) imageOf(image string) view.ContentKey {
	key, isKnown := s.images[image]
	if isKnown {
		return key
	}
	key = view.ContentKey{Kind: view.ContentContainer, Reference: image}
	if read, ok := images.Parse(image); ok {
		key.Reference, key.Digest = read.Name(), strings.TrimPrefix(read.Digest, "@")
		if key.Digest == "" {
			key.Revision = cmp.Or(strings.TrimPrefix(read.Tag, ":"), "latest")
		}
	}
	s.images[image] = key
	return key
}

type knownSource struct {
	kind, reference string
	// content is the digest of the version that the catalogue has.
	content string
}

func (s *sourcesOf) contentOf(one *row) view.ContentKey {
	applied := one.applied
	name := [2]string{applied.Addon, applied.Version}
	source, isKnown := s.known[name]
	if !isKnown {
		source = s.find(applied.Addon, applied.Version)
		s.known[name] = source
	}
	key := view.ContentKey{Kind: source.kind, Reference: source.reference, Digest: applied.ArtifactDigest}
	if source.content == "" || source.content != applied.EntryDigest {
		key.Kind, key.Reference = contentUnknown, applied.Addon+" "+applied.Version
	}
	if one.artifact != nil && one.artifact.Digest == applied.ArtifactDigest {
		key.Revision = one.artifact.Revision
	}
	return key
}

func (s *sourcesOf) find(addon, version string) knownSource {
	entry := s.at.byName[addon]
	if entry == nil {
		return knownSource{}
	}
	found, origin := entry.Version(version)
	if found == nil {
		return knownSource{}
	}
	source := found.Source.Kind()
	if source == nil {
		return knownSource{}
	}
	kind, reference := source.Content()
	return knownSource{kind, reference, origin.Content}
}
