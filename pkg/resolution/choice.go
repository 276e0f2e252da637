package resolution

import (
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/target"
)

// Request is an installation that wants a version of its add-on.
type Request struct {
	Installation *v1.AddonInstallation
	// Installed is the version that the cluster has of the add-on: InstalledOnRecord, or InstalledInStatus.
	Installed string
	Cluster   target.Description
	// AllowPrereleases lets a platform that is a pre-release lie in ranges that name none.
	AllowPrereleases bool
}

// Choice is the version that an installation gets.
type Choice struct {
	// Version belongs to the catalogue's entry and must not be changed; nil beside a refusal.
	Version *v1.AddonVersion
	Origin  catalogue.Origin
	// Core says that a Core catalogue has the add-on.
	Core bool
	// AvailableUpdate is the newest fitting version above this one, or above the installed one beside a refusal.
	AvailableUpdate string
	// Leaves says that clusters are to leave the version that is installed.
	Leaves bool
}

// UnknownAddonError says that no catalogue has the add-on. What is installed stays.
type UnknownAddonError struct{ Addon, Installed string }

func (e *UnknownAddonError) Error() string {
	if e.Installed != "" {
		return fmt.Sprintf("add-on %q left the catalogue; its version %q stays installed", e.Addon, e.Installed)
	}
	return fmt.Sprintf("no catalogue has an add-on %q: see AddonCatalogue %q in this namespace for those that fit",
		e.Addon, v1.AvailableCatalogue)
}

// Reason is v1.ReasonWithdrawn where something is installed, else v1.ReasonAddonUnknown.
func (e *UnknownAddonError) Reason() string {
	if e.Installed != "" {
		return v1.ReasonWithdrawn
	}
	return v1.ReasonAddonUnknown
}

// ForeignCatalogueError says that only a Custom catalogue has an add-on whose own of that name the platform asks for:
// nobody gets a kube-proxy of their own into every cluster by naming it so, also not when the Core catalogue goes.
type ForeignCatalogueError struct{ Addon string }

func (e *ForeignCatalogueError) Error() string {
	return fmt.Sprintf("no Core catalogue has core add-on %q, and those of others are not taken: what is installed stays",
		e.Addon)
}

// Reason is v1.ReasonAddonUnknown.
func (e *ForeignCatalogueError) Reason() string { return v1.ReasonAddonUnknown }

// NoContentError says that the version has nothing to install.
type NoContentError struct{ Addon, Version string }

func (e *NoContentError) Error() string {
	return fmt.Sprintf("version %q of add-on %q has no template and source in the catalogue", e.Version, e.Addon)
}

// Reason is v1.ReasonVersionUnknown.
func (e *NoContentError) Reason() string { return v1.ReasonVersionUnknown }

// Choose selects the version that an installation gets. Entry is its add-on in the merged catalogue; nil where that
// has none such.
func (r Request) Choose(entry *catalogue.Entry) (Choice, catalogue.Refusal) {
	return r.choose(entry, r.Installation.Spec.AddonRef.Version)
}

func (r Request) choose(entry *catalogue.Entry, wanted string) (Choice, catalogue.Refusal) {
	core := r.Installation.Spec.CoreAddon
	isRuled := core && r.Installation.Annotations[v1.AnnotationCoreOrigin] == v1.OriginRule
	switch {
	case entry == nil:
		return Choice{}, &UnknownAddonError{Addon: r.addon(), Installed: r.Installed}
	case isRuled && entry.Type != v1.CatalogueCore:
		return Choice{}, &ForeignCatalogueError{Addon: r.addon()}
	}
	selection, refusal := catalogue.Select(entry, wanted, r.Installed, r.platform(entry), catalogue.SelectOptions{
		AllowDowngrade: r.Installation.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: core,
	})
	choice := Choice{
		Version: selection.Version, Origin: selection.Origin, Core: entry.Type == v1.CatalogueCore,
		AvailableUpdate: selection.AvailableUpdate,
		Leaves:          core && r.Installed != "" && entry.Left(r.Installed),
	}
	if version := choice.Version; version != nil && (version.Template == nil || version.Source == nil) {
		choice.Version = nil
		refusal = &NoContentError{Addon: r.addon(), Version: version.Version}
	}
	return choice, refusal
}

// Named is the version that an installation names exactly, whether or not it gets it; without one where it names none
// that the entry has.
func (r Request) Named(entry *catalogue.Entry) Choice {
	version, origin := entry.Version(r.Installation.Spec.AddonRef.Version)
	return Choice{Version: version, Origin: origin, Core: entry.Type == v1.CatalogueCore}
}

// platform is the cluster's, with KKP's version as the distributor stamped it onto the entry.
func (r Request) platform(entry *catalogue.Entry) catalogue.Platform {
	return catalogue.Platform{
		KKPVersion: entry.KKPVersion, K8sVersion: r.Cluster.KubernetesVersion, AllowPrereleases: r.AllowPrereleases,
	}
}

func (r Request) addon() string { return string(r.Installation.Spec.AddonRef.Name) }
