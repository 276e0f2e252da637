package diff

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/catalogue/health"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/serve/documents"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values"
)

// present is what the master has.
type present struct {
	namespace  string
	catalogues []v1.AddonCatalogue
	claims     catalogue.Claims
	usages     []catalogue.SeedUsage
}

// read reads catalogues, owners and counts of the master.
func read(ctx context.Context, master *cli.Platform, namespace string) (*present, error) {
	found := &present{namespace: namespace}
	var all v1.AddonCatalogueList
	if err := master.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, one := range all.Items {
		if role := one.Labels[v1.LabelRole]; one.DeletionTimestamp == nil && (role == "" || role == v1.RoleGenerated) {
			found.catalogues = append(found.catalogues, one)
		}
	}
	var owners, usage corev1.ConfigMap
	for name, into := range map[string]*corev1.ConfigMap{v1.ConfigMapOwners: &owners, v1.ConfigMapUsage: &usage} {
		err := master.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
	}
	stored, whole := catalogue.DecodeOwners(owners.Data)
	found.claims = catalogue.Claims{
		Owners: stored, Previous: catalogue.DecodePrevious(owners.Data[catalogue.KeyPrevious]),
		Had:   catalogue.DecodeSpace(owners.Data[catalogue.KeySpace]),
		Adopt: owners.Name == "" || !whole, TakeOver: map[string]map[string]bool{}, Held: map[string]bool{},
	}
	for i := range found.catalogues {
		if one := &found.catalogues[i]; one.Labels[v1.LabelRole] == "" {
			found.claims.TakeOver[one.Name] = catalogue.TakesOver(one)
		}
	}
	for _, seed := range slices.Sorted(maps.Keys(usage.Data)) {
		if counted, err := catalogue.DecodeUsage(seed, usage.Data[seed]); err == nil {
			found.usages = append(found.usages, counted)
		}
	}
	return found, nil
}

// replacement is a catalogue with other add-ons, in the place of those with these UIDs.
type replacement struct {
	v1.AddonCatalogue
	instead map[types.UID]bool
}

// kind is the type of the catalogue.
func (r *replacement) kind() v1.CatalogueType { return cmp.Or(r.Spec.Type, v1.CatalogueCustom) }

// replacement has the add-ons of files in the catalogue of this name, which may not exist yet. One in git is replaced
// by a generated one with all of its add-ons.
func (p *present) replacement(name string, content *documents.Content, now time.Time) *replacement {
	made := &replacement{instead: map[types.UID]bool{}}
	made.Namespace, made.Name, made.UID, made.CreationTimestamp = p.namespace, name, "new", metav1.NewTime(now)
	for _, one := range p.catalogues {
		if one.Name == name && one.Labels[v1.LabelRole] == "" {
			made.AddonCatalogue, made.instead[one.UID] = one, true
		}
	}
	if made.Spec.Git != nil {
		p.generate(made)
	} else {
		for _, object := range content.Objects {
			if object.Name == name {
				made.Spec = object.Spec
			}
		}
	}
	made.Spec.Addons = content.Addons
	return made
}

// generate makes a catalogue in git one that is generated from it, of the age of those that it replaces.
func (p *present) generate(made *replacement) {
	parent := made.AddonCatalogue
	for _, one := range p.catalogues {
		if metav1.IsControlledBy(&one, &parent) {
			made.instead[one.UID], made.CreationTimestamp = true, one.CreationTimestamp
		}
	}
	made.Spec.Git, made.Labels = nil, map[string]string{v1.LabelRole: v1.RoleGenerated}
	made.OwnerReferences = []metav1.OwnerReference{{Kind: "AddonCatalogue", Name: parent.Name, UID: parent.UID, Controller: new(true)}}
}

const leftOut = "LeftOut"

// compare merges with and without the replacement.
func (p *present) compare(ctx context.Context, with *replacement) (*answer, error) {
	found := &answer{Catalogue: with.Name, Changes: []view.Difference{}}
	source, err := catalogue.Read(&with.AddonCatalogue, values.CheckVersion, health.Check(ctx), rights.CheckVersion)
	if err != nil {
		return nil, err
	}
	after, before := []*catalogue.Source{source}, []*catalogue.Source{}
	for i := range p.catalogues {
		one := &p.catalogues[i]
		if one.Spec.Git != nil { // those that are generated from it are merged
			continue
		}
		source, err := catalogue.Read(one, values.CheckVersion, health.Check(ctx), rights.CheckVersion)
		if err != nil {
			p.claims.Held[catalogue.Author(one)] = true // it gives no add-on up
			found.Notes = append(found.Notes, fmt.Sprintf("catalogue %q is invalid, and its versions are not compared: %v", one.Name, err))
			continue
		}
		before = append(before, source)
		if !with.instead[one.UID] {
			after = append(after, source)
		}
	}
	merged := catalogue.Merge(after, p.claims)
	for _, one := range catalogue.Differences(catalogue.Merge(before, p.claims), merged) {
		found.differs = true
		found.Changes = append(found.Changes, view.Difference{
			Addon: one.Addon, Version: one.Named, Change: one.What, Why: one.Why, Seeds: p.users(one),
		})
	}
	found.addConflicts(with, merged)
	p.addCounts(found)
	return found, nil
}

// users are the installations, by seed, that use what a difference removes or changes.
func (p *present) users(of catalogue.Difference) map[string]int {
	if of.What == catalogue.DifferenceAdded || of.Named == "" && of.What == catalogue.DifferenceChanged {
		return nil
	}
	seeds := map[string]int{}
	for _, usage := range p.usages {
		if number := usage.Installations[of.UsedVersion]; number > 0 {
			seeds[usage.Seed] = number
		}
	}
	return seeds
}

// addConflicts adds what the merge leaves out of the replacement.
func (a *answer) addConflicts(with *replacement, merged catalogue.Merged) {
	for _, one := range merged.Conflicts[with.UID] {
		if one.WonBy != with.Name {
			a.Changes = append(a.Changes, view.Difference{
				Addon: one.Addon, Version: one.Version, Change: leftOut, Why: fmt.Sprintf("catalogue %q %s", one.WonBy, conflictTexts[one.Reason]),
			})
		}
	}
	if beyond := merged.Beyond[with.UID]; beyond != nil {
		a.Notes = append(a.Notes, beyond.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(merged.Refused)) {
		a.Notes = append(a.Notes, merged.Refused[name].Error())
	}
}

// addCounts says what the counts of installations do not include.
func (p *present) addCounts(found *answer) {
	if len(p.usages) == 0 {
		found.Notes = append(found.Notes, "the number of installations is unknown: no seed was counted yet")
	}
	for _, usage := range p.usages {
		if !usage.LastSeen.IsZero() {
			last := usage.LastSeen.Format(time.RFC3339)
			found.Notes = append(found.Notes, fmt.Sprintf("seed %q does not answer: it was counted at %s", usage.Seed, last))
		}
		if usage.Others > 0 {
			found.Notes = append(found.Notes, fmt.Sprintf("seed %q has %s, of versions that ConfigMap %s does not list",
				usage.Seed, text.Count(usage.Others, "more installation"), v1.ConfigMapUsage))
		}
	}
}
