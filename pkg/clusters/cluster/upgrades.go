package cluster

import (
	"strings"

	capiv1 "github.com/trellis-addons/trellis/apis/clusterapi/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

const (
	// holder is the value of our annotations on Clusters and their pools: a hold with another value is another
	// client's.
	holder = "trellis"
	// plannedAtMost limits the number of versions that are read from a plan.
	plannedAtMost = 8
)

// upgradeOf is the upgrade of a Cluster whose versions come from a topology.
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

// noteHolds notes the holds of the pools of one list: those on the first pool also hold the others.
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
