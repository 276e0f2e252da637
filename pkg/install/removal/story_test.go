package removal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/golden"
	"github.com/trellis-addons/trellis/test/lab"
)

// Objects that an update dropped are deleted, as a story of writes: freely, after an approval, and not at all if they
// were replaced.
func TestPruneStory(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	story := golden.NewStory("A prune: what is deleted, and what waits for somebody", l.Unique, "NAME")
	maps := func(names ...string) string {
		var manifests []string
		for _, name := range names {
			manifests = append(manifests, strings.Replace(lab.Settings, "settings", name, 1))
		}
		return lab.Manifests(manifests...)
	}
	prune := func(step string, from, objects ownership.Inventory, approved string) ownership.Inventory {
		t.Helper()
		options := removal.PruneOptions{Owner: l.Owner, Total: len(from), Approved: approved}
		var lines []string
		var left ownership.Inventory
		writes := l.Calls.During("DELETE", func() {
			kept, notes, err := removal.Prune(t.Context(), l.Target, objects, options)
			if err != nil {
				t.Fatal(err)
			}
			left = kept
			for _, note := range notes {
				message := strings.ReplaceAll(note.Message, removal.Approval(kept), "HASH") // it contains the namespace's name
				lines = append(lines, "waits: "+note.Reason+": "+message)
			}
		})
		slices.Sort(writes) // several at a time
		story.Add(step, slices.Concat(writes, lines)...)
		return left
	}
	old := l.Install(l.Prepare(maps("a", "b", "c")+lab.Claim), nil)
	next := l.Install(l.Prepare(maps("a")), old)
	l.Delete(lab.ConfigMaps, l.Unique, "c")
	l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
	left := prune("An update dropped b, c and the claim; somebody made c anew.", old, removal.Prunable(old, next), "")
	prune("Somebody approved what waits.", old, left, removal.Approval(left))

	old = l.Install(l.Prepare(maps("a", "d", "e", "f", "g", "h", "i", "j")), next)
	next = l.Install(l.Prepare(maps("a")), old)
	left = prune("An update dropped seven of eight objects.", old, removal.Prunable(old, next), "")
	prune("Somebody approved what waits.", old, left, removal.Approval(left))
	story.Match(t, "testdata/prune.golden")
}
