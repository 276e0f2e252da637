package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// tool is what installed something.
type tool string

const (
	kkpAddon    tool = "KKP Addon"
	application tool = "ApplicationInstallation"
	helm        tool = "Helm release"
	flux        tool = "Flux HelmRelease"
	provider    tool = "HelmReleaseProxy"
)

// outcome is what the plan does with something.
type outcome string

const (
	create         outcome = "Create"
	createPaused   outcome = "Create, paused"
	yamlOnly       outcome = "YAML only"
	exists         outcome = "Exists"
	notCarriedOver outcome = "Not carried over"
)

// item is something in a cluster that another tool installed.
type item struct {
	tool tool
	// from names the object, and name is the one that the installation gets.
	from, name string
	// addon and version are the installed ones; version is empty if it is unknown.
	addon, version string
	// namespace and release are those of the Helm release; empty for other methods.
	namespace, release string
	values             map[string]any

	outcome outcome
	why     string
	made    *v1.AddonInstallation
}

// plan is what becomes of everything that was found in a cluster.
type plan struct {
	*options
	seed      *cli.Platform
	of        target.Ref
	available *v1.AddonCatalogue
	present   []v1.AddonInstallation
	items     []*item
	notes     []string
	// readFrom is the user cluster's API server; empty: only the seed was read.
	readFrom string
}

// make finds what other tools installed and decides about each.
func (p *plan) make(ctx context.Context) (err error) {
	if p.of, p.available, err = p.Cluster(ctx, p.seed); err != nil {
		return err
	}
	if p.present, err = p.seed.Installations(ctx, p.of); err != nil {
		return err
	}
	if err := p.find(ctx); err != nil {
		return err
	}
	for _, one := range p.items {
		if one.outcome != "" {
			continue
		}
		if err := p.decide(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func (i *item) fails(format string, arguments ...any) {
	i.outcome, i.why = notCarriedOver, text.Message(fmt.Sprintf(format, arguments...))
}

// decide makes the installation of an item, or says why there is none.
func (p *plan) decide(ctx context.Context, one *item) error {
	if mapped := p.names[one.addon]; mapped != "" {
		one.addon = mapped
	}
	if at := slices.IndexFunc(p.present, one.isIn); at >= 0 {
		one.outcome, one.why = exists, fmt.Sprintf("installation %q; `kubectl addons adopt` lets it adopt objects", p.present[at].Name)
		return nil
	}
	demand := cli.Demand{Addon: one.addon, Version: one.version}
	if err := cli.CheckName("add-on", one.addon); err != nil {
		one.fails("%v", err)
		return nil
	}
	if one.release != "" && (one.version == "" || catalogue.IsRange(one.version)) {
		one.fails("the installed version of its chart is unknown: %q", one.version)
		return nil
	}
	return p.choose(ctx, one, demand)
}

// choose makes the installation of an item whose add-on and release are known.
func (p *plan) choose(ctx context.Context, one *item, demand cli.Demand) error {
	version, err := cli.Choose(p.available, demand)
	if err != nil {
		one.fails("%v; --map names another add-on", err)
		return nil
	}
	if version != "" {
		one.version, demand.Version = version, version
	}
	merged, err := cli.Merged(ctx, p.seed, demand)
	if err != nil {
		return err
	}
	if one.release != "" && merged != nil && merged.Template != nil && !catalogue.TraitsOf(merged.Template.Method).HasRelease {
		one.fails("add-on %q is not a Helm chart, so it can't adopt a Helm release", one.addon)
		return nil
	}
	if err := cli.CheckFormOf(merged, one.addon, one.values); err != nil {
		one.fails("%v", err)
		return nil
	}
	return p.add(ctx, one)
}

// isIn says whether an installation is that of the item.
func (i *item) isIn(one v1.AddonInstallation) bool {
	if string(one.Spec.AddonRef.Name) != i.addon {
		return false
	}
	return i.release == "" || one.Spec.TargetNamespace == i.namespace && (one.Spec.ReleaseName == i.release || one.Name == i.release)
}

// add makes the installation of an item.
func (p *plan) add(ctx context.Context, one *item) error {
	name := p.free(one)
	if name == "" {
		one.fails("installations %q and %q exist or are planned already: create one with another name", one.name, one.longName())
		return nil
	}
	made := cli.NewInstallation(p.of, cli.Demand{Addon: one.addon, Version: one.version}, name)
	made.Annotations = map[string]string{v1.AnnotationAdopt: "true"}
	made.Spec.TargetNamespace, made.Spec.ReleaseName, made.Spec.Values = one.namespace, one.release, cli.RawValues(one.values)
	// The manager waits only for an Addon of KKP that has the name of the add-on.
	made.Spec.Paused = one.tool == application || one.tool == kkpAddon && one.addon != one.name
	why, err := p.refused(ctx, made)
	if err != nil {
		return err
	}
	if why != "" {
		one.fails("%s", why)
		return nil
	}
	one.made = made
	switch {
	case made.Spec.Paused:
		one.outcome = createPaused
	case one.tool == flux, one.tool == provider:
		one.outcome = yamlOnly
	default:
		one.outcome = create
	}
	return nil
}

// longName is the name of an item whose name is taken.
func (i *item) longName() string { return strings.TrimSuffix(i.name+"-"+i.namespace, "-") }

// free is the name of an item's installation, with its namespace if the name is taken; empty if both are.
func (p *plan) free(one *item) string {
	for _, name := range []string{p.of.NameOf(one.name), p.of.NameOf(one.longName())} {
		if !slices.ContainsFunc(p.present, func(other v1.AddonInstallation) bool { return other.Name == name }) &&
			!slices.ContainsFunc(p.items, func(other *item) bool { return other.made != nil && other.made.Name == name }) {
			return name
		}
	}
	return ""
}
