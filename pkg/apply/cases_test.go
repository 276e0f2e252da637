package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/pkg/apply"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// RS23. Red when awaitEstablishment never looks at the time, when establishment does not read NamesAccepted, or when a stage does
// not wait for the one before.
func TestRS23DefinitionThatIsNeverEstablished(t *testing.T) {
	l := newLab(t)
	rival := strings.ReplaceAll(strings.Split(widgets, "\n---\n")[1], "widgets", "gadgets")
	l.create(definitions, "", rival)
	l.eventually("the rival has the kind", func() bool {
		return strings.Contains(fmt.Sprint(l.get(definitions, "", "gadgets."+l.name+".example.com").Object["status"]), "Established")
	})
	now := time.Now()
	rollout := apply.NewRollout(l.owner, l.prepare(widgets), nil, apply.RolloutOptions{Now: func() time.Time { return now }})
	var progress apply.Progress
	said := func(reason, text string) func() bool {
		return func() bool {
			progress = must(rollout.Advance(t.Context(), l.target))(t)
			return len(progress.Waiting) == 1 && progress.Waiting[0].Reason == reason && strings.Contains(progress.Waiting[0].Message, text)
		}
	}
	l.eventually("the reason is told", said("WaitingForStage", "is not established yet: its names are not accepted, "))
	now = now.Add(59 * time.Second)
	if !said("WaitingForStage", "not established yet")() {
		t.Errorf("after 59 s it says %+v", progress.Waiting)
	}
	now = now.Add(2 * time.Second)
	if !said("NotEstablished", "not established after 1m0s: its names are not accepted, ")() {
		t.Errorf("after 61 s it says %+v", progress.Waiting)
	}
	if progress.Written != 2 || l.get(configMaps, l.name, "settings") != nil {
		t.Errorf("%d objects were written, want the definition and the namespace alone", progress.Written)
	}
	l.delete(definitions, "", "gadgets."+l.name+".example.com")
	l.eventually("the rollout goes on", func() bool { return must(rollout.Advance(t.Context(), l.target))(t).Complete })
}

// AC42. Red when take does not refuse, or when ownerOf does not look at: managers of ours, labels of ours, KKP's label.
func TestAC42OwnersOfObjectsThatExist(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(*lab)
		owner string
	}{
		"another add-on": {
			make: func(l *lab) {
				l.as("monitoring", func() { l.install(l.prepare(settings), nil) })
			},
			owner: `add-on installation "monitoring"`,
		},
		"another add-on, without its label": {
			make: func(l *lab) {
				l.as("monitoring", func() { l.install(l.prepare(settings), nil) })
				l.edit(configMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
			},
			owner: `add-on installation "monitoring"`,
		},
		"one that is gone": {
			make: func(l *lab) {
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: `+
					`{addons.kubermatic.k8c.io/installation: abc}}}`)
			},
			owner: "another add-on installation (id abc)",
		},
		"a KKP add-on": {
			make: func(l *lab) {
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {kubermatic-addon: canal}}}`)
			},
			owner: `KKP add-on "canal"`,
		},
		"a user": {
			make: func(l *lab) {
				l.create(configMaps, l.name, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
			},
			owner: `field manager "kubectl-create"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			test.make(l)
			before := l.get(configMaps, l.name, "settings")
			nameOf := func(id string) string {
				return map[string]string{ownership.Owner{ClusterUID: l.owner.ClusterUID, Installation: "monitoring"}.ID(): "monitoring"}[id]
			}
			progress := l.rollout(l.prepare(settings), nil, apply.RolloutOptions{NameOf: nameOf})
			if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, reasons(progress.Refused)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if message := progress.Refused[0].Message; !strings.Contains(message, "belongs to "+test.owner+":") {
				t.Errorf("the message does not name %s: %s", test.owner, message)
			}
			if diff := cmp.Diff(before, l.get(configMaps, l.name, "settings")); diff != "" {
				t.Errorf("the object changed:\n%s", diff)
			}
		})
	}
}

// as does something on behalf of another installation.
func (l *lab) as(installation string, do func()) {
	l.Helper()
	own := l.owner
	l.owner.Installation = installation
	do()
	l.owner = own
}

// AC43. Red when Remove or Prune goes by what a list of our label finds, or lookAt takes an entry with another UID for ours
// because of its label.
func TestAC43ForgedLabelsRemoveNothing(t *testing.T) {
	l := newLab(t)
	l.namespace()
	inventory := l.install(l.prepare(twoMaps), nil)
	l.delete(configMaps, l.name, "other")
	const forged = `{apiVersion: v1, kind: ConfigMap, metadata: {name: WHICH, labels: {addons.kubermatic.k8c.io/installation: ID, ` +
		`addons.kubermatic.k8c.io/created-by: ID}}}`
	for _, name := range []string{"other", "precious"} {
		l.create(configMaps, l.name, strings.NewReplacer("WHICH", name, "ID", l.owner.ID()).Replace(forged))
	}

	next := l.install(l.prepare(settings), inventory)
	left, notes, err := apply.Prune(t.Context(), l.target, apply.Prunable(inventory, next), apply.PruneOptions{Owner: l.owner, Total: 2})
	if err != nil || len(left)+len(notes) > 0 {
		t.Errorf("prune left %v, %v, %v", left, notes, err)
	}
	l.remove(inventory, apply.RemoveOptions{})
	for _, name := range []string{"other", "precious"} {
		if l.get(configMaps, l.name, name) == nil {
			t.Errorf("ConfigMap %s, which is not ours, is gone", name)
		}
	}
}

// RS30. Red when kinds that hold more than themselves are made anew where they are marked; when wouldBeCreated asks for a
// definition under a name that no definition can have (it becomes ObjectInvalid); when marked objects are refused.
func TestRS30ImmutableFields(t *testing.T) {
	marked := func(manifest string) string {
		return strings.Replace(manifest, "metadata: {name: ", "metadata: {annotations: {addons.kubermatic.k8c.io/update: recreate}, name: ", 1)
	}
	definition := strings.Split(widgets, "\n---\n")[1]
	storage := strings.TrimPrefix(claim, "\n---\n")
	for name, test := range map[string]struct {
		before, after, field string
		anew                 bool
	}{
		"a Job's template":          {before: job, after: strings.Replace(job, "once:1", "once:2", 1), field: "field spec.template"},
		"a Job's template, marked":  {before: job, after: marked(strings.Replace(job, "once:1", "once:2", 1)), anew: true},
		"a claim":                   {before: storage, after: strings.Replace(storage, "ReadWriteOnce", "ReadWriteMany", 1), field: "field spec"},
		"a claim, marked":           {before: storage, after: marked(strings.Replace(storage, "ReadWriteOnce", "ReadWriteMany", 1)), field: "field spec"},
		"a definition":              {before: definition, after: strings.Replace(definition, "scope: Namespaced", "scope: Cluster", 1), field: "field spec.scope"},
		"a definition, marked":      {before: definition, after: marked(strings.Replace(definition, "scope: Namespaced", "scope: Cluster", 1)), field: "field spec.scope"},
		"a selector":                {before: deployment, after: strings.ReplaceAll(deployment, "app: web", "app: shop"), field: "field spec.selector"},
		"a selector, marked anyhow": {before: deployment, after: marked(strings.ReplaceAll(deployment, "app: web", "app: shop")), anew: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.namespace()
			inventory := l.install(l.prepare(test.before), nil)
			defer l.remove(inventory, apply.RemoveOptions{CRDs: whenUnused})
			if test.anew {
				if again := l.install(l.prepare(test.after), inventory); again[0].UID == inventory[0].UID {
					t.Error("it was not made anew")
				}
				return
			}
			deletes := l.calls.during("DELETE", func() {
				progress := l.rollout(l.prepare(test.after), inventory, apply.RolloutOptions{})
				if len(progress.Refused) != 1 || progress.Refused[0].Reason != "ImmutableField" ||
					!strings.Contains(progress.Refused[0].Message, test.field) {
					t.Errorf("got %+v, want ImmutableField with %s", progress.Refused, test.field)
				}
			})
			if len(deletes) > 0 {
				t.Errorf("it was deleted: %q", deletes)
			}
		})
	}
}

// missing is what is served while discovery can't tell the kinds of a group.
type missing struct {
	served
	groups []string
}

func (m missing) MissingGroups() []string { return m.groups }

// RS27. Red when an entry whose kind is not found is gone although discovery could not tell its group's kinds: the server behind
// it went down after its registration was looked at.
func TestRS27KindsThatDiscoveryCouldNotTell(t *testing.T) {
	l := newLab(t)
	l.install(l.prepare(strings.Split(widgets, "\n---\n")[1]), nil)
	group := l.name + ".example.com"
	inventory := ownership.Inventory{{Key: ownership.Key{Group: group, Kind: "Gizmo", Namespace: "default", Name: "first"}, Version: "v1", UID: "1"}}
	l.eventually("the group is registered", func() bool { return l.get(apiServices, "", "v1."+group) != nil })
	for _, version := range []string{group, group + "/v1"} {
		l.target.Served = missing{groups: []string{version}}
		left, _, err := apply.Remove(t.Context(), l.target, inventory, apply.RemoveOptions{Owner: l.owner})
		if err != nil || len(left) != 1 {
			t.Errorf("remove left %v, %v; want the entry", left, err)
		}
		left, _, err = apply.Prune(t.Context(), l.target, inventory, apply.PruneOptions{Owner: l.owner, Total: 10})
		if err != nil || len(left) != 1 {
			t.Errorf("prune left %v, %v; want the entry", left, err)
		}
	}
	l.target.Served = missing{groups: []string{"another.example.com/v1"}}
	left, _, err := apply.Remove(t.Context(), l.target, inventory, apply.RemoveOptions{Owner: l.owner})
	if err != nil || len(left) > 0 {
		t.Errorf("remove left %v, %v; want an entry of a kind that is not served to be done with", left, err)
	}
}

// Red when Reassess reads what was healthy before, calls everything healthy without reading it once more, or loses count.
func TestReassessReadsWhatWasNotHealthy(t *testing.T) {
	l := newLab(t)
	l.namespace()
	stuck := strings.Replace(strings.Replace(deployment, "name: web}", "name: stuck}", 1), "spec: {", "spec: "+nowhere, 1)
	inventory := l.install(l.prepare(deployment+"\n---\n"+stuck+"\n---\n"+settings), nil)
	const want = "2/3 healthy, 0 failing, in progress true, Deployment:InProgress"
	var health apply.Health
	l.eventually("one Deployment is healthy", func() bool {
		health = l.assess(inventory)
		return states(health) == want
	})
	again := func() []string {
		return l.calls.during("GET", func() { health = must(apply.Reassess(t.Context(), l.target, l.owner, inventory, health))(t) })
	}
	path := "GET /apis/apps/v1/namespaces/" + l.name + "/deployments/"
	if diff := cmp.Diff([]string{path + "stuck"}, again()); diff != "" || states(health) != want {
		t.Errorf("got %s; reads (-want +got):\n%s", states(health), diff)
	}

	l.edit(deployments, "web", `{spec: {replicas: 0}}`)
	l.eventually("the healthy one is healthy again", func() bool { return states(l.assess(inventory)) == want })
	l.edit(deployments, "stuck", `{spec: {replicas: 0}}`)
	var reads []string
	l.eventually("everything is healthy", func() bool {
		reads = again()
		return health.Healthy == health.Total
	})
	slices.Sort(reads)
	if diff := cmp.Diff([]string{path + "stuck", path + "stuck", path + "web"}, reads); diff != "" || health.Total != 3 {
		t.Errorf("got %s; reads of the last look (-want +got):\n%s", states(health), diff)
	}
}

// A namespace with objects of a kind that can't be listed could not end; it is no reason to hold the removal up for ever. Red when
// the census does not know trouble of a kind: the removal would fail each time.
func TestNamespaceStaysWhereAKindCanNotBeListed(t *testing.T) {
	l := newLab(t)
	inventory := l.install(l.prepare(settings, createNamespace), nil)
	l.create(definitions, "", strings.Split(widgets, "\n---\n")[1])
	isServed := func(version string) func() bool {
		return func() bool {
			l.target.Mapper.Reset()
			_, err := l.target.Mapper.RESTMapping(schema.GroupKind{Group: l.name + ".example.com", Kind: "Widget"}, version)
			return err == nil
		}
	}
	l.eventually("the kind is served", isServed("v1"))
	l.create(l.widgets(), l.name, `{apiVersion: NAME.example.com/v1, kind: Widget, metadata: {name: first}}`)
	l.breakConversion()
	l.eventually("the version that nobody converts to is served", isServed("v2"))
	l.remove(inventory, apply.RemoveOptions{})
	if live := l.get(namespaces, "", l.name); live == nil || live.GetDeletionTimestamp() != nil {
		t.Error("the namespace is gone although not everything in it could be looked at")
	}
}
