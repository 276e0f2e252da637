package addonset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestStaleListsRemoveNothing (RS10): A process whose caches are stale or empty when it starts removes nothing and
// repeats no write; once they are filled it finds all unchanged. The test fails when removals are not checked past
// the cache (of the Cluster, of the set), and when an installation that the cache lacks is created without asking the
// API server for it.
func TestStaleListsRemoveNothing(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	w.offers("more", "1.0.0")
	of := w.write(w.set("tools", atOnce))
	stop := w.start()
	w.says(of, v1.ReasonComplete, current(2))
	var older map[string]any
	w.fetch(of, &older)
	w.edit(of, func(of *v1.AddonSet) {
		item := of.Spec.Addons[0]
		item.Name, item.AddonRef.Name, item.TargetNamespace = "more", "more", "more"
		of.Spec.Addons = append(of.Spec.Addons, item)
	})
	done := w.says(of, v1.ReasonComplete, current(2))
	stop()
	web, more := w.installed("web"), w.installed("more")
	if len(web) != 2 || len(more) != 2 {
		t.Fatalf("%d and %d installations", len(web), len(more))
	}
	const noCopies = "no copies"
	for name, old := range map[string]kit.Stale{
		"no Clusters":      {Plural: "clusters", Edit: func([]any) []any { return []any{} }},
		"no installations": {Plural: "addoninstallations", Edit: func([]any) []any { return []any{} }},
		noCopies:           {Plural: "addonsets", Edit: func([]any) []any { return []any{} }},
		"no catalogues":    {Plural: "addoncatalogues", Edit: func([]any) []any { return []any{} }},
		"Clusters from before they were labelled": {Plural: "clusters", Edit: func(items []any) []any {
			for _, item := range items {
				delete(item.(map[string]any)["metadata"].(map[string]any), "labels")
			}
			return items
		}},
		"the copy from before an edit": {Plural: "addonsets", Edit: func(items []any) []any {
			for i, item := range items {
				if item.(map[string]any)["metadata"].(map[string]any)["uid"] == older["metadata"].(map[string]any)["uid"] {
					items[i] = older
				}
			}
			return items
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			stop := w.start(func(next http.RoundTripper) http.RoundTripper {
				old.Next = next
				return old
			})
			if name == noCopies {
				w.quietWhile("addonset-clusters", "addonset-clusters") // there is no set to reconcile
			} else {
				w.quiet()
			}
			stop()
			for of, before := range map[string]map[string]*v1.AddonInstallation{"web": web, "more": more} {
				now := w.installed(of)
				for cluster, one := range before {
					if found := now[cluster]; found == nil || found.UID != one.UID || found.Generation != one.Generation || !found.DeletionTimestamp.IsZero() {
						t.Errorf("%s in %s is %+v", of, cluster, found)
					}
				}
			}
		})
	}
	w.t = t
	w.start()
	w.says(of, v1.ReasonComplete, current(2))
	w.quiet()
	if found := w.says(of, v1.ReasonComplete); found.Status.Revision != done.Status.Revision {
		t.Errorf("revision %q became %q", done.Status.Revision, found.Status.Revision)
	}
}

// TestACopyThatTheCacheLacksHoldsWhatItMayWant (RS10): A process whose list of copies lacks one removes no
// installation that this copy may claim: once the list is filled, the installation is passed on unchanged. The test
// fails when removals are not checked against the copies of the API server.
func TestACopyThatTheCacheLacksHoldsWhatItMayWant(t *testing.T) {
	w := newWorld(t, 2, 0)
	w.offers("web", "1.0.0")
	tools := w.write(w.set("tools", atOnce))
	stop := w.start()
	w.says(tools, v1.ReasonComplete, current(2))
	stop()
	before := w.installed("web")[w.names[0]]
	w.write(w.set("other", atOnce))
	w.edit(tools, without("0"))
	stop = w.start(func(next http.RoundTripper) http.RoundTripper {
		return kit.Stale{Next: next, Plural: "addonsets", Edit: func(items []any) []any {
			return slices.DeleteFunc(items, func(item any) bool {
				return item.(map[string]any)["metadata"].(map[string]any)["name"] == "other"
			})
		}}
	})
	w.stays("web", w.names[0])
	stop()
	w.start()
	w.goesOver("web", w.names[0], "other")
	if after := w.installed("web")[w.names[0]]; after.UID != before.UID {
		t.Errorf("it was made again: %s became %s", before.UID, after.UID)
	}
}

// TestARevisionThatTheCacheLacksIsNotBegunAgain (RS40): A process whose cache has the copy from before a revision, in
// which a canary failed, continues that revision, halted. The test fails when it begins the revision again, which
// forgets the failure.
func TestARevisionThatTheCacheLacksIsNotBegunAgain(t *testing.T) {
	w := newWorld(t, 2, 1, standins.Rule{Act: standins.Act{Takes: 100 * time.Millisecond}})
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	stop := w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(2))
	var older map[string]any
	w.fetch(of, &older)
	w.player.Direct(t, standins.Rule{Of: standins.AtVersion("web", "1.1.0"), Act: standins.Act{Fate: standins.RollsBack}})
	w.offers("web", "1.0.0", "1.1.0")
	halted := w.says(of, v1.ReasonHalted)
	stop()
	expect.Eventually(t, expect.Patience, func() error { // later starts are in another second
		if !time.Now().After(halted.Status.StartedAt.Time) {
			return errors.New("it is the second in which the revision began")
		}
		return nil
	})
	var began atomic.Bool
	w.start(func(next http.RoundTripper) http.RoundTripper {
		return kit.Stale{Next: noting(next, "/addonsets/tools", &began), Plural: "addonsets", Edit: func(items []any) []any {
			for i, item := range items {
				if item.(map[string]any)["metadata"].(map[string]any)["uid"] == older["metadata"].(map[string]any)["uid"] {
					items[i] = older
				}
			}
			return items
		}}
	})
	expect.Eventually(t, expect.Patience, func() error {
		if !began.Load() {
			return errors.New("no pass came as far as the revision yet")
		}
		return nil
	})
	w.steady(func() error {
		found := w.says(of, v1.ReasonHalted)
		if found.Status.Revision != halted.Status.Revision || !found.Status.StartedAt.Equal(halted.Status.StartedAt) {
			return fmt.Errorf("revision %s of %s became %s of %s",
				halted.Status.Revision, halted.Status.StartedAt, found.Status.Revision, found.Status.StartedAt)
		}
		return nil
	})
}

// noting records a call for one object.
func noting(next http.RoundTripper, object string, noted *atomic.Bool) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(strings.TrimSuffix(request.URL.Path, "/status"), object) {
			noted.Store(true)
		}
		return next.RoundTrip(request)
	})
}

// fetch reads a copy from the API server.
func (w *world) fetch(of *v1.AddonSet, into *map[string]any) {
	w.t.Helper()
	found := copyOf(of)
	expect.Get(w.t, w.seed, client.ObjectKeyFromObject(of), found)
	found.APIVersion, found.Kind = v1.GroupVersion.String(), "AddonSet"
	content, err := json.Marshal(found)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
