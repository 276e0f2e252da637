package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/removal"
	"github.com/trellis-addons/trellis/test/lab"
)

// RS23: A definition that is never established is named after its time, and no object of a later stage is tried. It
// fails if awaitEstablishment never reads the time, if establishment does not read NamesAccepted, or if a stage does
// not wait for the previous one.
func TestDefinitionThatIsNeverEstablishedStopsTheStages(t *testing.T) {
	l := lab.New(t)
	competitor := strings.ReplaceAll(strings.Split(lab.Widgets, "\n---\n")[1], "widgets", "gadgets")
	l.Create(lab.Definitions, "", competitor)
	l.Eventually("the rival has the kind", func() bool {
		return strings.Contains(fmt.Sprint(l.Get(lab.Definitions, "", "gadgets."+l.Unique+".example.com").Object["status"]), "Established")
	})
	now := time.Now()
	rollout := apply.NewRollout(l.Owner, l.Prepare(lab.Widgets), nil, apply.RolloutOptions{Now: func() time.Time { return now }})
	var progress apply.Progress
	said := func(reason, text string) func() bool {
		return func() bool {
			progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t)
			return len(progress.Waiting) == 1 && progress.Waiting[0].Reason == reason && strings.Contains(progress.Waiting[0].Message, text)
		}
	}
	l.Eventually("the reason is told", said("WaitingForStage", "is not established yet: its names are not accepted, "))
	now = now.Add(59 * time.Second)
	if !said("WaitingForStage", "not established yet")() {
		t.Errorf("after 59 s it says %+v", progress.Waiting)
	}
	now = now.Add(2 * time.Second)
	if !said("NotEstablished", "not established after 1m0s: its names are not accepted, ")() {
		t.Errorf("after 61 s it says %+v", progress.Waiting)
	}
	if progress.Written != 2 || l.Get(lab.ConfigMaps, l.Unique, "settings") != nil {
		t.Errorf("%d objects were written, want the definition and the namespace alone", progress.Written)
	}
	l.Delete(lab.Definitions, "", "gadgets."+l.Unique+".example.com")
	l.Eventually("the rollout goes on", func() bool { return lab.Must(rollout.Advance(t.Context(), l.Target))(t).Complete })
}

// AC42: An object of another owner is refused, and its owner is named. It fails if take does not refuse, or if ownerOf
// ignores: our managers, our labels, KKP's label.
func TestObjectsOfOthersAreRefusedWithTheirOwner(t *testing.T) {
	for name, test := range map[string]struct {
		make  func(*lab.Lab)
		owner string
	}{
		"another add-on": {
			make: func(l *lab.Lab) {
				l.As("monitoring", func() { l.Install(l.Prepare(lab.Settings), nil) })
			},
			owner: `add-on installation "monitoring"`,
		},
		"another add-on, without its label": {
			make: func(l *lab.Lab) {
				l.As("monitoring", func() { l.Install(l.Prepare(lab.Settings), nil) })
				l.Edit(lab.ConfigMaps, "settings", `{metadata: {labels: {addons.kubermatic.k8c.io/installation: null}}}`)
			},
			owner: `add-on installation "monitoring"`,
		},
		"one that is gone": {
			make: func(l *lab.Lab) {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: `+
					`{addons.kubermatic.k8c.io/installation: abc}}}`)
			},
			owner: "an add-on installation that was deleted (id abc)",
		},
		"a KKP add-on": {
			make: func(l *lab.Lab) {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {kubermatic-addon: canal}}}`)
			},
			owner: `KKP add-on "canal"`,
		},
		"a user": {
			make: func(l *lab.Lab) {
				l.Create(lab.ConfigMaps, l.Unique, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: b}}`)
			},
			owner: `field manager "kubectl-create"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			test.make(l)
			before := l.Get(lab.ConfigMaps, l.Unique, "settings")
			nameOf := func(id string) string {
				return map[string]string{ownership.Owner{ClusterUID: l.Owner.ClusterUID, Installation: "monitoring"}.ID(): "monitoring"}[id]
			}
			progress := l.Rollout(l.Prepare(lab.Settings), nil, apply.RolloutOptions{NameOf: nameOf})
			if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if message := progress.Refused[0].Message; !strings.Contains(message, "belongs to "+test.owner+":") {
				t.Errorf("the message does not name %s: %s", test.owner, message)
			}
			if diff := cmp.Diff(before, l.Get(lab.ConfigMaps, l.Unique, "settings")); diff != "" {
				t.Errorf("the object changed:\n%s", diff)
			}
		})
	}
}

// RS30: A change of an immutable field is named, and the object is recreated only if it is marked and contains no other
// objects or data. It fails if marked kinds that contain others are recreated; if wouldBeCreated tests a definition
// under a name that no definition can have (it becomes ObjectInvalid); if marked objects are refused.
func TestImmutableFieldsAreNamedOrRecreatedWhereMarked(t *testing.T) {
	marked := func(manifest string) string {
		return strings.Replace(manifest, "metadata: {name: ", "metadata: {annotations: {addons.kubermatic.k8c.io/update: recreate}, name: ", 1)
	}
	definition := strings.Split(lab.Widgets, "\n---\n")[1]
	storage := strings.TrimPrefix(lab.Claim, "\n---\n")
	for name, test := range map[string]struct {
		before, after, field string
		recreated            bool
	}{
		"a Job's template":          {before: lab.Job, after: strings.Replace(lab.Job, "once:1", "once:2", 1), field: "field spec.template"},
		"a Job's template, marked":  {before: lab.Job, after: marked(strings.Replace(lab.Job, "once:1", "once:2", 1)), recreated: true},
		"a claim":                   {before: storage, after: strings.Replace(storage, "ReadWriteOnce", "ReadWriteMany", 1), field: "field spec"},
		"a claim, marked":           {before: storage, after: marked(strings.Replace(storage, "ReadWriteOnce", "ReadWriteMany", 1)), field: "field spec"},
		"a definition":              {before: definition, after: strings.Replace(definition, "scope: Namespaced", "scope: Cluster", 1), field: "field spec.scope"},
		"a definition, marked":      {before: definition, after: marked(strings.Replace(definition, "scope: Namespaced", "scope: Cluster", 1)), field: "field spec.scope"},
		"a selector":                {before: lab.Deployment, after: strings.ReplaceAll(lab.Deployment, "app: web", "app: shop"), field: "field spec.selector"},
		"a selector, marked anyhow": {before: lab.Deployment, after: marked(strings.ReplaceAll(lab.Deployment, "app: web", "app: shop")), recreated: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			inventory := l.Install(l.Prepare(test.before), nil)
			defer l.Remove(inventory, removal.RemoveOptions{CRDs: lab.WhenUnused})
			l.Established(inventory)
			if test.recreated {
				if again := l.Install(l.Prepare(test.after), inventory); again[0].UID == inventory[0].UID {
					t.Error("it was not made anew")
				}
				return
			}
			deletes := l.Calls.During("DELETE", func() {
				progress := l.Rollout(l.Prepare(test.after), inventory, apply.RolloutOptions{})
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

// missing has the served kinds while discovery can't list the kinds of a group.
type missing struct {
	lab.Served
	groups []string
}

func (m missing) MissingGroups() []string { return m.groups }

// RS27: While discovery is partial, objects of the missing groups do not count as gone. It fails if an entry whose kind
// is not found counts as gone although discovery could not list its group's kinds: the server behind it failed after
// its registration was read.
func TestKindsThatDiscoveryCouldNotListAreNotGone(t *testing.T) {
	l := lab.New(t)
	l.Install(l.Prepare(strings.Split(lab.Widgets, "\n---\n")[1]), nil)
	group := l.Unique + ".example.com"
	inventory := ownership.Inventory{{Key: ownership.Key{Group: group, Kind: "Gizmo", Namespace: "default", Name: "first"}, Version: "v1", UID: "1"}}
	l.Eventually("the group is registered", func() bool { return l.Get(lab.ApiServices, "", "v1."+group) != nil })
	for _, version := range []string{group, group + "/v1"} {
		l.Target.Served = missing{groups: []string{version}}
		left, _, err := removal.Remove(t.Context(), l.Target, inventory, removal.RemoveOptions{Owner: l.Owner})
		if err != nil || len(left) != 1 {
			t.Errorf("remove left %v, %v; want the entry", left, err)
		}
		left, _, err = removal.Prune(t.Context(), l.Target, inventory, removal.PruneOptions{Owner: l.Owner, Total: 10})
		if err != nil || len(left) != 1 {
			t.Errorf("prune left %v, %v; want the entry", left, err)
		}
	}
	l.Target.Served = missing{groups: []string{"another.example.com/v1"}}
	left, _, err := removal.Remove(t.Context(), l.Target, inventory, removal.RemoveOptions{Owner: l.Owner})
	if err != nil || len(left) > 0 {
		t.Errorf("remove left %v, %v; want an entry of a kind that is not served to be done with", left, err)
	}
}

// An error that only a change causes is not called immutable, and every refusal has the API server's reason. It fails
// if ImmutableField depends on the dry run alone (storage version), and if ProblemOf has no reasons.
func TestRefusalsHaveTheServersReason(t *testing.T) {
	before := definition("")
	after := strings.Replace(before, "{name: v1, served", "{name: v2, served", 1)
	for name, test := range map[string]struct{ before, after, reason, words string }{
		"a storage version": {before, after, "ObjectInvalid", "was previously a storage version, and must remain in spec.versions"},
		"both bounds": {"", "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: u}, spec: {selector: {matchLabels: {a: b}}, " +
			"minAvailable: 1, maxUnavailable: 1}}", "ObjectInvalid", "minAvailable and maxUnavailable cannot be both set"},
		"a headless NodePort": {"", service("clusterIP: None, type: NodePort, ports: [{port: 80}]"), "ObjectInvalid", "may not be set to 'None' for NodePort services"},
		"maxSurge": {"", strategy("DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}, "), "ObjectInvalid",
			"may not be set when maxUnavailable is non-zero"},
		"a selector":     {strategy("Deployment", ""), strings.ReplaceAll(strategy("Deployment", ""), "app: u", "app: v"), "ImmutableField", "field is immutable"},
		"a service name": {strategy("StatefulSet", "serviceName: a, "), strategy("StatefulSet", "serviceName: b, "), "ImmutableField", "fields other than"},
		"another bound":  {"", scaler("minReplicas: 5"), "ObjectInvalid", "must be greater than or equal to `minReplicas`"},
		"a schedule":     {"", cron("every day"), "ObjectInvalid", "expected exactly 5 fields, found 2"},
		"an APIService": {"", "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAME.example.com}, spec: {group: NAME.example.com, " +
			"version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, caBundle: " + authority +
			", service: {name: nobody, namespace: NAME}}}", "ObjectInvalid", "may not be true if caBundle is present"},
		"a relative path": {"", route("pathType: Prefix, path: shop"), "ObjectInvalid", "must be an absolute path"},
		"a path's type":   {"", route("path: /shop"), "ObjectInvalid", "pathType must be specified"},
		"a role":          {binding("view"), binding("edit"), "ImmutableField", "cannot change roleRef"},
		"an address":      {service("ports: [{port: 80}]"), service("clusterIP: None, ports: [{port: 80}]"), "ImmutableField", "may not change once set"},
		"a provisioner":   {class("example.com/a", ""), class("example.com/b", ""), "ImmutableField", "field is immutable"},
		"parameters":      {class("example.com/a", "parameters: {a: b}, "), class("example.com/a", "parameters: {a: c}, "), "ImmutableField", "field is immutable"},
		"a frozen ConfigMap": {frozen("ConfigMap", "data: {a: one}"), frozen("ConfigMap", "data: {a: one-of-them}"), "ImmutableField",
			"field is immutable when `immutable` is set"},
		"a frozen Secret": {frozen("Secret", "stringData: {a: one}"), frozen("Secret", "stringData: {a: one-of-them}"), "ImmutableField", "field data is not allowed"},
		"a Secret's type": {"{apiVersion: v1, kind: Secret, metadata: {name: u}, type: example.com/a}", "{apiVersion: v1, kind: Secret, metadata: {name: u}, type: example.com/b}",
			"ImmutableField", "field type has an invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lab.New(t)
			l.Namespace()
			var inventory ownership.Inventory
			if test.before != "" {
				inventory = l.Install(l.Prepare(test.before), nil)
			}
			objects := l.Prepare(test.after)
			expectRefusal(l, l.Rollout(objects, apply.Planned(objects, inventory), apply.RolloutOptions{}), test.reason, test.words)
		})
	}
}

func cron(schedule string) string {
	return `{apiVersion: batch/v1, kind: CronJob, metadata: {name: u}, spec: {schedule: "` + schedule +
		`", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, ` + main + `}}}}}}`
}

func route(path string) string {
	return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: u}, spec: {rules: [{http: {paths: [{` + path +
		`, backend: {service: {name: a, port: {number: 80}}}}]}}]}}`
}

func binding(role string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: u}, roleRef: {apiGroup: rbac.authorization.k8s.io, ` +
		`kind: ClusterRole, name: ` + role + `}, subjects: [{kind: ServiceAccount, name: u, namespace: NAME}]}`
}

func class(provisioner, more string) string {
	return `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NAME}, ` + more + `provisioner: ` + provisioner + `}`
}

func frozen(kind, content string) string {
	return `{apiVersion: v1, kind: ` + kind + `, metadata: {name: u}, immutable: true, ` + content + `}`
}

// expectRefusal fails unless one object is refused for the reason, with the words and without its value; without a
// reason, unless everything is written.
func expectRefusal(l *lab.Lab, progress apply.Progress, reason, words string) {
	l.Helper()
	if progress.Complete != (reason == "") {
		l.Fatalf("complete is %v, refused %v", progress.Complete, progress.Refused)
	}
	if reason == "" {
		return
	}
	l.Log(progress.Refused[0].Message)
	note := progress.Refused[0]
	if note.Reason != reason || !strings.Contains(note.Message, words) || strings.Contains(note.Message, "one-of-them") {
		l.Errorf("got %s %q, want %s with %q", note.Reason, note.Message, reason, words)
	}
}
