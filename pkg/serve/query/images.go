package query

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

const (
	// mostContents is how many contents are listed, and mostUsers how many installations of each.
	mostContents = 1000
	mostUsers    = 200
)

// contentUnknown is the kind of content that was applied from a version that the catalogue no longer has, or has with other content. Other
// kinds are those of sources.
const contentUnknown = "Unknown"

type contentList struct {
	Contents []usedContent `json:"contents"`
	Total    int           `json:"total"`
	// Truncated: there are more contents, or the caller may list more namespaces than were reviewed.
	Truncated bool `json:"truncated,omitempty"`
}

// contentKey is one image, chart or repository that installations run.
type contentKey struct {
	Kind string `json:"kind"`
	// Reference is the image's, the repository and chart, or the repository; of unknown content, add-on and version.
	Reference string `json:"reference"`
	// Revision is the image's digest, the chart's version, or the commit.
	Revision string `json:"revision,omitempty"`
	// Digest of the files.
	Digest string `json:"digest,omitempty"`
}

type usedContent struct {
	contentKey
	Count int `json:"count"`
	// Installations are the first ones, as namespace/name.
	Installations []string `json:"installations"`
}

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
	sources, found := sourcesOf{at: at, known: map[[2]string]knownSource{}}, map[contentKey]*usedContent{}
	s.Rows.each(seen, func(one *row) {
		if one.applied == nil || !of.given.rows.admits(one) {
			return
		}
		key := sources.contentOf(one)
		used := found[key]
		if used == nil {
			used = &usedContent{contentKey: key}
			found[key] = used
		}
		if used.Count++; used.Count <= mostUsers {
			used.Installations = append(used.Installations, one.Namespace+"/"+one.Name)
		}
	})
	all := slices.SortedFunc(maps.Values(found), func(a, b *usedContent) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Revision, b.Revision),
			cmp.Compare(a.Digest, b.Digest))
	})
	answer := contentList{Contents: []usedContent{}, Total: len(all), Truncated: seen.truncated || len(all) > mostContents}
	for _, one := range all[:min(len(all), mostContents)] {
		answer.Contents = append(answer.Contents, *one)
	}
	return answerOf(answer)
}

// sourcesOf finds the sources of applied versions in the merged catalogue, once for each version.
type sourcesOf struct {
	at    *snapshot
	known map[[2]string]knownSource
}

type knownSource struct {
	kind, reference string
	// content is the digest of the version that the catalogue has.
	content string
}

func (s *sourcesOf) contentOf(one *row) contentKey {
	applied := one.applied
	name := [2]string{applied.Addon, applied.Version}
	source, isKnown := s.known[name]
	if !isKnown {
		source = s.find(applied.Addon, applied.Version)
		s.known[name] = source
	}
	key := contentKey{Kind: source.kind, Reference: source.reference, Digest: applied.ArtifactDigest}
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
