package view

import (
	"fmt"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
)

// UpgradeCheck says how an upgrade of a cluster affects its installations. It is JSON of the query endpoint.
type UpgradeCheck struct {
	Namespace string `json:"namespace"`
	// Cluster is the name in the request.
	Cluster    string `json:"cluster,omitempty"`
	KKPVersion string `json:"kkpVersion"`
	From       string `json:"from"`
	To         string `json:"to"`
	// Breaks is the number of installations with outcome Breaks.
	Breaks        int                         `json:"breaks"`
	Installations []resolution.UpgradeFinding `json:"installations"`
}

// Summary is one line.
func (c *UpgradeCheck) Summary() string {
	return fmt.Sprintf("from Kubernetes %s to %s: %d of %s would break", c.From, c.To, c.Breaks,
		text.Count(len(c.Installations), "installation"))
}

// Table has a row for each installation.
func (c *UpgradeCheck) Table() Table {
	table := NewTable("INSTALLATION", "ADDON?", "INSTALLED", "OUTCOME", "VERSION", "MESSAGE?>")
	for _, one := range c.Installations {
		cells := Of(one.Installation, one.Addon, versionOf(one.Installed), string(one.Outcome), versionOf(one.Version), messageOf(one))
		switch one.Outcome {
		case resolution.OutcomeBreaks:
			cells[3].Colour = Red
		case resolution.OutcomeUnknown:
			cells[3].Colour = Yellow
		}
		table.Add(cells...)
	}
	return table
}

func versionOf(of *catalogue.VersionOrigin) string {
	if of == nil {
		return ""
	}
	return of.Version
}

// messageOf says why an installation breaks, and which version would fit.
func messageOf(of resolution.UpgradeFinding) string {
	switch {
	case of.Fitting == nil:
		return of.Message
	case of.FitsNow:
		return of.Message + "; version " + of.Fitting.Version + " fits before and after the upgrade"
	}
	return of.Message + "; version " + of.Fitting.Version + " fits after the upgrade"
}
