package resolution

import (
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// Request is the request of an installation for a version of its add-on.
type Request struct {
	Installation *v1.AddonInstallation
	// Installed is the result of InstalledOnRecord, or of InstalledInStatus.
	Installed string
	Cluster   target.Description
	// AllowPrereleases makes a pre-release platform match ranges that name none.
	AllowPrereleases bool
}

// Choice is the version that an installation gets.
type Choice struct {
	// Version belongs to the catalogue's entry and must not be changed; nil with a refusal.
	Version *v1.AddonVersion
	Origin  catalogue.Origin
	Core    bool
	// AvailableUpdate is the newest fitting version above the chosen, or the installed, one.
	AvailableUpdate string
	Leaves          bool
}

// refusedError is a refusal of this package; package catalogue has its own.
type refusedError struct{ reason, message string }

func (e *refusedError) Error() string  { return e.message }
func (e *refusedError) Reason() string { return e.reason }

func refused(reason, message string, arguments ...any) catalogue.Refusal {
	return &refusedError{reason, fmt.Sprintf(message, arguments...)}
}

// Choose selects the version for an installation. Entry is nil if the catalogue has none. If the version has other
// content than the installation is pinned to, the refusal is a *ContentGoneError.
func (r Request) Choose(entry *catalogue.Entry) (Choice, catalogue.Refusal) {
	choice, refusal := r.choose(entry, r.Installation.Spec.AddonRef.Version)
	if refusal == nil && !r.isPinnedTo(choice.Origin.Content) {
		refusal = &ContentGoneError{
			Addon: r.addon(), Version: choice.Version.Version, Meant: r.Installation.Spec.AddonRef.Digest, Present: choice.Origin.Content,
		}
		choice.Version = nil
	}
	return choice, refusal
}

func (r Request) choose(entry *catalogue.Entry, wanted string) (Choice, catalogue.Refusal) {
	core := r.Installation.Spec.CoreAddon
	switch {
	case entry == nil && r.Installed != "":
		return Choice{}, refused(v1.ReasonWithdrawn, "add-on %q was removed from the catalogue; its version %q stays installed",
			r.addon(), r.Installed)
	case entry == nil:
		return Choice{}, refused(v1.ReasonAddonUnknown,
			"no catalogue has an add-on %q: AddonCatalogue %q in this namespace lists those that fit",
			r.addon(), r.Cluster.AvailableName())
	case r.isRuled() && entry.Type != v1.CatalogueCore: // a rule for kube-proxy must not install another catalogue's add-on of that name
		return Choice{}, refused(v1.ReasonAddonUnknown,
			"no Core catalogue has core add-on %q, and those of other catalogues are not used: the installed version stays", r.addon())
	}
	selection, refusal := catalogue.Select(entry, wanted, r.Installed, r.platform(entry), catalogue.SelectOptions{
		AllowDowngrade: r.Installation.Annotations[v1.AnnotationAllowDowngrade] == "true", Core: core,
		BySet: !core && r.Installation.Labels[v1.LabelSet] != "",
	})
	choice := Choice{
		Version: selection.Version, Origin: selection.Origin, Core: entry.Type == v1.CatalogueCore,
		AvailableUpdate: selection.AvailableUpdate,
		Leaves:          core && r.Installed != "" && entry.Left(r.Installed),
	}
	if version := choice.Version; version != nil && (version.Template == nil || version.Source == nil) {
		choice.Version = nil
		refusal = refused(v1.ReasonVersionUnknown, "version %q of add-on %q has no template and source in the catalogue",
			version.Version, r.addon())
	}
	return choice, refusal
}

// isRuled reports whether a rule for core add-ons requests it: only Core catalogues may provide that.
func (r Request) isRuled() bool {
	return r.Installation.Spec.CoreAddon && r.Installation.Annotations[v1.AnnotationCoreOrigin] == v1.OriginRule
}

// Named is the version that an installation names exactly, allowed or not; nil if there is none.
func (r Request) Named(entry *catalogue.Entry) Choice {
	version, origin := entry.Version(r.Installation.Spec.AddonRef.Version)
	return Choice{Version: version, Origin: origin, Core: entry.Type == v1.CatalogueCore}
}

// platform is the cluster's, with KKP's version from the distributor if KKP created the cluster.
func (r Request) platform(entry *catalogue.Entry) catalogue.Platform {
	return catalogue.Platform{
		KKPVersion: KKPVersionFor(r.Cluster.Ref, entry.KKPVersion), K8sVersion: r.Cluster.KubernetesVersion,
		Next: r.Cluster.Next(), AllowPrereleases: r.AllowPrereleases,
	}
}

// KKPVersionFor is the platform's version for a KKP cluster; for other clusters it is empty.
func KKPVersionFor(ref target.Ref, platform string) string {
	if ref.IsKKP() {
		return platform
	}
	return catalogue.OutsideKKP
}

func (r Request) addon() string { return string(r.Installation.Spec.AddonRef.Name) }
