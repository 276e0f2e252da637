package cluster

import (
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
		Versions: canonicals(version.versions), Plan: canonicals(textsOf(found.Status.ControlPlane.UpgradePlan)),
	}
	if len(upgrade.Plan) == 0 || upgrade.Plan[len(upgrade.Plan)-1] != upgrade.Wanted {
		upgrade.Plan = []string{upgrade.Wanted}
	}
	first := canonicals(textsOf(found.Status.Workers.UpgradePlan))
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

func canonicals(versions []string) (texts []string) {
	for _, one := range versions[:min(len(versions), plannedAtMost)] {
		if one != "" {
			texts = append(texts, canonical(one))
		}
	}
	return texts
}
