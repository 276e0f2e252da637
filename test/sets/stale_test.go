package sets_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// none has lists of a kind be empty.
func none(plural string) kit.Stale {
	return kit.Stale{Plural: plural, Edit: func([]any) []any { return []any{} }}
}

// before has lists of a kind have an object as it was.
func before(plural string, older map[string]any) kit.Stale {
	uid := older["metadata"].(map[string]any)["uid"]
	return kit.Stale{Plural: plural, Edit: func(items []any) []any {
		for i, item := range items {
			if item.(map[string]any)["metadata"].(map[string]any)["uid"] == uid {
				items[i] = older
			}
		}
		return items
	}}
}

// RS10: All controllers of a seed begin with caches that are behind, or empty. Nothing is removed from user clusters, made anew there or
// written, and installations stay as they are; once caches are filled, everything is as it was. Red when a removal, by a set, of a core
// add-on or of what a Cluster that is away had, is not checked past the cache, and when an installation that the cache lacks is made without
// asking whether there is one.
func TestStaleListsRemoveNothingFromUserClusters(t *testing.T) {
	w := newWorld(t)
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "one"))
	w.runMaster()
	one := w.seeds["seed"]
	stop := one.run()
	of := w.set("tools", func(spec *v1.AddonSetSpec) {
		spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "ring", Operator: metav1.LabelSelectorOpExists}}
	})
	w.coreListed("[]")
	w.has("web", "one", amber, birch, cedar)
	w.says(of, v1.ReasonComplete)
	for _, cluster := range []string{amber, birch, cedar} {
		expect.Create(t, w.users[cluster], kit.Namespace(w.target+"-more"), kit.Namespace(w.target+"-logs"))
	}
	olderSet, olderList := w.raw(w.copyOf(of), "AddonSet"), w.raw(w.coreList(), "")
	w.edit(of, func(spec *v1.AddonSetSpec) {
		more := spec.Addons[0]
		more.Name, more.TargetNamespace = "more", w.target+"-more"
		spec.Addons = append(spec.Addons, more)
	})
	w.coreListed(fmt.Sprintf(
		`[{name: logs, addonRef: {name: web}, targetNamespace: %s-logs, clusterSelector: {matchLabels: {ring: "0"}}}]`, w.target))
	w.has("more", "one", amber, birch, cedar)
	w.has("logs", "one", amber)
	done := w.says(of, v1.ReasonComplete)
	stop()

	for name, old := range map[string]kit.Stale{
		"no Clusters": none("clusters"), "no installations": none("addoninstallations"), "no copies": none("addonsets"),
		"no catalogues": none("addoncatalogues"), "no list of core add-ons": none("configmaps"),
		"the copy from before an edit": before("addonsets", olderSet),
		"the list from before an edit": before("configmaps", olderList),
		"Clusters from before they were labelled": {Plural: "clusters", Edit: func(items []any) []any {
			for _, item := range items {
				delete(item.(map[string]any)["metadata"].(map[string]any), "labels")
			}
			return items
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			one.wrap = func(next http.RoundTripper) http.RoundTripper {
				behind := old
				behind.Next = next
				return behind
			}
			one.stale = old.Plural
			stop := one.run()
			defer stop()
			w.allStays()
		})
	}
	w.t, one.wrap, one.stale = t, nil, ""
	one.run()
	w.allStays()
	if found := w.says(of, v1.ReasonComplete); found.Status.Revision != done.Status.Revision {
		t.Errorf("revision %q became %q", done.Status.Revision, found.Status.Revision)
	}
	w.coreListed("[]") // what is to go goes
	expect.Gone(t, one.client, w.installation(amber, "logs"))
}

// allStays fails the test where an installation, or an object of one, is removed, made anew or written.
func (w *world) allStays() {
	w.t.Helper()
	all := []string{amber, birch, cedar}
	state := func() string {
		text := w.objects(asIs, w.target, all...) + w.objects(asIs, w.target+"-more", all...) + w.objects(asIs, w.target+"-logs", amber)
		for _, of := range []*v1.AddonInstallation{
			w.now(amber, "web"), w.now(birch, "web"), w.now(cedar, "web"),
			w.now(amber, "more"), w.now(birch, "more"), w.now(cedar, "more"), w.now(amber, "logs"),
		} {
			text += fmt.Sprintf("%s/%s %s %d %v %v %v\n",
				of.Namespace, of.Name, of.UID, of.Generation, of.DeletionTimestamp, of.Annotations, of.Labels)
		}
		return text
	}
	w.unchanged(soak, state)
}

func (w *world) coreList() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: coreaddon.ListName}}
}

// coreListed has the seed's list of core add-ons say that.
func (w *world) coreListed(text string) {
	w.t.Helper()
	put(w, w.coreList(), func(list *corev1.ConfigMap) { list.Data = map[string]string{coreaddon.ListKey: text} })
}

// copyOf is the seed's copy of a set.
func (w *world) copyOf(of *v1.AddonSet) *v1.AddonSet {
	return &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: of.Name}}
}

// raw is an object of the seed as lists of its API server have it.
func (w *world) raw(object client.Object, kind string) map[string]any {
	w.t.Helper()
	err := w.master.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)
	expect.NoError(w.t, err)
	if kind != "" {
		object.GetObjectKind().SetGroupVersionKind(v1.GroupVersion.WithKind(kind))
	}
	content, err := json.Marshal(object)
	made := map[string]any{}
	if err == nil {
		err = json.Unmarshal(content, &made)
	}
	expect.NoError(w.t, err)
	return made
}
