package rendering

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/lru"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/templatedata"
)

// searches remembers by content digest what was found in contents.
type searches[T any] struct {
	byDigest *lru.Cache[string, answer[T]]
}

// answer of a search. The error, if any, is errSearch.
type answer[T any] struct {
	found T
	err   error
}

// searchesKept bounds the memory of searches.
const searchesKept = 4096

func newSearches[T any]() searches[T] {
	return searches[T]{lru.New[string, answer[T]](searchesKept, nil)}
}

func (s *searches[T]) ask(digest string, content fs.FS, search func(fs.FS) (T, error)) (T, error) {
	if known, ok := s.byDigest.Get(digest); ok {
		return known.found, known.err
	}
	found, err := search(content)
	if err != nil && !errors.Is(err, errSearch) {
		return found, fmt.Errorf("searching the content: %w", err)
	}
	s.byDigest.Put(digest, answer[T]{found, err}, lru.Forever)
	return found, err
}

const (
	// fileLimit is how much of one file is searched.
	fileLimit = 5 << 20
	// searchFiles and searchBytes are how much of one content is searched, as much as a renderer takes.
	searchFiles = 20_000
	searchBytes = 64 << 20
)

var errSearch error = &Error{CauseVersion, &render.LimitError{
	What: fmt.Sprintf("bytes, or %d files, of content", searchFiles), Max: searchBytes,
}}

// anyFile says whether any file of a content whose path is chosen holds what is searched.
func anyFile(content fs.FS, chosen func(path string) bool, holds func(text string) bool) (bool, error) {
	found, files, bytes := false, 0, 0
	err := fs.WalkDir(content, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !chosen(path) {
			return err
		}
		text, _, err := render.ReadAtMost(content, path, fileLimit)
		if files, bytes = files+1, bytes+len(text); files > searchFiles || bytes > searchBytes {
			return errSearch
		}
		if holds(text) {
			found = true
			return fs.SkipAll
		}
		return err
	})
	return found, err
}

func isTemplate(path string) bool { return strings.Contains("/"+path, "/templates/") }

// asksForCapabilities says whether the word Capabilities occurs in any template of a chart or of
// its dependencies.
func asksForCapabilities(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool { return strings.Contains(text, "Capabilities") })
}

// secretFields are the secret fields of template data as templates write them.
var secretFields = regexp.MustCompile(`\.Credentials\b|\.Cluster\.Kubeconfig\b|\.Address\.AdminToken\b`)

func chartNamesSecrets(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool { return strings.Contains(text, templatedata.SecretsKind) })
}

// chartReadsSecretsOfValues says whether a chart was written for a release that had the secrets in the values.
func chartReadsSecretsOfValues(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool {
		return strings.Contains(text, ".Values.kkp") && secretFields.MatchString(text)
	})
}

func manifestsNameSecrets(manifests fs.FS) (bool, error) {
	isManifest := func(path string) bool { return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") }
	return anyFile(manifests, isManifest, secretFields.MatchString)
}

// secretsAskedFor refuses content of a Core catalogue that names secrets which its version does not
// ask for: it would put empty ones into the user cluster, in place of those that it had before
// versions had to ask. It finds fields that are written out.
func (r *Renderer) secretsAskedFor(q *Request) error {
	if !q.Choice.Core {
		return nil
	}
	if err := r.secretsOutOfValues(q); err != nil || q.Choice.SeesSecrets() {
		return err
	}
	search := manifestsNameSecrets
	if q.method() == v1.MethodHelm {
		search = chartNamesSecrets
	}
	named, err := r.secretContents.ask(string(q.method())+q.Content.Digest, q.Content.FS, search)
	if err != nil {
		return err
	}
	if !named && !secretFields.MatchString(q.Choice.Version.ValuesTemplate) {
		return nil
	}
	return &Error{CauseVersion, fmt.Errorf(
		"version %q names secrets of the cluster (.Credentials, .Cluster.Kubeconfig or .Cluster.Address.AdminToken) and does not ask for "+
			"them: set template.clusterSecrets: true in its Core catalogue", q.Choice.Version.Version)}
}

// secretsOutOfValues refuses a chart of a Core catalogue that reads secrets where they are no more: it would put empty ones into the
// user cluster.
func (r *Renderer) secretsOutOfValues(q *Request) error {
	if q.method() != v1.MethodHelm {
		return nil
	}
	reads, err := r.secretContents.ask("values"+q.Content.Digest, q.Content.FS, chartReadsSecretsOfValues)
	if err != nil || !reads {
		return err
	}
	return &Error{CauseVersion, fmt.Errorf(
		"the chart of version %q reads secrets of the cluster from .Values.kkp, which has none: take .Credentials, .Kubeconfig and .AdminToken "+
			"of (lookup %q %q \"\" %q)",
		q.Choice.Version.Version, templatedata.SecretsAPIVersion, templatedata.SecretsKind, templatedata.SecretsName)}
}
