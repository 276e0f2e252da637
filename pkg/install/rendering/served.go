package rendering

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/install/apply"
)

// servedVersions are an input only for charts that read them: served groups change for reasons that don't concern
// most charts.
func (r *Renderer) servedVersions(q *Request) ([]string, error) {
	if !q.traits().SeesServed {
		return nil, nil
	}
	asks, err := r.capabilityCharts.ask(q.Content.Digest, q.Content.FS, asksForCapabilities)
	if err != nil || !asks {
		return nil, err
	}
	return served(q), nil
}

// served are the group versions and kinds of the user cluster that a chart sees.
func served(q *Request) []string {
	own := q.Brought.by(contentKey(q))
	if record := q.Installed.Record(); record != nil {
		own = slices.Concat(own, record.Inventory.DefinedGroups(), record.Shared.DefinedGroups())
	}
	return withoutOwn(q.APIVersions(), own)
}

// withoutOwn leaves out the groups of CustomResourceDefinitions that the installation itself brings: with them,
// applying a chart would change its inputs. The renderer adds those in the chart's crds/ folder.
func withoutOwn(versions, own []string) []string {
	return slices.DeleteFunc(versions, func(version string) bool {
		group, _, _ := strings.Cut(version, "/")
		return slices.Contains(own, group)
	})
}

// Brought are the groups that a content brings according to a rendering, before they are recorded. The zero value has
// none.
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

// bringsItself are the groups that a rendering counted as served although it brings them. Helm or an earlier
// installation created them, and they belong to this one from now on. The next request does not count them as served.
func (r *Renderer) bringsItself(q *Request, objects []*unstructured.Unstructured) ([]string, error) {
	asked, err := r.servedVersions(q)
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(apply.Planned(objects, nil).DefinedGroups(), func(group string) bool {
		return !slices.ContainsFunc(asked, func(version string) bool { return strings.HasPrefix(version, group+"/") })
	}), nil
}
