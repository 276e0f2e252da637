package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/clusterapi"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// The Cluster that is upgraded, and the one beside it. The network in version bridging fits the Kubernetes versions before and after.
var upgraded, neighbour = sandbox.TeamClusters()[0], sandbox.TeamClusters()[1]

const (
	bridging      = "1.1.0"
	before, after = binaries.Older, binaries.Newer
)

// upgradeLimit is the most that the part on Cluster API may add to the demo, its sandbox included, but not what builds it.
const upgradeLimit = time.Minute

// gates are the add-ons that an upgrade waits for.
var gates = []string{"cni", "cloud", "storage"}

func (s *story) upgradeSteps() []step {
	return []step{
		{"an upgrade of Kubernetes is held, since the network fits one side only", s.upgradeHeld},
		{"a version that fits both sides lets the control plane go, and workers follow when all is right", s.upgradeGoes},
		{"the Cluster beside it in the namespace stays where it was", s.neighbourStays},
	}
}

func (s *story) upgradeHeld(ctx context.Context) error {
	key := types.NamespacedName{Namespace: sandbox.Team, Name: upgraded.Name}
	management := s.box.Client(sandbox.Management)
	// Its webhook asks the user cluster first, which may take it some tries.
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = clusterapi.SetVersion(ctx, management, key, "v"+after)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("asking for Kubernetes %s: %w", after, last)
	}
	available := sandbox.AvailableIn(upgraded)
	err = s.box.Await(ctx, sandbox.Management, available, func(client.Object) error {
		return expect.Condition(available, kubermaticv1.ConditionUpgradeHeld, "True", kubermaticv1.ReasonBeforeControlPlane)
	})
	if err != nil {
		return err
	}
	for _, condition := range available.Status.Conditions {
		if condition.Type == kubermaticv1.ConditionUpgradeHeld {
			s.progress.Printf("  %s, %s: %s", upgraded.Name, condition.Reason, condition.Message)
		}
	}
	seen, err := s.look(ctx, upgraded)
	if err == nil && (seen.controlPlane != before || seen.workers != before) {
		err = fmt.Errorf("it is held and moves: %s", seen)
	}
	return err
}

// upgradeGoes offers the version that fits both sides, and follows what becomes of it until the upgrade is over.
func (s *story) upgradeGoes(ctx context.Context) error {
	if err := s.offerBridging(ctx); err != nil {
		return err
	}
	var told string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		seen, err := s.look(ctx, upgraded)
		if err != nil {
			return false, err
		}
		if line := seen.String(); line != told {
			told = line
			s.progress.Printf("  %s: %s", upgraded.Name, line)
		}
		return seen.isOver(), seen.isInOrder()
	})
	if err != nil {
		return fmt.Errorf("%w; seen last: %s", err, told)
	}
	return nil
}

func (s *story) offerBridging(ctx context.Context) error {
	master := s.box.Client(sandbox.Master)
	found := catalogue("infrastructure", sandbox.Namespace)
	if err := master.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return fmt.Errorf("reading the catalogue of the network: %w", err)
	}
	addon := &found.Spec.Addons[slices.IndexFunc(found.Spec.Addons, func(a kubermaticv1.Addon) bool { return a.Name == "cni" })]
	version := *addon.Versions[0].DeepCopy()
	version.Version, version.Source.Git.Path = bridging, "cni/1.1"
	version.Constraints = &kubermaticv1.Constraints{K8sVersion: ">= 1.36, < 1.38"}
	addon.Versions = append(addon.Versions, version)
	if err := master.Update(ctx, found); err != nil {
		return fmt.Errorf("offering the network in version %s: %w", bridging, err)
	}
	return nil
}

func (s *story) neighbourStays(ctx context.Context) error {
	seen, err := s.look(ctx, neighbour)
	if err != nil {
		return err
	}
	if seen.controlPlane != before || seen.workers != before || seen.held != kubermaticv1.ReasonNotUpgrading {
		return fmt.Errorf("%s moved too: %s", neighbour.Name, seen)
	}
	s.progress.Printf("  %s: %s", neighbour.Name, seen)
	return nil
}

// progressOf is how far the upgrade of a Cluster is.
type progressOf struct {
	controlPlane, workers string
	// held is the reason of condition UpgradeHeld.
	held string
	// versions of the gates, and the Kubernetes versions that they were found right for, in the order of gates.
	versions, rightFor []string
}

// look reads the Cluster and its condition first and the gates after them: what went too early is never taken for later than the gates.
func (s *story) look(ctx context.Context, cluster sandbox.UserCluster) (progressOf, error) {
	management := s.box.Client(sandbox.Management)
	spread, err := clusterapi.Versions(ctx, management, types.NamespacedName{Namespace: sandbox.Team, Name: cluster.Name})
	if err != nil {
		return progressOf{}, fmt.Errorf("reading how far %s is: %w", cluster.Name, err)
	}
	plain := func(version string) string { return strings.TrimPrefix(version, "v") }
	seen := progressOf{controlPlane: plain(spread.ControlPlane)}
	for _, pools := range []map[string]string{spread.Deployments, spread.Pools} {
		for _, version := range pools {
			seen.workers = max(seen.workers, plain(version))
		}
	}
	available := sandbox.AvailableIn(cluster)
	if err := management.Get(ctx, client.ObjectKeyFromObject(available), available); err != nil {
		return seen, fmt.Errorf("reading what is available in %s: %w", cluster.Name, err)
	}
	for _, condition := range available.Status.Conditions {
		if condition.Type == kubermaticv1.ConditionUpgradeHeld {
			seen.held = condition.Reason
		}
	}
	for _, gate := range gates {
		one := &kubermaticv1.AddonInstallation{}
		if err := management.Get(ctx, types.NamespacedName{Namespace: sandbox.Team, Name: cluster.Name + "." + gate}, one); err != nil {
			return seen, fmt.Errorf("reading gate %q of %s: %w", gate, cluster.Name, err)
		}
		seen.versions = append(seen.versions, one.Status.Version)
		applied := kubermaticv1.AppliedState{}
		if one.Status.LastApplied != nil {
			applied = *one.Status.LastApplied
		}
		seen.rightFor = append(seen.rightFor, plain(applied.K8sVersion))
	}
	return seen, nil
}

// isInOrder complains of a control plane that goes before the network fits it, and of workers before all gates are right.
func (p progressOf) isInOrder() error {
	if p.controlPlane != before && p.versions[0] != bridging {
		return fmt.Errorf("the control plane goes before the network: %s", p)
	}
	areFree := p.workers != before || p.controlPlane != before && p.held == kubermaticv1.ReasonNotUpgrading
	if areFree && slices.ContainsFunc(p.rightFor, func(version string) bool { return version != after }) {
		return fmt.Errorf("workers may go before what they need: %s", p)
	}
	return nil
}

func (p progressOf) isOver() bool {
	return p.controlPlane == after && p.workers == after && p.held == kubermaticv1.ReasonNotUpgrading
}

func (p progressOf) String() string {
	var installed []string
	for i, version := range p.versions {
		installed = append(installed, gates[i]+" "+version)
	}
	return fmt.Sprintf("control plane %s, workers %s; %s; %s", p.controlPlane, p.workers, strings.Join(installed, ", "), p.held)
}
