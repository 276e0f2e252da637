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

// upgradeLimit is the most that the part on Cluster API may add to the demo, its sandbox included, but not what builds it. A busy
// machine keeps it too.
const upgradeLimit = 3 * time.Minute

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
	if err == nil && (seen.ControlPlane != before || seen.workers() != before) {
		err = fmt.Errorf("it is held and moves: %s", seen)
	}
	return err
}

// upgradeGoes offers the version that fits both sides, and follows what becomes of it until the upgrade is over. What came first is told
// by the order in which the API server stored it: a hold that goes a moment too early is told from one that goes a moment later. That is
// judged once it is over, and all watches have brought what there is: on the way, one of them may be behind another.
func (s *story) upgradeGoes(ctx context.Context) error {
	history, err := s.history(ctx, upgraded)
	if err != nil {
		return err
	}
	defer history.Stop()
	if err := s.offerBridging(ctx); err != nil {
		return err
	}
	var reported string
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var last progressOf
		err := history.Replay(func(now clusterapi.Progress) error {
			last = progressIn(now)
			return nil
		})
		if line := last.String(); line != reported {
			reported = line
			s.progress.Printf("  %s: %s", upgraded.Name, line)
		}
		return last.isOver(), err
	})
	if err != nil {
		return fmt.Errorf("%w; seen last: %s", err, reported)
	}
	if err := history.Complete(ctx); err != nil {
		return err
	}
	return inOrder(history.Replay)
}

// inOrder complains of the first state of a history that comes too early.
func inOrder(report func(see func(clusterapi.Progress) error) error) error {
	var last progressOf
	return report(func(now clusterapi.Progress) error {
		before := last
		last = progressIn(now)
		return last.isInOrder(before)
	})
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
	if seen.ControlPlane != before || seen.workers() != before || seen.Stage != kubermaticv1.ReasonNotUpgrading {
		return fmt.Errorf("%s moved too: %s", neighbour.Name, seen)
	}
	s.progress.Printf("  %s: %s", neighbour.Name, seen)
	return nil
}

// progressOf is how far the upgrade of a Cluster is.
type progressOf struct {
	clusterapi.Progress
	// gates in the order of the names.
	gates []clusterapi.Gate
}

func progressIn(now clusterapi.Progress) progressOf {
	seen := progressOf{Progress: now}
	for _, gate := range gates {
		seen.gates = append(seen.gates, now.Gates[gate])
	}
	return seen
}

func (s *story) history(ctx context.Context, of sandbox.UserCluster) (*clusterapi.History, error) {
	return clusterapi.Follow(ctx, s.box.Client(sandbox.Management), types.NamespacedName{Namespace: sandbox.Team, Name: of.Name})
}

// look is how far a Cluster is now.
func (s *story) look(ctx context.Context, cluster sandbox.UserCluster) (seen progressOf, err error) {
	history, err := s.history(ctx, cluster)
	if err != nil {
		return seen, err
	}
	defer history.Stop()
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		err := history.Replay(func(now clusterapi.Progress) error {
			seen = progressIn(now)
			return nil
		})
		return seen.Stage != "" && len(seen.Gates) >= len(gates), err
	})
	if err != nil {
		err = fmt.Errorf("reading how far %s is: %w", cluster.Name, err)
	}
	return seen, err
}

// isInOrder complains of a control plane that is let go before the network fits it, and of workers before all gates are right. What is let
// go already may have trouble afterwards: its API server is started anew.
func (p progressOf) isInOrder(last progressOf) error {
	network := p.gates[0]
	if p.mayGo() && !last.mayGo() && (network.Version != bridging || !network.Ready) {
		return fmt.Errorf("the control plane may go before the network: %s", p)
	}
	isNotRight := func(gate clusterapi.Gate) bool { return !gate.Ready || gate.MadeFor != after }
	if p.workersMayGo() && !last.workersMayGo() && slices.ContainsFunc(p.gates, isNotRight) {
		return fmt.Errorf("workers may go before what they need: %s", p)
	}
	return nil
}

// mayGo says whether nothing holds the control plane, or it has gone.
func (p progressOf) mayGo() bool { return p.Wanted == after && (!p.Hook || p.ControlPlane != before) }

// workersMayGo says whether nothing holds workers behind the control plane, or they have gone.
func (p progressOf) workersMayGo() bool {
	return p.Wanted == after && (p.workers() != before || p.ControlPlane != before && !p.Held)
}

// workers are at the newest version of their templates.
func (p progressOf) workers() string { return slices.Max(append([]string{""}, p.Workers...)) }

func (p progressOf) isOver() bool {
	return p.ControlPlane == after && slices.Equal(p.Workers, []string{after}) && p.Stage == kubermaticv1.ReasonNotUpgrading
}

func (p progressOf) String() string {
	var installed []string
	for i, gate := range p.gates {
		installed = append(installed, gates[i]+" "+gate.Version)
	}
	return fmt.Sprintf("control plane %s, workers %s; %s; %s", p.ControlPlane, p.workers(), strings.Join(installed, ", "), p.Stage)
}
