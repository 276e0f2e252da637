package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/lab"
)

// sortStages sorts the writes of each stage, which are sent concurrently, and keeps the order of the stages.
func sortStages(writes []string) (sorted []string) {
	stage := func(write string) string {
		parts := strings.Split(write, "/")
		switch kind := parts[len(parts)-2]; kind {
		case "namespaces", "customresourcedefinitions":
			return "first"
		case "clusterroles", "validatingwebhookconfigurations":
			return kind
		}
		return "rest"
	}
	for len(writes) > 0 {
		end := slices.IndexFunc(writes, func(write string) bool { return stage(write) != stage(writes[0]) })
		if end < 0 {
			end = len(writes)
		}
		slices.Sort(writes[:end])
		sorted, writes = append(sorted, writes[:end]...), writes[end:]
	}
	return sorted
}

// The whole life of an add-on's objects in a user cluster, as a story of writes: the stages of the first installation,
// no write without a difference, only differences, refusals.
func TestRolloutStory(t *testing.T) {
	l := lab.New(t)
	story := golden.NewStory("A rollout: what is written to the user cluster, in order", l.Unique, "NAME", l.Owner.ID(), "OWNER")
	var known ownership.Inventory
	rollout := func(step, manifests string) {
		t.Helper()
		objects := l.Prepare(manifests)
		var progress apply.Progress
		lines := l.Writes(func() { progress = l.Rollout(objects, apply.Planned(objects, known), apply.RolloutOptions{}) })
		lines = sortStages(lines)
		for _, note := range progress.Refused {
			lines = append(lines, "refused: "+note.Key.String()+": "+note.Reason+": "+note.Message)
		}
		if progress.Complete {
			lines = append(lines, "complete")
		}
		known = progress.Inventory
		story.Add(step, lines...)
	}
	all := lab.Manifests(strings.TrimSpace(lab.Widgets), everyStage[:strings.LastIndex(everyStage, "\n---\n")])
	all = strings.Replace(all, "metadata: {name: settings}\n---\napiVersion: rbac", "metadata: {name: more}\n---\napiVersion: rbac", 1)
	rollout("The first installation: a namespace, a definition, a custom resource, rights, settings, a webhook.", all)
	rollout("The same again.", all)
	changed := strings.Replace(all, "color: green", "color: blue", 1)
	rollout("An update that changes the settings.", changed)
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, data: {mine: "1"}}`)
	rollout("An update that brings an object which somebody else has.", lab.Manifests(changed, lab.TwoMaps[strings.Index(lab.TwoMaps, "---\n")+4:]))
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	rollout("The same once the other one is gone.", lab.Manifests(changed, lab.TwoMaps[strings.Index(lab.TwoMaps, "---\n")+4:]))
	story.Match(t, "testdata/rollout.golden")
}
