package view

import (
	"cmp"
	"fmt"
	"strconv"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// SetPreview is what an AddonSet would do on a seed if it were written as it is. It is JSON of the query endpoint.
type SetPreview struct {
	Name string `json:"name"`
	// Counts are the numbers of installations by change.
	Counts map[v1.ChangeKind]int `json:"counts"`
	// Groups are those of the rollout, in their order.
	Groups []SetGroup `json:"groups"`
	// Clusters are those where something would change or is blocked, by group, namespace and name.
	Clusters []SetCluster `json:"clusters"`
	// Truncated says that not all clusters are shown.
	Truncated bool `json:"truncated,omitempty"`
}

// SetGroup is a group of the rollout.
type SetGroup struct {
	Name string `json:"name"`
	// Selected counts the clusters that get the set, and Differing those where something would change or is blocked, also those that the set
	// leaves.
	Selected  int `json:"selected"`
	Differing int `json:"differing"`
}

// SetCluster is a cluster where something would change.
type SetCluster struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Group     string `json:"group"`
	// Waits is a reason why nothing is written there now, such as Paused.
	Waits   string      `json:"waits,omitempty"`
	Changes []SetChange `json:"changes"`
}

// SetChange is a change of one installation. A blocked one has a reason.
type SetChange struct {
	Item    string        `json:"item"`
	Change  v1.ChangeKind `json:"change"`
	From    string        `json:"from,omitempty"`
	To      string        `json:"to,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
}

// Summary is one line.
func (p *SetPreview) Summary() string {
	selected, differing := 0, 0
	for _, group := range p.Groups {
		selected, differing = selected+group.Selected, differing+group.Differing
	}
	return fmt.Sprintf("%s selected, %d would change: %s to install, %d to update, %d to remove, %d blocked", text.Count(selected, "cluster"),
		differing, text.Count(p.Counts[v1.ChangeInstall], "add-on"), p.Counts[v1.ChangeUpdate], p.Counts[v1.ChangeRemove],
		p.Counts[v1.ChangeBlocked])
}

var setColours = map[v1.ChangeKind]Colour{v1.ChangeInstall: Green, v1.ChangeUpdate: Yellow, v1.ChangeRemove: Red, v1.ChangeBlocked: Red}

// Tables are those of the groups and of the changes.
func (p *SetPreview) Tables() []Table {
	groups, changes := NewTable("GROUP", "CLUSTERS", "DIFFERING"), NewTable("GROUP", "CLUSTER", "CHANGE", "ITEM", "FROM", "TO", "WHY?>")
	for _, one := range p.Groups {
		groups.Add(Of(one.Name, strconv.Itoa(one.Selected), strconv.Itoa(one.Differing))...)
	}
	for _, in := range p.Clusters {
		for _, one := range in.Changes {
			cells := Of(in.Group, in.Namespace+"/"+in.Name, string(one.Change), one.Item, one.From, one.To, cmp.Or(one.Message, in.Waits))
			cells[2].Colour = setColours[one.Change]
			changes.Add(cells...)
		}
	}
	return []Table{groups, changes}
}
