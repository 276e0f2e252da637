package apply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/apply"
	"github.com/trellis-addons/trellis/test/lab"
)

const (
	lookedRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAME}\n" +
		"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]"
	// localService registers a version that the API server serves itself, if a definition has a kind of it.
	localService = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.NAME.example.com}\n" +
		"spec: {group: NAME.example.com, version: v1, groupPriorityMinimum: 10, versionPriority: 10}"
)

func mapNamed(name string) string { return strings.Replace(lab.Settings, "settings", name, 1) }

// TestNothingIsWrittenBeforeAllIsFree fails if anything is written although a kind is not served or a name is not free,
// also of the first stages, and if all objects are held without LookFirst.
func TestNothingIsWrittenBeforeAllIsFree(t *testing.T) {
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	for name, test := range map[string]struct {
		manifests string
		before    func(*lab.Lab)
		reason    string
		says      string
		cause     string
	}{
		"a kind is not served": {
			manifests: lab.Manifests(lab.Settings, lab.Definition("Gadget", "Namespaced", ""), lab.Custom("Widget", "v1", "last")),
			reason:    "Widget last: KindNotServed", says: "install the CRD or API server of the kind",
		},
		"one name is taken": {
			manifests: lab.Manifests(lab.Definition("Gadget", "Namespaced", ""), lab.Settings),
			before:    func(l *lab.Lab) { l.Create(lab.ConfigMaps, l.Unique, lab.Settings) },
			reason:    "ConfigMap settings: ObjectExists", says: `belongs to field manager "kubectl-create"`, cause: v1.ReasonObjectOfOthers,
		},
		"one of several is taken": {
			manifests: lab.Manifests(mapNamed("a"), lab.Settings, mapNamed("z")),
			before:    func(l *lab.Lab) { l.Create(lab.ConfigMaps, l.Unique, lab.Settings) },
			reason:    "ConfigMap settings: ObjectExists", says: `belongs to field manager "kubectl-create"`, cause: v1.ReasonObjectOfOthers,
		},
		"one of the whole cluster is taken": {
			manifests: lab.Manifests(lab.Settings, lookedRole),
			before: func(l *lab.Lab) {
				l.Create(roles, "", lookedRole)
				l.Cleanup(func() { _ = l.Others.Resource(roles).Delete(context.Background(), l.Unique, metav1.DeleteOptions{}) })
			},
			reason: "ClusterRole NAME: ObjectExists", says: `belongs to field manager "kubectl-create"`, cause: v1.ReasonObjectOfOthers,
		},
		"one is being deleted": {
			manifests: lab.Manifests(mapNamed("a"), lab.Settings),
			before: func(l *lab.Lab) {
				l.Create(lab.ConfigMaps, l.Unique, lab.Settings)
				l.Edit(lab.ConfigMaps, "settings", `{metadata: {finalizers: [example.com/hold]}}`)
				l.Delete(lab.ConfigMaps, l.Unique, "settings")
				l.Cleanup(func() { _ = l.TryEdit(lab.ConfigMaps, "settings", `{metadata: {finalizers: null}}`) })
			},
			reason: "ConfigMap settings: WaitingForStage", says: "is being deleted", cause: v1.ReasonBeingDeleted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			if test.before != nil {
				test.before(l)
			}
			objects := l.Prepare(test.manifests)
			for _, looks := range []bool{true, false} {
				var progress apply.Progress
				writes := l.Writes(func() {
					rollout := apply.NewRollout(l.Owner, objects, nil, apply.RolloutOptions{TargetNamespace: l.Unique, LookFirst: looks})
					progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t)
				})
				if (len(writes) == 0) != looks {
					t.Errorf("with LookFirst %t it writes %q", looks, writes)
				}
				if !looks {
					continue
				}
				notes := slices.Concat(progress.Refused, progress.Waiting)
				if diff := cmp.Diff([]string{strings.Replace(test.reason, "NAME", l.Unique, 1)}, lab.Reasons(notes)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				if notes[0].Cause != test.cause {
					t.Errorf("the cause is %q, want %q", notes[0].Cause, test.cause)
				}
				if message := notes[0].Message; !strings.Contains(message, test.says) || !strings.Contains(message, "nothing of this revision is written") {
					t.Error(message)
				}
			}
		})
	}
}

// TestNoNamespaceIsMadeBeforeTheLook fails if the revision's own namespace is written before the check.
func TestNoNamespaceIsMadeBeforeTheLook(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Manifests(lab.Settings, lab.Custom("Widget", "v1", "last")), lab.CreateNamespace)
	progress := l.Rollout(objects, nil, apply.RolloutOptions{TargetNamespace: l.Unique, LookFirst: true})
	if diff := cmp.Diff([]string{"Widget last: KindNotServed"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if l.Get(lab.Namespaces, "", l.Unique) != nil {
		t.Error("the namespace is there")
	}
}

// TestWhatTheRevisionBringsCountsAsServed fails if a kind counts as not served that a definition or an APIService of
// the revision adds, also while its existing objects can't be listed.
func TestWhatTheRevisionBringsCountsAsServed(t *testing.T) {
	l := lab.New(t)
	options := apply.RolloutOptions{TargetNamespace: l.Unique, LookFirst: true}
	t.Run("by a definition", func(t *testing.T) {
		l.Namespace()
		first := lab.Manifests(lab.Definition("Widget", "Namespaced", "v2"), lab.Custom("Widget", "v1", "first"))
		progress := l.Rollout(l.Prepare(first), nil, options)
		if !progress.Complete {
			t.Fatal(progress.Refused)
		}
		definition := "widgets." + l.Unique + ".example.com"
		convert := func(conversion string) {
			body := []byte(`{"spec":{"conversion":` + conversion + `}}`)
			_, err := l.Others.Resource(lab.Definitions).Patch(context.Background(), definition, types.MergePatchType, body, metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		}
		convert(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}}`)
		defer convert(`{"strategy":"None","webhook":null}`)
		second := l.Widgets()
		second.Version = "v2"
		l.Eventually("the kind can not be listed", func() bool {
			_, err := l.Others.Resource(second).List(t.Context(), metav1.ListOptions{})
			return err != nil
		})
		more := l.Prepare(lab.Manifests(first, lab.Custom("Widget", "v2", "second"), lab.Custom("Widget", "v2", "third"), lab.Settings))
		rollout := apply.NewRollout(l.Owner, more, apply.Planned(more, progress.Inventory), options)
		if _, err := rollout.Advance(t.Context(), l.Target); l.Get(lab.ConfigMaps, l.Unique, "settings") == nil {
			t.Errorf("nothing is written: %v", err)
		}
	})
	t.Run("by an APIService", func(t *testing.T) {
		l := lab.New(t)
		l.Namespace()
		objects := l.Prepare(lab.Manifests(lab.Custom("Widget", "v1", "first"), lab.Settings, localService))
		t.Cleanup(func() {
			_ = l.Others.Resource(lab.ApiServices).Delete(context.Background(), "v1."+l.Unique+".example.com", metav1.DeleteOptions{})
		})
		options.TargetNamespace = l.Unique
		progress := l.Rollout(objects, nil, options)
		if diff := cmp.Diff([]string{"Widget first: KindNotServed"}, lab.Reasons(progress.Refused)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if progress.Written != 2 {
			t.Errorf("%d objects are written", progress.Written)
		}
	})
}

// TestAKindThatIsGoneIsNotServed fails if the mapper's outdated entry for a deleted kind is used.
func TestAKindThatIsGoneIsNotServed(t *testing.T) {
	for name, customs := range map[string][]string{"one object": {"first"}, "several": {"first", "second"}} {
		t.Run(name, func(t *testing.T) {
			l := lab.New(t)
			l.Namespace()
			l.Create(lab.Definitions, "", lab.Definition("Widget", "Namespaced", ""))
			manifests := []string{lab.Settings}
			for _, custom := range customs {
				manifests = append(manifests, lab.Custom("Widget", "v1", custom))
			}
			kinds := &calls.Kinds{Mapper: l.Target.Mapper}
			l.Eventually("the mapper knows the kind", func() bool {
				_, served, err := kinds.Find(l.Objects(manifests[1])[0].GroupVersionKind())
				if !served {
					l.Target.Mapper.Reset()
				}
				return err == nil && served
			})
			objects := l.Prepare(lab.Manifests(manifests...))
			l.Unserve("widgets")
			var progress apply.Progress
			writes := l.Writes(func() { progress = l.Rollout(objects, nil, apply.RolloutOptions{LookFirst: true}) })
			if len(writes) > 0 || len(progress.Refused) != len(customs) || progress.Refused[0].Reason != "KindNotServed" {
				t.Errorf("refused %v, written %q", progress.Refused, writes)
			}
		})
	}
}

// TestAnUpgradeLooksAtItsNewNames fails if an upgrade changes an object before all of its new names are free, and if it
// does not continue once they are.
func TestAnUpgradeLooksAtItsNewNames(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	known := l.Install(l.Prepare(lab.Settings), nil)
	l.Create(lab.ConfigMaps, l.Unique, mapNamed("other"))
	objects := l.Prepare(strings.Replace(lab.TwoMaps, "green", "red", 1))
	rollout := apply.NewRollout(l.Owner, objects, apply.Planned(objects, known), apply.RolloutOptions{LookFirst: true})
	var progress apply.Progress
	advance := func() { progress = lab.Must(rollout.Advance(t.Context(), l.Target))(t) }
	if writes := l.Writes(advance); len(writes) > 0 {
		t.Errorf("it writes %q", writes)
	}
	if diff := cmp.Diff([]string{"ConfigMap other: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if entry := progress.Inventory.ByKey()[known[0].Key]; entry.UID != known[0].UID {
		t.Errorf("the inventory has %+v", entry)
	}
	l.Delete(lab.ConfigMaps, l.Unique, "other")
	if advance(); !progress.Complete {
		t.Errorf("it does not go on: %v", progress.Refused)
	}
}

// TestWhatTheLookCosts fails if the check reads each object instead of one list, reads in a namespace that does not
// exist, or calls anything in an upgrade without new names.
func TestWhatTheLookCosts(t *testing.T) {
	l := lab.New(t)
	manifests := lab.Manifests(lab.TwoMaps, mapNamed("third"), lookedRole, lab.Deployment)
	gets := func(objects string, known ownership.Inventory) (asked []string) {
		t.Helper()
		prepared := l.Prepare(objects, lab.CreateNamespace)
		rollout := apply.NewRollout(l.Owner, prepared, apply.Planned(prepared, known), apply.RolloutOptions{LookFirst: true})
		asked = l.Calls.During("GET", func() {
			if progress := lab.Must(rollout.Advance(t.Context(), l.Target))(t); !progress.Complete {
				t.Fatalf("refused %v, waiting %v", progress.Refused, progress.Waiting)
			}
		})
		slices.Sort(asked)
		return asked
	}
	namespace := "GET /api/v1/namespaces/" + l.Unique
	role := "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/" + l.Unique
	if diff := cmp.Diff([]string{namespace, namespace, role}, gets(manifests, nil)); diff != "" {
		t.Errorf("into a new namespace (-want +got):\n%s", diff)
	}
	all := l.Prepare(manifests, lab.CreateNamespace)
	known := l.Install(all, apply.Planned(all, nil)) // as after a crash
	changed := strings.NewReplacer("green", "red", "round", "square").Replace(manifests)
	if diff := cmp.Diff([]string(nil), gets(changed, known)); diff != "" {
		t.Errorf("of an upgrade without new names (-want +got):\n%s", diff)
	}
	more := lab.Manifests(manifests, mapNamed("fourth"), mapNamed("fifth"), strings.Replace(lab.Deployment, "{name: web}", "{name: second}", 1))
	want := []string{namespace + "/configmaps", "GET /apis/apps/v1/namespaces/" + l.Unique + "/deployments/second"}
	if diff := cmp.Diff(want, gets(more, known)); diff != "" {
		t.Errorf("of an upgrade with new names (-want +got):\n%s", diff)
	}
}

// TestALongListIsNotReadOn fails if more than one page of a list is read, or its first page counts as the whole list.
func TestALongListIsNotReadOn(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	var many []string
	for i := range 510 {
		many = append(many, fmt.Sprintf("a%03d", i))
	}
	err := calls.Each(t.Context(), append(many, "settings"), func(_ context.Context, name string) error {
		l.Create(lab.ConfigMaps, l.Unique, mapNamed(name))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var progress apply.Progress
	asked := l.Calls.During("GET "+"/api/v1/namespaces/"+l.Unique+"/", func() {
		progress = l.Rollout(l.Prepare(lab.TwoMaps), nil, apply.RolloutOptions{LookFirst: true})
	})
	slices.Sort(asked)
	maps := "GET /api/v1/namespaces/" + l.Unique + "/configmaps"
	if diff := cmp.Diff([]string{maps, maps + "/other", maps + "/settings"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ConfigMap settings: ObjectExists"}, lab.Reasons(progress.Refused)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheLookAfterACrashKnowsItsOwn fails if the check refuses objects that the installation itself wrote before its
// process ended.
func TestTheLookAfterACrashKnowsItsOwn(t *testing.T) {
	l := lab.New(t)
	objects := l.Prepare(lab.Manifests(lab.Widgets, mapNamed("other"), lookedRole))
	planned, options := apply.Planned(objects, nil), apply.RolloutOptions{LookFirst: true}
	ctx, crash := context.WithCancel(t.Context())
	l.Calls.Before = func(call string) {
		if strings.HasPrefix(call, "PATCH") && strings.Contains(call, "/widgets/") {
			crash()
		}
	}
	rollout := apply.NewRollout(l.Owner, objects, planned, options)
	l.Eventually("the process ends in the midst", func() bool {
		_, err := rollout.Advance(ctx, l.Target)
		return err != nil
	})
	l.Calls.Before = nil
	if progress := l.Rollout(objects, planned, options); !progress.Complete {
		t.Errorf("refused %v", progress.Refused)
	}
}

// TestTheLookLetsAdoptionPass fails if the check refuses objects to adopt, or objects that another installation left.
func TestTheLookLetsAdoptionPass(t *testing.T) {
	l := lab.New(t)
	l.Namespace()
	l.Create(lab.ConfigMaps, l.Unique, lab.Settings)
	l.As("monitoring", func() { l.Install(l.Prepare(mapNamed("other")), nil) })
	objects := l.Prepare(lab.TwoMaps)
	options := apply.RolloutOptions{LookFirst: true, NameOf: l.Named(l.Unique)}
	refused := func(names string, want ...string) {
		t.Helper()
		options.NameOf = l.Named(strings.Fields(names)...)
		progress := l.Rollout(objects, nil, options)
		got := lab.Reasons(progress.Refused)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	refused("", "ConfigMap other: ObjectExists", "ConfigMap settings: ObjectExists")
	options.Adopt = true
	refused("monitoring", "ConfigMap other: ObjectExists")
	options.GaveUp = func(context.Context, string, ownership.Key) (bool, error) { return true, nil }
	refused("monitoring")
}
