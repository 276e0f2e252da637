package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
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

// Versions of the sample add-on greeter and the Kubernetes that they need.
const (
	fitsNewer = "greeter 1.1.0" // Kubernetes 1.37 and newer
	fitsNext  = "greeter 1.2.0" // Kubernetes 1.38 and newer, which no cluster has
)

func (s *story) offeredWhereItFits(ctx context.Context) error {
	for _, cluster := range s.box.UserClusters() {
		available := sandbox.AvailableIn(cluster)
		if err := s.box.Client(cluster.Seed).Get(ctx, client.ObjectKeyFromObject(available), available); err != nil {
			return fmt.Errorf("reading what is available in %s: %w", cluster.Name, err)
		}
		for version, fits := range map[string]bool{fitsNewer: cluster.Release == binaries.Newer, fitsNext: false} {
			if err := offeredOrExcluded(available, version, fits); err != nil {
				return fmt.Errorf("%s, Kubernetes %s: %w", cluster.Name, cluster.Release, err)
			}
			s.progress.Printf("  %s, Kubernetes %s: %s is offered: %v", cluster.Name, cluster.Release, version, fits)
		}
	}
	return nil
}

// offeredOrExcluded is an error unless the version is offered where it fits, and otherwise excluded for Kubernetes' version.
func offeredOrExcluded(available *kubermaticv1.AddonCatalogue, version string, fits bool) error {
	if offered := slices.Contains(sandbox.Offered(available), version); offered != fits {
		return fmt.Errorf("%s is offered: %v, want %v", version, offered, fits)
	}
	excluded := slices.ContainsFunc(available.Status.Excluded, func(e kubermaticv1.ExcludedVersion) bool {
		return e.Addon+" "+e.Version == version && e.Reason == kubermaticv1.ExcludedK8sVersion
	})
	if excluded == fits {
		return fmt.Errorf("status.excluded has %s with reason %s: %v, want %v", version, kubermaticv1.ExcludedK8sVersion, excluded, !fits)
	}
	return nil
}

// queried asks the query endpoint for a cluster that does not exist yet.
func (s *story) queried(ctx context.Context) error {
	for release, fits := range map[string]bool{binaries.Newer: false, "1.38.0": true} {
		command := exec.CommandContext(ctx, s.box.Program("kubectl"), "--kubeconfig", s.box.QueryKubeconfig(s.first.Seed),
			"get", "--raw", "/api/v1/addons?k8sVersion="+release)
		command.Env = []string{"HOME=" + s.box.Folder}
		output, err := command.Output()
		if err != nil {
			return fmt.Errorf("asking the query endpoint of %s: %w", s.first.Seed, err)
		}
		var answer struct {
			Addons []kubermaticv1.Addon `json:"addons"`
		}
		if err := json.Unmarshal(output, &answer); err != nil {
			return fmt.Errorf("reading the answer of the query endpoint: %w", err)
		}
		found := &kubermaticv1.AddonCatalogue{Spec: kubermaticv1.AddonCatalogueSpec{Addons: answer.Addons}}
		if offered := slices.Contains(sandbox.Offered(found), fitsNext); offered != fits {
			return fmt.Errorf("for Kubernetes %s the query endpoint offers %s: %v, want %v", release, fitsNext, offered, fits)
		}
		s.progress.Printf("  a cluster on Kubernetes %s would be offered %s: %v", release, fitsNext, fits)
	}
	return nil
}

func catalogue(name, namespace string) *kubermaticv1.AddonCatalogue {
	return &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
}
