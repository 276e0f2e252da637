package addonset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// deviates writes annotation deviations of a Cluster.
func (w *world) deviates(cluster, value string) {
	w.t.Helper()
	expect.Change(w.t, w.seed, &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, func(of *kkpv1.Cluster) {
		if of.Annotations == nil {
			of.Annotations = map[string]string{}
		}
		of.Annotations[v1.AnnotationDeviations] = value
	})
}

// hasVersion waits until exactly these clusters have a version of web.
func (w *world) hasVersion(version string, clusters ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if at := w.at(version); !slices.Equal(at, clusters) {
			return fmt.Errorf("%q have version %s, want %q", at, version, clusters)
		}
		return nil
	})
}

// TestOwnersDeviateWhereTheSetAllowsIt: one owner leaves an item out, another pins its version. Both are left out of the rollout, and the
// others get the next version. Once the set no longer allows it, both get what all others have. The test fails when an owner changes
// anything without the set's permission, when the status does not name owner and reason, and when a rollout waits for them.
func TestOwnersDeviateWhereTheSetAllowsIt(t *testing.T) {
	w := newWorld(t, 4, 1)
	w.offers("web", "1.0.0")
	of := w.write(w.set("tools"))
	w.deviates(w.names[1], `[{"item":"web","optOut":true,"by":"team-a","why":"has its own"}]`)
	w.deviates(w.names[2], `[{"set":"tools","item":"web","version":"1.0.0","by":"team-b","why":"the new one is slow"}]`)
	w.start()
	w.open(of, 2)
	w.says(of, v1.ReasonComplete, current(4)) // the item does not allow it
	w.hasVersion("1.0.0", w.names...)

	of.Spec.Addons[0].AllowOptOut = true
	w.write(of)
	w.open(of, 2)
	w.hasVersion("1.0.0", w.names[0], w.names[2], w.names[3])
	w.offers("web", "1.0.0", "1.1.0")
	w.open(of, 2)
	w.hasVersion("1.1.0", w.names[0], w.names[3])
	found := w.says(of, v1.ReasonComplete, current(2))
	w.rows(of, w.names[1]+" rest Sick Deviates", w.names[2]+" rest Sick Deviates")
	for i, words := range [][]string{{`item "web" is left out by "team-a"`, "has its own"}, {`version "1.0.0" by "team-b"`, "is slow"}} {
		for _, word := range words {
			if message := found.Status.Clusters[i].Message; !strings.Contains(message, word) {
				t.Errorf("it says %q, want %q in it", message, word)
			}
		}
	}

	of.Spec.Addons[0].AllowOptOut = false
	w.write(of)
	w.open(of, 2)
	w.hasVersion("1.1.0", w.names...)
	w.says(of, v1.ReasonComplete, current(4))
}
