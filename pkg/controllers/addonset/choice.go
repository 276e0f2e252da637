package addonset

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/values"
)

// offers are the contents of a seed's catalogues. They don't change.
type offers struct {
	// entries by add-on; nil if no catalogue has the add-on.
	entries map[string]*catalogue.Entry
	// unknown are the messages about add-ons without an entry.
	unknown map[string]string
	// kkp is the platform's version; empty if unknown.
	kkp         string
	preReleases bool
	// platform are the platform's values by item, for items that name a Secret.
	platform map[string]platformValues
	marks    *mergedcatalogue.Marks
}

// choice is the version that an item gets in some cluster, or why it gets none.
type choice struct {
	version, digest string
	// unfit says that the applied version no longer fits the cluster's Kubernetes, or the version that the cluster
	// waits for, and that the choice does.
	unfit bool
	// reason is empty if there is a choice. Otherwise an existing installation stays as it is.
	reason, message string
	// quiet says that keeping the installation is enough, and no problem is reported.
	quiet bool
	// prepared is the intent that most clusters get by the choice; nil before the first did.
	prepared *prepared
}

// resolver chooses for a set, and makes each choice once. It is for one goroutine.
type resolver struct {
	set      *set
	offers   *offers
	selects  selectFunc
	choices  map[choiceKey]*choice
	prepared map[preparedKey]*prepared
}

// selectFunc is catalogue.Select, or a function that counts its calls.
type selectFunc func(
	entry *catalogue.Entry, wanted, installed string, platform catalogue.Platform, options catalogue.SelectOptions,
) (catalogue.Selection, catalogue.Refusal)

type choiceKey struct {
	of             *item
	k8s, installed string
	next           string
	isKKP, waits   bool
}

type preparedKey struct {
	item, version, digest string
	// overrides are the numbers of the matching ones, as bits.
	overrides uint64
	landing   installation.Landing
	// cluster is empty if the intent does not depend on the cluster's name.
	cluster string
}

// prepared is the intent of an item, without a namespace. Clusters share it, and it doesn't change.
type prepared struct {
	intent  installation.Intent
	digest  string
	problem string
	// template is that of the version; nil if it is unknown.
	template *v1.Template
}

func newResolver(of *set, from *offers) *resolver {
	return &resolver{
		set: of, offers: from, selects: catalogue.Select, choices: map[choiceKey]*choice{}, prepared: map[preparedKey]*prepared{},
	}
}

// choose chooses the version of an item for a cluster like this, with that installed version.
func (r *resolver) choose(of *item, in *place, installed string) *choice {
	next := in.next
	if comesWith(r.set, in, r.offers) {
		next = in.ahead
	}
	wanted := r.set.wanted(of, in)
	if wanted != of.AddonRef.Version { // of one cluster, and not kept: its owner may write any number of versions
		return new(r.selectVersion(of, in, wanted, next, installed))
	}
	key := choiceKey{of, in.version, installed, strings.Join(next, " "), in.ref.IsKKP(), in.waits}
	known, ok := r.choices[key]
	if !ok {
		chosen := r.selectVersion(of, in, wanted, next, installed)
		known = &chosen
		r.choices[key] = known
	}
	return known
}

func (r *resolver) selectVersion(of *item, in *place, wanted string, next []string, installed string) choice {
	entry := r.offers.entries[of.addon()]
	if entry == nil {
		return choice{
			reason: v1.ReasonAddonUnknown, message: r.offers.unknown[of.addon()], quiet: installed != "",
		}
	}
	if installed == "" && r.landingOf(of, nil).Namespace == "" {
		return choice{reason: v1.ReasonNamespaceUnset, message: fmt.Sprintf(
			"set targetNamespace of the item: the catalogue names none for add-on %q", of.addon())}
	}
	platform := r.platform(in, next)
	selected, refusal := r.selects(entry, wanted, installed, platform,
		catalogue.SelectOptions{AllowDowngrade: of.allows(v1.PermissionDowngrade), BySet: true})
	if refusal != nil {
		withdrawn, isWithdrawn := errors.AsType[*catalogue.WithdrawnError](refusal)
		return choice{reason: refusal.Reason(), message: refusal.Error(), quiet: isWithdrawn && withdrawn != nil}
	}
	if r.set.staged && catalogue.SourceMoves(selected.Version) {
		return choice{reason: v1.ReasonSourceMoves, message: fmt.Sprintf(
			"the source of version %q of add-on %q can change its content, so it can't be rolled out in groups: name a commit, a tag or a digest",
			selected.Version.Version, of.addon())}
	}
	chosen := choice{version: selected.Version.Version, digest: selected.Origin.Content}
	if before, _ := entry.Version(installed); installed != "" && before != nil && catalogue.Key(installed) != catalogue.Key(chosen.version) {
		chosen.unfit = !entry.FitsKubernetes(installed, platform) || in.waits && entry.Bridges(installed, chosen.version, platform)
	}
	return chosen
}

// prepare returns the intent of an item for a cluster, by a choice; wanted has the new version and digest, or those
// that stay.
func (r *resolver) prepare(of *item, by *choice, wanted preparedKey, in *place) *prepared {
	wanted.item, wanted.overrides = string(of.Name), r.matching(of, in.labels)
	isCommon := by.reason == "" && wanted.overrides == 0 && wanted.landing == r.landingOf(of, nil)
	if namesCluster(of) {
		wanted.cluster, isCommon = in.name, false
	}
	if isCommon && by.prepared != nil {
		return by.prepared
	}
	known, ok := r.prepared[wanted]
	if !ok {
		known = r.makeIntent(of, wanted, in.name)
		r.prepared[wanted] = known
	}
	if isCommon {
		by.prepared = known
	}
	return known
}

// landingOf is the namespace that an item is installed in. Argument live is nil without an installation.
func (r *resolver) landingOf(of *item, live *observation) installation.Landing {
	var there, offered installation.Landing
	if live != nil {
		there = installation.Landing{Namespace: live.asked.targetNamespace, Create: live.Spec.CreateNamespace}
	}
	if entry := r.offers.entries[of.addon()]; entry != nil {
		offered = installation.Landing{Namespace: entry.Addon.TargetNamespace, Create: entry.Addon.CreateNamespace}
	}
	return installation.LandingOf(installation.Landing{Namespace: of.TargetNamespace, Create: of.CreateNamespace}, there, offered)
}

// matching are the overrides of an item for a cluster; a set has at most 64.
func (r *resolver) matching(of *item, facts labels.Set) uint64 {
	var found uint64
	for i := range r.set.overrides {
		if one := &r.set.overrides[i]; one.item == string(of.Name) && one.selector.Matches(facts) {
			found |= 1 << i
		}
	}
	return found
}

func (r *resolver) makeIntent(of *item, key preparedKey, in string) *prepared {
	layers := []values.Layer{{Origin: fmt.Sprintf("item %q", of.Name), Values: of.values}}
	for i := range r.set.overrides {
		if key.overrides&(1<<i) != 0 {
			layers = append(layers, values.Layer{Origin: fmt.Sprintf("overrides[%d]", i), Values: r.set.overrides[i].values})
		}
	}
	merged, _, err := values.Merge(layers)
	if err != nil {
		return &prepared{problem: err.Error()}
	}
	template := r.templateOf(of, key.version)
	if template != nil { // the cluster's other values may fill in required ones
		if err := values.CheckForm(template.FormSpec, merged, nil); err != nil {
			return &prepared{problem: err.Error()}
		}
	}
	made := &prepared{template: template, intent: installation.Intent{
		Name: string(of.Name), Origin: "set", Annotations: map[string]string{},
		Labels: map[string]string{v1.LabelManagedBy: v1.ManagedBySets, v1.LabelSet: r.set.name},
		Spec: v1.AddonInstallationSpec{
			AddonRef:        v1.AddonReference{Name: of.AddonRef.Name, Version: key.version, Digest: key.digest},
			TargetNamespace: key.landing.Namespace, CreateNamespace: key.landing.Create, ReleaseName: of.ReleaseName,
			ValuesFrom: named(of.ValuesFrom, in), ValuesTemplate: of.ValuesTemplate, DependsOn: installationNames(of.DependsOn),
			ReconcileStrategy: of.ReconcileStrategy, DeletionPolicy: v1.DeletionDelete,
		},
	}}
	if made.intent.Spec.ReconcileStrategy == "" {
		made.intent.Spec.ReconcileStrategy = v1.ReconcileContinuous
	}
	if len(merged) > 0 {
		encoded, err := json.Marshal(merged)
		if err != nil {
			return &prepared{problem: err.Error()}
		}
		made.intent.Spec.Values = &runtime.RawExtension{Raw: encoded}
	}
	for _, given := range permissions {
		if of.allows(given.permission) {
			made.intent.Annotations[given.annotation] = "true"
			made.intent.Origin += "+" + string(given.permission)
		}
	}
	if of.PlatformSecretRef != nil { // a change of the values alone is a move
		made.intent.Origin += "+values:" + r.offers.platform[string(of.Name)].content
	}
	if made.digest, err = made.intent.Digest(); err != nil {
		return &prepared{problem: err.Error()}
	}
	return made
}

// templateOf is the template of a version of an item's add-on; nil if none is known.
func (r *resolver) templateOf(of *item, version string) *v1.Template {
	entry := r.offers.entries[of.addon()]
	if entry == nil {
		return nil
	}
	if found, _ := entry.Version(version); found != nil {
		return found.Template
	}
	return nil
}

// clusterName is the placeholder for the Cluster's name in names of valuesFrom.
const clusterName = "$(cluster)"

func namesCluster(of *item) bool {
	for _, source := range of.ValuesFrom {
		if strings.Contains(sourceName(source), clusterName) {
			return true
		}
	}
	return false
}

func sourceName(source v1.ValuesSource) string {
	switch {
	case source.SecretRef != nil:
		return source.SecretRef.Name
	case source.ConfigMapRef != nil:
		return source.ConfigMapRef.Name
	case source.ProviderRef != nil:
		return source.ProviderRef.Name
	case source.ObjectRef != nil:
		return source.ObjectRef.Name
	}
	return ""
}

// named are the sources, with the Cluster's name in place of the placeholder.
func named(sources []v1.ValuesSource, in string) []v1.ValuesSource {
	var result []v1.ValuesSource
	for i := range sources {
		source := sources[i].DeepCopy()
		switch {
		case source.SecretRef != nil:
			source.SecretRef.Name = strings.ReplaceAll(source.SecretRef.Name, clusterName, in)
		case source.ConfigMapRef != nil:
			source.ConfigMapRef.Name = strings.ReplaceAll(source.ConfigMapRef.Name, clusterName, in)
		case source.ProviderRef != nil:
			source.ProviderRef.Name = strings.ReplaceAll(source.ProviderRef.Name, clusterName, in)
		case source.ObjectRef != nil:
			source.ObjectRef.Name = strings.ReplaceAll(source.ObjectRef.Name, clusterName, in)
		}
		result = append(result, *source)
	}
	return result
}

// installationNames are the names of items' installations in KKP's namespaces.
func installationNames(items []v1.AddonName) []v1.InstallationName {
	names := make([]v1.InstallationName, 0, len(items))
	for _, item := range items {
		names = append(names, v1.InstallationName(item))
	}
	return names
}

// permissions of an item, each with the annotation that grants it to an installation.
var permissions = []struct {
	permission v1.Permission
	annotation string
}{
	{v1.PermissionAdopt, v1.AnnotationAdopt}, {v1.PermissionDowngrade, v1.AnnotationAllowDowngrade},
	{v1.PermissionPrune, v1.AnnotationAllowPrune},
}
