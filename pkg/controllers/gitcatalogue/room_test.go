package gitcatalogue_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a commit fills the master beyond what all Custom catalogues may have, or when what it had before goes, or nothing comes any more.
func TestACommitBeyondTheTotalsIsNotTaken(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"crowd-1", "crowd-2"} { // 9,985 versions each
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: name}}
		for i := range 80 {
			addon := v1.Addon{Name: v1.AddonName(fmt.Sprintf("%s-%d", name, i))}
			for j := range min(128, 9_985-i*128) {
				addon.Versions = append(addon.Versions, v1.AddonVersion{Version: fmt.Sprintf("1.%d.0", j)})
			}
			if len(addon.Versions) > 0 {
				object.Spec.Addons = append(object.Spec.Addons, addon)
			}
		}
		expect.Create(w.t, w.client, object)
	}
	first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0")})
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectAddons(object, first, "loki", "1.0.0")

	pairs := []string{"loki", "2.0.0"}
	for i := range 30 {
		pairs = append(pairs, fmt.Sprintf("more-%d", i), "1.0.0")
	}
	w.commit(map[string]string{"a.yaml": file(pairs...)})
	w.look(object)
	told := w.expectFetched(object, "False", v1.ReasonTooLarge)
	if !strings.Contains(told, "all Custom catalogues together would have more than 20000 versions") || !strings.Contains(told, "of commit "+first+" stay") {
		t.Error(told)
	}
	w.expectAddons(object, first, "loki", "1.0.0")

	last := w.commit(map[string]string{"a.yaml": file(pairs[:40]...)})
	w.look(object)
	w.expectAddons(object, last, pairs[:40]...)
}
