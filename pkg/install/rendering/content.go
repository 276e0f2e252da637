package rendering

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// searches caches the results of searches by content digest.
type searches[T any] struct {
	byDigest *lru.Cache[string, answer[T]]
}

// answer of a search. The error, if any, is errSearch.
type answer[T any] struct {
	found T
	err   error
}

// searchesKept is the maximum number of cached results.
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
	// fileLimit is the maximum number of searched bytes of one file.
	fileLimit = 5 << 20
	// searchFiles and searchBytes limit the search of one content, as renderers do.
	searchFiles = 20_000
	searchBytes = 64 << 20
)

var errSearch error = &Error{CauseVersion, &render.LimitError{
	What: fmt.Sprintf("bytes, or %d files, of content", searchFiles), Max: searchBytes,
}}

// anyFile reports whether the search matches any file of a content whose path is chosen.
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

// asksForCapabilities reports whether the word Capabilities occurs in any template of a chart or of its dependencies.
func asksForCapabilities(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool { return strings.Contains(text, "Capabilities") })
}

// secretFields match the secret fields of template data in templates.
var secretFields = regexp.MustCompile(`\.Credentials\b|\.Cluster\.Kubeconfig\b|\.Address\.AdminToken\b`)

func chartNamesSecrets(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool { return strings.Contains(text, templatedata.SecretsKind) })
}

// chartReadsSecretsOfValues reports whether a chart was written for a release that had the secrets in the values.
func chartReadsSecretsOfValues(chart fs.FS) (bool, error) {
	return anyFile(chart, isTemplate, func(text string) bool {
		return strings.Contains(text, ".Values.kkp") && secretFields.MatchString(text)
	})
}

func manifestsNameSecrets(manifests fs.FS) (bool, error) {
	isManifest := func(path string) bool { return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") }
	return anyFile(manifests, isManifest, secretFields.MatchString)
}

// secretsAskedFor refuses content of a Core catalogue that names secrets which its version does not request: it would
// write empty ones to the user cluster, over those from before versions had to request them. It finds only fields
// that are written out.
func (r *Renderer) secretsAskedFor(q *Request) error {
	if !q.Choice.Core {
		return nil
	}
	if err := r.secretsOutOfValues(q); err != nil || q.Choice.SeesSecrets() {
		return err
	}
	search := manifestsNameSecrets
	if q.traits().IsChart {
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
		"version %q names secrets of the cluster (.Credentials, .Cluster.Kubeconfig or .Cluster.Address.AdminToken) and does not request "+
			"them: set template.clusterSecrets: true in its Core catalogue", q.Choice.Version.Version)}
}

// secretsOutOfValues refuses a chart of a Core catalogue that reads secrets in the values, where they are no longer:
// it would write empty ones to the user cluster.
func (r *Renderer) secretsOutOfValues(q *Request) error {
	if !q.traits().IsChart {
		return nil
	}
	reads, err := r.secretContents.ask("values"+q.Content.Digest, q.Content.FS, chartReadsSecretsOfValues)
	if err != nil || !reads {
		return err
	}
	return &Error{CauseVersion, fmt.Errorf(
		"the chart of version %q reads secrets of the cluster from .Values.kkp, which has none of them: use "+
			".Credentials, .Kubeconfig and .AdminToken of (lookup %q %q \"\" %q)",
		q.Choice.Version.Version, templatedata.SecretsAPIVersion, templatedata.SecretsKind, templatedata.SecretsName)}
}
