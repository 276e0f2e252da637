package cluster

import (
	"slices"
	"strings"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/target"
)

const (
	// holder is the value of our annotations on Clusters and their pools: a hold of another value is
	// somebody else's.
	holder = "trellis"
	// plannedAtMost bounds the versions of a plan that are read.
	plannedAtMost = 8
)

// upgradeOf a Cluster whose versions are those of a topology.
func upgradeOf(found *capiv1.Cluster, version known) *target.Upgrade {
	topology := &found.Spec.Topology
	if topology.Version == "" {
		return nil
	}
	_, hook := found.Annotations[capiv1.AnnotationBeforeUpgrade]
	upgrade := &target.Upgrade{
		Wanted: canonical(topology.Version), Asked: version.asked, Hook: hook,
		Versions: canonicals(found.Status.ControlPlane.Versions), Plan: canonicals(found.Status.ControlPlane.UpgradePlan),
	}
	if len(upgrade.Versions) == 0 && version.version != "" {
		upgrade.Versions = []string{version.version}
	}
	if len(upgrade.Plan) == 0 || upgrade.Plan[len(upgrade.Plan)-1] != upgrade.Wanted {
		upgrade.Plan = []string{upgrade.Wanted}
	}
	first := canonicals(found.Status.Workers.UpgradePlan)
	upgrade.WorkersFirst = len(first) > 0 && len(upgrade.Versions) > 0 && first[0] == upgrade.Versions[0]
	upgrade.Held = true
	noteHolds(upgrade, topology.Workers.MachineDeployments)
	noteHolds(upgrade, topology.Workers.MachinePools)
	upgrade.Held = upgrade.Held && upgrade.HasWorkers
	return upgrade
}

// noteHolds notes what holds the pools of one list: those on the first hold the others too.
func noteHolds(upgrade *target.Upgrade, pools []capiv1.WorkerPool) {
	for i, pool := range pools {
		value, isHeld := pool.Metadata.Annotations[capiv1.AnnotationHoldSequence]
		switch {
		case i > 0:
			upgrade.Stray = upgrade.Stray || isHeld && value == holder
		case !isHeld || value == holder:
			upgrade.HasWorkers, upgrade.Held = true, upgrade.Held && isHeld
		}
	}
}

func canonical(version string) string { return strings.TrimPrefix(version, "v") }

func canonicals(versions []capiv1.StatusVersion) []string {
	texts := textsOf(versions[:min(len(versions), plannedAtMost)])
	for i := range texts {
		texts[i] = canonical(texts[i])
	}
	return slices.DeleteFunc(texts, func(one string) bool { return one == "" })
}
