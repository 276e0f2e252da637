package rendering

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/apply"
)

// servedVersions count as input only for charts that ask for them: served groups come and go for
// reasons that have nothing to do with most charts.
func (r *Renderer) servedVersions(q *Request) ([]string, error) {
	if q.method() != v1.MethodHelm {
		return nil, nil
	}
	asks, err := r.capabilityCharts.ask(q.Content.Digest, q.Content.FS, asksForCapabilities)
	if err != nil || !asks {
		return nil, err
	}
	return served(q), nil
}

// served are the group versions and kinds of the user cluster that a chart learns of.
func served(q *Request) []string {
	own := q.Brought.by(contentKey(q))
	if record := q.Installed.Record(); record != nil {
		own = slices.Concat(own, record.Inventory.DefinedGroups(), record.Shared.DefinedGroups())
	}
	return withoutOwn(q.APIVersions(), own)
}

// withoutOwn leaves out the groups of CustomResourceDefinitions that the installation itself
// brings: with them, applying a chart would change what it is rendered with. The renderer adds what
// is in the chart's crds/ folder.
func withoutOwn(versions, own []string) []string {
	return slices.DeleteFunc(versions, func(version string) bool {
		group, _, _ := strings.Cut(version, "/")
		return slices.Contains(own, group)
	})
}

// Brought are the groups that a content was seen to bring, before any record says so. The zero
// value is none.
type Brought struct {
	content string
	groups  []string
}

func (b Brought) by(content string) []string {
	if b.content != content {
		return nil
	}
	return b.groups
}

func (b Brought) with(content string, groups []string) Brought {
	return Brought{content, slices.Concat(b.by(content), groups)}
}

func contentKey(q *Request) string { return q.Choice.Origin.Content + "/" + q.Content.Digest }

// bringsItself gives the groups that a rendering counted as served and turned out to bring: they
// were there before, by helm or from an earlier time, and are its own from now on. The next request
// would not count them any more.
func (r *Renderer) bringsItself(q *Request, objects []*unstructured.Unstructured) ([]string, error) {
	asked, err := r.servedVersions(q)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(apply.Planned(objects, nil).DefinedGroups(), func(group string) bool {
		return !slices.ContainsFunc(asked, func(version string) bool { return strings.HasPrefix(version, group+"/") })
	}), nil
}
