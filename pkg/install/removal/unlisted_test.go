package removal_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// deadService creates an APIService that nothing serves, and waits until discovery lacks its group.
func deadService(l *lab.Lab) (name string, restore func()) {
	l.Helper()
	name = "v1." + l.Unique + ".example.com"
	l.Create(lab.ApiServices, "", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, spec: `+
		`{group: NAME.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10, service: {namespace: default, name: none}}}`)
	lacks := func() bool { return slices.Contains(l.Target.Served.MissingGroups(), l.Unique+".example.com/v1") }
	l.Eventually("discovery lacks the group", lacks)
	return name, func() {
		l.Delete(lab.ApiServices, "", name)
		l.Eventually("discovery has all groups", func() bool { return !lacks() })
	}
}

// TestANamespaceWaitsForAnAPIServiceThatIsDown fails if one APIService that is down makes a namespace stay without a
// message, or be deleted unchecked; if it hides objects of other groups, or the removal does not continue once it is
// gone.
func TestANamespaceWaitsForAnAPIServiceThatIsDown(t *testing.T) {
	for name, test := range map[string]struct {
		foreign, await, restored bool
		blocked, kept            string
		goes                     bool
	}{
		"it waits":                  {await: true, blocked: "is not deleted yet, since its content can't be listed: no server serves SERVICE: start"},
		"it goes once that is gone": {await: true, restored: true, goes: true},
		"its time is over":          {kept: "no server serves SERVICE: start its server, or delete the APIService. Delete the namespace when"},
		"somebody has objects":      {await: true, foreign: true, kept: "it has configmaps foreign, which this installation did not create"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			inventory := l.Install(l.Prepare(lab.Settings, lab.CreateNamespace), nil)
			service, restore := deadService(l)
			if test.foreign {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign}}`)
			}
			kept, left, blocked := "", inventory, []calls.Note(nil)
			remove := func() {
				options := removal.RemoveOptions{Owner: l.Owner, AwaitKinds: test.await, Kept: func(_, why string) { kept = why }}
				left, blocked = lab.Removed(l, left, options)
			}
			remove()
			if test.restored {
				restore()
				l.Eventually("everything is removed", func() bool { remove(); return len(left) == 0 })
			} else {
				defer restore()
			}
			says := func(got, want string) bool {
				return want == "" && got == "" || want != "" && strings.Contains(got, strings.Replace(want, "SERVICE", service, 1))
			}
			message := ""
			if len(blocked) > 0 {
				message = blocked[0].Message
				if blocked[0].Reason != removal.ReasonUnlisted {
					t.Errorf("the reason is %s", blocked[0].Reason)
				}
			}
			if !says(message, test.blocked) || !says(kept, test.kept) || len(left) > 0 != (test.blocked != "") {
				t.Errorf("left %v, blocked by %q, kept %q", left, message, kept)
			}
			if live := l.Get(lab.Namespaces, "", l.Unique); (live == nil || live.GetDeletionTimestamp() != nil) != test.goes {
				t.Errorf("the namespace is %v", live)
			}
		})
	}
}

// TestANamespaceThatEndsSaysWhatItWaitsFor fails if a namespace that can't be finalized does not report the cluster's
// reason.
func TestANamespaceThatEndsSaysWhatItWaitsFor(t *testing.T) {
	l := lab.New(t)
	inventory := l.Install(l.Prepare(lab.Settings, lab.CreateNamespace), nil)
	_, restore := deadService(l)
	defer restore()
	l.Delete(lab.Namespaces, "", l.Unique)
	var blocked []calls.Note
	l.Eventually("the removal says why", func() bool {
		var left ownership.Inventory
		left, blocked = lab.Removed(l, inventory, removal.RemoveOptions{Owner: l.Owner, AwaitKinds: true, Explain: true})
		return len(left) == 1 && len(blocked) == 1 && strings.Contains(blocked[0].Message, "is being deleted: Discovery failed for some groups") &&
			strings.Contains(blocked[0].Message, l.Unique+".example.com/v1")
	})
	if _, blocked = lab.Removed(l, inventory, removal.RemoveOptions{Owner: l.Owner}); !strings.Contains(blocked[0].Message, "check what delays it") {
		t.Errorf("it says %q without being asked", blocked[0].Message)
	}
}
