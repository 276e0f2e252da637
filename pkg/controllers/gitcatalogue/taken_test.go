package gitcatalogue_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// TestATakenNameHoldsUpItsAddonOnly: somebody's catalogue has the name that a generated one would
// get. The rest of the commit is taken, the one in git names the object, nothing is tried over and
// over, and the add-on comes once the name is free.
func TestATakenNameHoldsUpItsAddonOnly(t *testing.T) {
	for _, role := range []string{"", v1.RoleMerged} {
		t.Run("role "+role, func(t *testing.T) {
			w := newWorld(t)
			first := w.commit(map[string]string{"a.yaml": file("loki", "1.0.0", "tempo", "1.0.0")})
			w.start("", "")
			object := w.catalogue("platform")
			expect.Create(w.t, w.client, object)
			w.expectAddons(object, first, "loki", "1.0.0", "tempo", "1.0.0")

			sum := sha256.Sum256([]byte(string(object.UID) + "/mimir"))
			squatter := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{
				Namespace: w.platform, Name: "platform-mimir-" + hex.EncodeToString(sum[:3]),
			}, Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom}}
			if role != "" {
				squatter.Labels = map[string]string{v1.LabelRole: role}
			}
			expect.Create(w.t, w.client, squatter)
			second := w.commit(map[string]string{"a.yaml": file("loki", "2.0.0", "mimir", "1.0.0", "thanos", "1.0.0")})
			w.look(object)
			w.expectAddons(object, second, "loki", "2.0.0", "thanos", "1.0.0")
			reported := w.expectFetched(object, "False", v1.ReasonGeneratedNameTaken)
			if !strings.Contains(reported, squatter.Name) || !strings.Contains(reported, `add-on "mimir"`) || !strings.Contains(reported, "delete that AddonCatalogue") {
				t.Errorf("it says %q", reported)
			}
			version := object.ResourceVersion
			w.steady(func() error {
				if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.ResourceVersion != version {
					return fmt.Errorf("it is written over and over: %v", err)
				}
				return nil
			})
			if events := w.events(object); !slices.Contains(events, v1.EventFetched) {
				t.Errorf("events %v", events)
			}
			expect.Delete(t, w.client, squatter)
			if role != "" { // nobody watches those: the next look finds it
				w.look(object)
			}
			w.expectAddons(object, second, "loki", "2.0.0", "mimir", "1.0.0", "thanos", "1.0.0")
			w.expectFetched(object, "True", v1.ReasonFetched)
		})
	}
}
