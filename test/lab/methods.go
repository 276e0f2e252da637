package lab

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/pkg/install/survey"
)

// Named are installations of the lab's cluster that exist, by ID.
func (l *Lab) Named(names ...string) func(id string) string {
	known := map[string]string{}
	for _, name := range names {
		known[ownership.Owner{ClusterUID: l.Owner.ClusterUID, Installation: name}.ID()] = name
	}
	return func(id string) string { return known[id] }
}

// As does something on behalf of another installation.
func (l *Lab) As(installation string, do func()) {
	l.Helper()
	own := l.Owner
	l.Owner.Installation = installation
	do()
	l.Owner = own
}

// Update is a rollout of what is planned over what is known, as after an intent on record.
func (l *Lab) Update(manifests string, known ownership.Inventory) ownership.Inventory {
	l.Helper()
	objects := l.Prepare(manifests)
	return l.Install(objects, apply.Planned(objects, known))
}

// Writes are the calls that are no reading ones.
func (l *Lab) Writes(do func()) []string {
	l.Helper()
	return slices.DeleteFunc(l.Calls.During("", do), func(call string) bool { return strings.HasPrefix(call, "GET ") })
}

// Data is what a ConfigMap of the test's namespace holds; nil if there is none.
func (l *Lab) Data(name string) any {
	l.Helper()
	live := l.Get(ConfigMaps, l.Unique, name)
	if live == nil {
		return nil
	}
	return live.Object["data"]
}

// Drift surveys anew.
func (l *Lab) Drift(inventory ownership.Inventory) []survey.Drift {
	l.Helper()
	s := survey.New(time.Minute, time.Now)
	return Must(s.Drifted(l.Context(), l.Target, l.Owner, inventory))(l)
}

// Assess looks at the health of all objects, once.
func (l *Lab) Assess(inventory ownership.Inventory) survey.Health {
	l.Helper()
	return Must(survey.Standard{}.Assess(l.Context(), l.Target, l.Owner, inventory))(l)
}

// Explained assesses until what is not healthy was explained in words that have this text, and gives them.
func (l *Lab) Explained(inventory ownership.Inventory, text string) (health survey.Health) {
	l.Helper()
	said := ""
	l.Eventually("the first unhealthy object says "+text, func() bool {
		health = survey.Explain(l.Context(), l.Target, l.Assess(inventory))
		if len(health.Unhealthy) == 0 {
			return false
		}
		if now := health.Unhealthy[0].Message; now != said {
			said = now
			l.Log(said)
		}
		return strings.Contains(said, text)
	})
	return health
}

// OnePod waits for the one pod of a Deployment.
func (l *Lab) OnePod() (name string) {
	l.Helper()
	l.Eventually("the Deployment has a pod", func() bool {
		list := Must(l.Others.Resource(PodsOf).Namespace(l.Unique).List(l.Context(), metav1.ListOptions{}))(l)
		if len(list.Items) == 1 {
			name = list.Items[0].GetName()
		}
		return name != ""
	})
	return name
}

// NamespaceNamed makes a namespace besides the test's, as somebody else.
func (l *Lab) NamespaceNamed(name string) {
	l.Helper()
	l.Create(Namespaces, "", `{apiVersion: v1, kind: Namespace, metadata: {name: `+name+`}}`)
}

// Widgets is the resource of the test's own kind, which manifest Widgets defines.
func (l *Lab) Widgets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: l.Unique + ".example.com", Version: "v1", Resource: "widgets"}
}

// ExpectReplicas fails unless Deployment web asks for so many replicas.
func (l *Lab) ExpectReplicas(after string, want int64) {
	l.Helper()
	if replicas, _, _ := NestedInt(l.Get(Deployments, l.Unique, "web"), "spec", "replicas"); replicas != want {
		l.Errorf("after %s there are %d replicas, want %d", after, replicas, want)
	}
}

// BreakConversion gives the widgets a second version, by a webhook that nobody answers. It is mended at the end of the test, since no
// namespace of the API server can end until then.
func (l *Lab) BreakConversion() {
	l.Helper()
	live := l.Get(Definitions, "", "widgets."+l.Unique+".example.com")
	spec := live.Object["spec"].(map[string]any)
	second := maps.Clone(spec["versions"].([]any)[0].(map[string]any))
	second["name"], second["storage"] = "v2", false
	spec["versions"] = append(spec["versions"].([]any), second)
	spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"},
	}}
	Must(l.Others.Resource(Definitions).Update(l.Context(), live, metav1.UpdateOptions{}))(l)
	l.Cleanup(func() {
		mended := []byte(`{"spec": {"conversion": {"strategy": "None", "webhook": null}}}`)
		_, err := l.Others.Resource(Definitions).Patch(context.Background(), live.GetName(), types.MergePatchType, mended, metav1.PatchOptions{})
		if err != nil {
			l.Error(err)
		}
	})
}

// Withdraw deletes an object of the foundation, as somebody else, and waits until it is gone.
func (l *Lab) Withdraw(where schema.GroupVersionResource, name string) {
	l.Helper()
	l.Delete(where, "", name)
	l.Eventually(name+" is gone", func() bool { return l.Get(where, "", name) == nil })
}

// Unserve is withdraw for a definition, and waits until its kind is not served any more.
func (l *Lab) Unserve(plural string) {
	l.Helper()
	l.Withdraw(Definitions, plural+"."+l.Unique+".example.com")
	where := schema.GroupVersionResource{Group: l.Unique + ".example.com", Version: "v1", Resource: plural}
	l.Eventually("the kind is not served", func() bool {
		_, err := l.Others.Resource(where).List(l.Context(), metav1.ListOptions{})
		return err != nil
	})
}

// Established waits until the API server says so of the definitions among these objects. It serves their kinds a moment
// before, and takes changes until then that it refuses afterwards.
func (l *Lab) Established(inventory ownership.Inventory) {
	l.Helper()
	for _, entry := range inventory {
		if entry.GroupKind() != ownership.DefinitionGK {
			continue
		}
		l.Eventually(entry.Name+" is established", func() bool {
			live := l.Get(Definitions, "", entry.Name)
			if live == nil {
				return false
			}
			established, _ := calls.Establishment(live)
			return established
		})
	}
}

// PutBack looks for drift and repairs it until nothing is left, and gives what was missing at first.
func (l *Lab) PutBack(
	objects string, inventory ownership.Inventory, change ...func(*apply.Options),
) (now ownership.Inventory, missing []string) {
	l.Helper()
	prepared, now := l.Prepare(objects, change...), inventory
	s := survey.New(time.Hour, time.Now)
	l.Eventually("everything is put back", func() bool {
		drift := Must(s.Drifted(l.Context(), l.Target, l.Owner, now))(l)
		if missing == nil {
			for _, one := range drift {
				missing = append(missing, one.Key.Kind+" "+one.Key.Name+": "+one.Reason)
			}
		}
		repaired := Must(apply.Repair(l.Context(), l.Target, l.Owner, KeysOf(drift), apply.Applied{Objects: prepared, Inventory: now}))(l)
		now = repaired.Inventory
		return len(drift) == 0
	})
	return now, missing
}

// Shut waits until the API server asks the gate.
func (l *Lab) Shut() {
	l.Helper()
	probe := l.Objects(`{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}`)[0]
	l.Eventually("the webhook is asked", func() bool {
		_, err := l.Others.Resource(ConfigMaps).Namespace(l.Unique).Create(l.Context(), probe, metav1.CreateOptions{DryRun: []string{"All"}})
		return err != nil
	})
}
