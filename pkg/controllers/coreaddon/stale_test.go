package coreaddon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestStaleListsRemoveNoCoreAddon (RS10): A process whose caches are stale, or empty, removes no core add-on. The
// test fails when the Cluster, or the custom list, is not read past the cache before a removal.
func TestStaleListsRemoveNoCoreAddon(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("stale")
	w.merged(v1.CatalogueCore, "kube-proxy")
	w.merged(v1.CatalogueCustom, "prometheus")
	w.merged(v1.CatalogueCustom, "loki")
	const first = `{name: monitoring, addonRef: {name: prometheus}, targetNamespace: monitoring, clusterSelector: {matchLabels: {tier: production}}}`
	const second = `{name: logs, addonRef: {name: loki}, targetNamespace: logs}`
	w.listed("[" + first + "]")
	older := w.coreList()
	w.listed("[" + first + ", " + second + "]")
	of.Labels["tier"] = "production"
	expect.Update(t, w.seed, of)
	stop := w.start()
	var before []*v1.AddonInstallation
	for _, name := range []string{"kube-proxy", "monitoring", "logs"} {
		before = append(before, w.exists(of, name))
	}
	stop()
	for name, old := range map[string]kit.Stale{
		"no Clusters":      {Plural: "clusters", Edit: func([]any) []any { return []any{} }},
		"no installations": {Plural: "addoninstallations", Edit: func([]any) []any { return []any{} }},
		"no list":          {Plural: "configmaps", Edit: func([]any) []any { return []any{} }},
		"no catalogues":    {Plural: "addoncatalogues", Edit: func([]any) []any { return []any{} }},
		"the Cluster from before it was labelled": {Plural: "clusters", Edit: func(items []any) []any {
			for _, item := range items {
				delete(item.(map[string]any)["metadata"].(map[string]any)["labels"].(map[string]any), "tier")
			}
			return items
		}},
		"the list from before an edit": {Plural: "configmaps", Edit: func([]any) []any { return []any{older} }},
	} {
		t.Run(name, func(t *testing.T) {
			stop := w.start(func(next http.RoundTripper) http.RoundTripper {
				old.Next = next
				return old
			})
			defer stop()
			w.steady(func() error {
				for _, one := range before {
					found := &v1.AddonInstallation{}
					if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(one), found); err != nil {
						return err
					}
					if found.UID != one.UID || found.Generation != one.Generation || !found.DeletionTimestamp.IsZero() || !hasProtection(found) {
						t.Fatalf("%s is %+v", one.Name, found.ObjectMeta)
					}
				}
				return nil
			})
		})
	}
	w.start() // unwanted ones are removed
	w.listed("[" + first + "]")
	expect.Gone(t, w.seed, installationOf(of, "logs"))
}

// coreList is the custom list as lists of the API server have it.
func (w *world) coreList() (item any) {
	w.t.Helper()
	found := &corev1.ConfigMap{}
	expect.Get(w.t, w.seed, client.ObjectKey{Namespace: w.platform, Name: coreaddon.ListName}, found)
	content, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(content, &item)
	}
	expect.NoError(w.t, err)
	return item
}

// TestACacheWithoutTheCoreSetRemovesNothingAtOnce (RS10): A process whose cache lacks the Core set does not remove at
// once the installations that the set stages. The test fails when a removal outside of a Core set does not read
// copies past the cache.
func TestACacheWithoutTheCoreSetRemovesNothingAtOnce(t *testing.T) {
	w := newWorld(t)
	of := w.cluster("unstaged")
	w.merged(v1.CatalogueCustom, "loki")
	w.listed(`[{name: logs, addonRef: {name: loki}, targetNamespace: logs}]`)
	stop := w.start()
	before := w.exists(of, "logs")
	stop()
	w.coreSet()
	w.listed("[]")
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return kit.Stale{Next: next, Plural: "addonsets", Edit: func([]any) []any { return []any{} }}
	})
	w.steady(func() error {
		found := installationOf(of, "logs")
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if found.UID != before.UID || !found.DeletionTimestamp.IsZero() || !hasProtection(found) {
			t.Fatalf("it is %+v", found.ObjectMeta)
		}
		return nil
	})
}

// TestACoreRevisionThatTheCacheLacksIsNotBegunAgain (RS40): A process whose cache has the Core set from before a
// revision continues with that revision. The test fails when it begins the revision again, which forgets failures.
func TestACoreRevisionThatTheCacheLacksIsNotBegunAgain(t *testing.T) {
	w := newWorld(t)
	player, _ := w.content("a")
	clusters := w.clusters(3)
	stop := w.start()
	w.everywhere(clusters, "rbac")
	player.play()
	of := w.coreSet(ungrouped)
	player.until(func() error { return w.setSays(of, v1.ReasonComplete) })
	player.play()
	older, before := w.raw(of), of.Status.Revision
	w.content("b")
	expect.Eventually(t, expect.Patience, func() error { return w.revised(of, &before) })
	stop()
	expect.Eventually(t, expect.Patience, func() error { // later starts are in another second
		if !time.Now().After(of.Status.StartedAt.Time) {
			return errors.New("it is the second in which the revision began")
		}
		return nil
	})
	asked := asks{object: "/addonsets/" + of.Name, found: &atomic.Bool{}}
	w.start(func(next http.RoundTripper) http.RoundTripper {
		asked.next = next
		return kit.Stale{Next: asked, Plural: "addonsets", Edit: func([]any) []any { return []any{older} }}
	})
	expect.Eventually(t, expect.Patience, func() error {
		if !asked.found.Load() {
			return errors.New("no pass came as far as the revision yet")
		}
		return nil
	})
	w.steady(func() error {
		found := &v1.AddonSet{}
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(of), found); err != nil {
			return err
		}
		if found.Status.Revision != before || !found.Status.StartedAt.Equal(of.Status.StartedAt) {
			return fmt.Errorf("revision %s of %s became %s of %s", before, of.Status.StartedAt, found.Status.Revision, found.Status.StartedAt)
		}
		return nil
	})
}

// raw is a copy as lists of the API server have it.
func (w *world) raw(of *v1.AddonSet) (item any) {
	w.t.Helper()
	found := &v1.AddonSet{}
	expect.Get(w.t, w.seed, client.ObjectKeyFromObject(of), found)
	found.APIVersion, found.Kind = v1.GroupVersion.String(), "AddonSet"
	content, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(content, &item)
	}
	expect.NoError(w.t, err)
	return item
}

// asks records a call for one object.
type asks struct {
	next   http.RoundTripper
	object string
	found  *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (a asks) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(strings.TrimSuffix(request.URL.Path, "/status"), a.object) {
		a.found.Store(true)
	}
	return a.next.RoundTrip(request)
}

// TestWhatACacheDoesNotHaveYetIsNotWrittenAgain: reconciliations before the cache has a write use the written object.
// The test fails when it is stored only under a Core set.
func TestWhatACacheDoesNotHaveYetIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.merged(v1.CatalogueCore, "rbac")
	of := w.cluster("behind")
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return kit.Stale{Next: next, Plural: "addoninstallations", Edit: func([]any) []any { return []any{} }}
	})
	w.exists(of, "rbac")
	for round := range 3 {
		looks := w.looks.one.Load()
		expect.Change(w.t, w.seed, of, func(c *kkpv1.Cluster) { c.Labels["round"] = fmt.Sprint(round) })
		expect.Eventually(t, expect.Patience, func() error {
			if w.looks.one.Load() == looks {
				return errors.New("the cluster was not looked at")
			}
			return nil
		})
	}
	w.steady(func() error {
		if written := w.writes.number.Load(); written != 1 {
			return fmt.Errorf("%d writes of one core add-on", written)
		}
		return nil
	})
}
