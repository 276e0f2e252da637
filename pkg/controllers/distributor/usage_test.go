package distributor_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// TestUsageIsCounted holds that the master knows which versions installations on a seed have, that
// it notices changes, and that the last figures of a seed outlive the seed's end and the manager's.
func TestUsageIsCounted(t *testing.T) {
	w := newWorld(t)
	seed := w.seed("north", kubeconfigOf("seed"))
	expect.Create(w.t, w.master, w.catalogueOf("web", map[string][]string{w.platform: {"1.0.0", "1.1.0"}}))
	for name, version := range map[string]string{"one": "v1.0.0", "two": "1.0.0", "three": "1.1.0", "four": ""} {
		w.installation(name, version)
	}
	often := func(options *distributor.Options) { options.CountEvery = 50 * time.Millisecond }
	stop := w.start(often)
	expectUsage(w, "north", func(usage catalogue.SeedUsage) error {
		for version, want := range map[string]int{"1.0.0": 2, "1.1.0": 1, "": 1} {
			if got := usage.Installations[catalogue.UsedVersion{Addon: w.platform, Version: version}]; got != want {
				return fmt.Errorf("%d installations of version %q, want %d", got, version, want)
			}
		}
		return nil
	})
	w.installation("five", "1.1.0")
	expectUsage(w, "north", counts(w, 2))
	stop()

	expect.Change(w.t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "kubeconfig-north"}}, func(secret *corev1.Secret) {
		secret.Data["kubeconfig"] = deadKubeconfig(t)
	})
	w.start(often)
	expectUsage(w, "north", func(usage catalogue.SeedUsage) error {
		if usage.LastSeen.IsZero() {
			return fmt.Errorf("the seed is dead, and its figures are given as new: %+v", usage)
		}
		return counts(w, 2)(usage)
	})
	expect.Delete(t, w.master, seed)
	expect.Object(t, w.master, usageMap(w), func(found *corev1.ConfigMap) error {
		if len(found.Data) > 0 {
			return fmt.Errorf("the Seed is gone, and its figures are not: %v", found.Data)
		}
		return nil
	})
}

// counts wants that many installations of version 1.1.0.
func counts(w *world, want int) func(catalogue.SeedUsage) error {
	return func(usage catalogue.SeedUsage) error {
		if got := usage.Installations[catalogue.UsedVersion{Addon: w.platform, Version: "1.1.0"}]; got != want {
			return fmt.Errorf("%d installations of version 1.1.0, want %d", got, want)
		}
		return nil
	}
}

// installation makes one on the seed, of an add-on named after the test's world: seeds are shared
// by all of them.
func (w *world) installation(name, version string) {
	w.t.Helper()
	object := given.Installation("default", w.platform+"-"+name, w.platform, "default")
	seed := w.client("seed")
	expect.Create(w.t, seed, object)
	w.t.Cleanup(func() { _ = seed.Delete(context.Background(), object) })
	before := object.DeepCopy()
	object.Status.Version = version
	expect.PatchStatus(w.t, seed, object, client.MergeFrom(before))
}

func usageMap(w *world) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.ConfigMapUsage}}
}

func expectUsage(w *world, seed string, holds func(catalogue.SeedUsage) error) {
	w.t.Helper()
	expect.Object(w.t, w.master, usageMap(w), func(found *corev1.ConfigMap) error {
		usage, err := catalogue.DecodeUsage(seed, found.Data[seed])
		if err != nil {
			return err
		}
		return holds(usage)
	})
}
