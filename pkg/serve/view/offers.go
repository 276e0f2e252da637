package view

import (
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// versionsShown is how many versions a row names; the others are counted.
const versionsShown = 3

// Offers is the table of what a cluster is offered: a row for each add-on, its versions newest first.
func Offers(available *v1.AddonCatalogue) Table {
	table := NewTable("ADDON", "NEWEST", "OLDER?", "DESCRIPTION?", "SUPPORTED BY*")
	for _, addon := range available.Spec.Addons {
		var versions []string
		for _, version := range addon.Versions {
			versions = append(versions, version.Version)
		}
		var newest string
		if len(versions) > 0 {
			newest, versions = versions[0], versions[1:]
		}
		shown := addon.DisplayName
		if addon.Description != "" {
			shown = addon.Description
		}
		table.Add(Of(string(addon.Name), newest, text.Names(versions, versionsShown), shown, string(addon.SupportedBy))...)
	}
	return table
}

// excluded are versions of an add-on that don't fit for one reason.
type excluded struct{ addon, reason, message string }

// NotOffered is the table of versions that don't fit a cluster: a row for each add-on and reason.
func NotOffered(available *v1.AddonCatalogue) Table {
	table := NewTable("NOT OFFERED", "VERSION?", "REASON", "WHY?")
	var order []excluded
	versions := map[excluded][]string{}
	for _, one := range available.Status.Excluded {
		of := excluded{one.Addon, one.Reason, one.Message}
		if versions[of] == nil {
			order = append(order, of)
		}
		versions[of] = append(versions[of], one.Version)
	}
	for _, of := range order {
		table.Add(Of(of.addon, text.Names(versions[of], versionsShown), of.reason, strings.TrimSpace(of.message))...)
	}
	return table
}
