package addonset_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when an item is installed although the platform's values are missing, or when what is installed gets no grant that holds for it.
func TestAnItemWaitsForThePlatformsValuesAndIsGrantedThem(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.useKey()
	w.offers("web", "1.0.0")
	w.start()
	set := w.write(w.set("monitoring", atOnce, func(set *v1.AddonSet) {
		set.Spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: "shared"}
	}))
	w.open(set, 1)
	expect.Object(t, w.seed, copyOf(set), func(found *v1.AddonSet) error {
		for _, one := range found.Status.Clusters {
			if one.Reason == v1.ReasonValuesMissing {
				return nil
			}
		}
		return fmt.Errorf("nobody is told: %+v", found.Status.Clusters)
	})
	if made := len(w.installed("web")); made != 0 {
		t.Errorf("%d installations without values", made)
	}
	w.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "shared", Labels: map[string]string{v1.LabelUse: v1.UseValues}},
		Data:       map[string][]byte{"values.yaml": []byte("password: canary-string")},
	})
	w.open(set, 1)
	expect.Eventually(t, expect.Patience, func() error {
		w.open(set, 1)
		for _, live := range w.installed("web") {
			if _, isGranted := w.marks.Granted(live); isGranted {
				return nil
			}
		}
		return fmt.Errorf("nothing is granted")
	})
}
