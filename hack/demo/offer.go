package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

func (s *story) reachesSeeds(ctx context.Context) error {
	authored := catalogue(sandbox.SampleCatalogue, sandbox.Namespace)
	err := s.box.Await(ctx, sandbox.Master, authored, func(client.Object) error {
		if err := expect.Condition(authored, kubermaticv1.ConditionReady, "True", ""); err != nil {
			return err
		}
		for _, seed := range authored.Status.Seeds {
			s.progress.Printf("  the master says: %s on %s is synced: %v", authored.Name, seed.Name, seed.Synced)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, seed := range sandbox.Seeds() {
		for _, addon := range authored.Spec.Addons {
			merged := catalogue(string(addon.Name), sandbox.CatalogueNamespace)
			if err := s.box.Client(seed).Get(ctx, client.ObjectKeyFromObject(merged), merged); err != nil {
				return fmt.Errorf("reading add-on %q on %s: %w", addon.Name, seed, err)
			}
			s.progress.Printf("  %s has %s", seed, strings.Join(sandbox.Offered(merged), ", "))
		}
	}
	return nil
}

func (s *story) offeredWhereItFits(ctx context.Context) error {
	const picky = "greeter 1.1.0" // fits Kubernetes 1.37 and newer
	for _, cluster := range sandbox.UserClusters() {
		available := catalogue(kubermaticv1.AvailableCatalogue, cluster.Namespace())
		if err := s.box.Client(cluster.Seed).Get(ctx, client.ObjectKeyFromObject(available), available); err != nil {
			return fmt.Errorf("reading what is available in %s: %w", cluster.Name, err)
		}
		offered, fits := slices.Contains(sandbox.Offered(available), picky), cluster.Release == binaries.Newer
		if offered != fits {
			return fmt.Errorf("%s, Kubernetes %s: %s is offered: %v, want %v", cluster.Name, cluster.Release, picky, offered, fits)
		}
		said := slices.ContainsFunc(available.Status.Excluded, func(e kubermaticv1.ExcludedVersion) bool {
			return e.Addon+" "+e.Version == picky && e.Reason == kubermaticv1.ExcludedK8sVersion
		})
		if said == fits {
			return fmt.Errorf("%s: status.excluded names %s with reason %s: %v, want %v",
				cluster.Name, picky, kubermaticv1.ExcludedK8sVersion, said, !fits)
		}
		s.progress.Printf("  %s, Kubernetes %s: %s is offered: %v", cluster.Name, cluster.Release, picky, offered)
	}
	return nil
}

func catalogue(name, namespace string) *kubermaticv1.AddonCatalogue {
	return &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
}
