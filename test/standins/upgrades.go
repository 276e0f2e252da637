package standins

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/controllers/addon"
	"github.com/trellis-addons/trellis/pkg/controllers/addonset"
	"github.com/trellis-addons/trellis/pkg/controllers/clusterupgrade"
	"github.com/trellis-addons/trellis/pkg/controllers/coreaddon"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
	"github.com/trellis-addons/trellis/test/clusterapi"
)

// statusesEvery is the least time between two writes of a set's status, where tests wait for what it says.
const statusesEvery = 200 * time.Millisecond

// ClusterAPI are the kinds of a seed that serves Cluster API's Clusters alone, with control planes of package clusterapi.
var ClusterAPI = cluster.Kinds{
	Served:        []schema.GroupKind{target.KindClusterAPI},
	ControlPlanes: []schema.GroupResource{{Group: clusterapi.ControlPlaneGroup, Resource: "fleetcontrolplanes"}},
}

// Upgrades are for a process in which upgrades of Clusters wait for their add-ons: addon, coreaddon, addonset and clusterupgrade, and
// no controller that calls a user cluster. The namespace of catalogues is the platform's too, with the core list.
type Upgrades struct {
	// Worker is the name in the label of the Clusters that are served.
	Worker string
	Rules  upgrade.Rules
}

// kinds of Clusters that are served.
func (a Assignment) kinds() cluster.Kinds {
	if a.Upgrades != nil {
		return ClusterAPI
	}
	return cluster.OnlyKKP
}

func setUpUpgrades(made wiring.Seed, marks *mergedcatalogue.Marks, work Assignment) error {
	in, worker := work.Catalogue, work.Upgrades.Worker
	core := coreaddon.New(wiring.CoreAddon(made, marks, coreaddon.Options{
		Namespace: in, CatalogueNamespace: in, WorkerName: worker, StatusInterval: statusesEvery,
	}))
	upgrades := wiring.ClusterUpgrade(made, marks, core.Listed, clusterupgrade.Options{
		CatalogueNamespace: in, WorkerName: worker, Rules: work.Upgrades.Rules,
	})
	return errors.Join(
		addon.New(wiring.Addon(made, marks, addon.Options{CatalogueNamespace: in, WorkerName: worker})).SetupWithManager(made),
		core.SetupWithManager(made),
		addonset.New(wiring.AddonSet(made, marks, addonset.Options{
			CatalogueNamespace: in, WorkerName: worker, StatusInterval: statusesEvery,
		})).SetupWithManager(made),
		clusterupgrade.New(upgrades).SetupWithManager(made),
	)
}
