package pages

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// mostPages is how many pages of clusters are read to find one.
const mostPages = 20

// place is a cluster of a seed.
type place struct {
	Seed string
	upstream.Cluster
}

// Key names the cluster in an address.
func (p *place) key() string { return p.Seed + "/" + p.Namespace + "/" + p.Name }

// choice is an option of a select.
type choice struct {
	Value, Label string
	IsChosen     bool
}

// catalogueView are the add-ons that a cluster is offered.
type catalogueView struct {
	Places   []choice
	Place    *place
	Search   string
	Addons   []upstream.Addon
	Total    int
	Problem  *problem
	Problems []seedRows
}

// chosenPlace are the clusters that the user may see, and the one that parameter "in" names, or else the first.
func (s *Site) chosenPlace(v *visit) (choices []choice, chosen *place, problems []seedRows) {
	query := url.Values{"limit": {"200"}}
	answers := upstream.Each(v.Context(), s.platform.Seeds, func(ctx context.Context, seed *upstream.Seed) (found upstream.Clusters, _ error) {
		err := seed.Ask(ctx, v.token(), query, &found, "clusters")
		return found, err
	})
	named := v.form.Get("in")
	var places []*place
	for _, one := range answers {
		if one.Err != nil && !isHidden(one.Err) {
			problems = append(problems, seedRows{Seed: one.Seed.Name, Problem: problemOf(one.Err)})
		}
		for _, cluster := range one.Answer.Clusters {
			here := &place{one.Seed.Name, cluster}
			places = append(places, here)
			if here.key() == named {
				chosen = here
			}
		}
	}
	isDown := func(one seedRows) bool { return strings.HasPrefix(named, one.Seed+"/") }
	if chosen == nil && named != "" && !slices.ContainsFunc(problems, isDown) {
		chosen = s.namedPlace(v, named)
	}
	if chosen == nil && len(places) > 0 {
		chosen = places[0]
	}
	for _, one := range places {
		choices = append(choices, choice{one.key(), one.Name + " (" + one.Seed + ")", chosen.key() == one.key()})
	}
	return choices, chosen, problems
}

// namedPlace is a cluster that is not among the first of its seed; nil if there is none.
func (s *Site) namedPlace(v *visit, named string) *place {
	parts := strings.SplitN(named, "/", 3)
	if len(parts) != 3 || s.platform.Seed(parts[0]) == nil {
		return nil
	}
	found, err := s.findCluster(v, s.platform.Seed(parts[0]), parts[1], parts[2])
	if err != nil {
		return nil
	}
	return found
}

func (s *Site) catalogue(v *visit) (*page, error) {
	made := catalogueView{Search: strings.TrimSpace(v.form.Get("search"))}
	made.Places, made.Place, made.Problems = s.chosenPlace(v)
	if made.Place != nil {
		listing, err := s.listing(v, made.Place)
		made.Problem, made.Total = problemOf(err), len(listing.Addons)
		for _, one := range listing.Addons {
			if matches(one, made.Search) {
				made.Addons = append(made.Addons, one)
			}
		}
	}
	return &page{template: "catalogue", title: "Catalogue", data: made}, nil
}

// listing is what a cluster is offered, with descriptions and the versions that do not fit.
func (s *Site) listing(v *visit, of *place) (found upstream.Listing, err error) {
	query := url.Values{"descriptions": {"true"}, "explain": {"true"}, "cluster": {of.Name}}
	err = s.platform.Seed(of.Seed).Ask(v.Context(), v.token(), query, &found, "namespaces", of.Namespace, "addons")
	return found, err
}

func matches(one upstream.Addon, search string) bool {
	for word := range strings.FieldsSeq(strings.ToLower(search)) {
		if !strings.Contains(strings.ToLower(one.Name+" "+one.DisplayName+" "+one.Description+" "+one.SupportedBy), word) {
			return false
		}
	}
	return true
}

// addonView is one add-on, for a cluster.
type addonView struct {
	Places []choice
	Place  *place
	upstream.Addon
	Detail  *upstream.Version
	Problem *problem
}

func (s *Site) addon(v *visit) (*page, error) {
	made, name := addonView{}, v.PathValue("addon")
	made.Places, made.Place, _ = s.chosenPlace(v)
	if made.Place == nil {
		return nil, missing("there is no cluster that you may see, and so no catalogue")
	}
	listing, err := s.listing(v, made.Place)
	if err != nil {
		return nil, err
	}
	found := false
	for _, one := range listing.Addons {
		if one.Name == name {
			made.Addon, found = one, true
		}
	}
	if !found {
		return nil, missing("add-on " + name + " is not offered to cluster " + made.Place.Name)
	}
	if len(made.Versions) > 0 {
		detail, err := s.version(v, made.Place, name, made.Versions[0].Version)
		made.Problem = problemOf(err)
		made.Detail = &detail
	}
	return &page{template: "addon", title: name, data: made}, nil
}

// version is a version of an add-on with its form.
func (s *Site) version(v *visit, of *place, addon, version string) (found upstream.Version, err error) {
	err = s.platform.Seed(of.Seed).Ask(v.Context(), v.token(), url.Values{"cluster": {of.Name}}, &found,
		"namespaces", of.Namespace, "addons", addon, "versions", version)
	return found, err
}

// seedsOf are all seeds, or the one with this name.
func (s *Site) seedsOf(name string) ([]*upstream.Seed, error) {
	if name == "" {
		return s.platform.Seeds, nil
	}
	seed := s.platform.Seed(name)
	if seed == nil {
		return nil, missing("there is no seed " + name)
	}
	return []*upstream.Seed{seed}, nil
}

// seedOf is the seed of a path.
func (s *Site) seedOf(v *visit) (*upstream.Seed, error) {
	found, err := s.seedsOf(v.PathValue("seed"))
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// placeOf is the cluster of a path.
func (s *Site) placeOf(v *visit) (*upstream.Seed, *place, error) {
	seed, err := s.seedOf(v)
	if err != nil {
		return nil, nil, err
	}
	found, err := s.findCluster(v, seed, v.PathValue("namespace"), v.PathValue("cluster"))
	return seed, found, err
}

// findCluster finds a cluster by its namespace and name.
func (s *Site) findCluster(v *visit, seed *upstream.Seed, namespace, name string) (*place, error) {
	query := url.Values{"namespace": {namespace}, "limit": {"500"}}
	for range mostPages {
		var found upstream.Clusters
		if err := seed.Ask(v.Context(), v.token(), query, &found, "clusters"); err != nil {
			return nil, err
		}
		for _, one := range found.Clusters {
			if one.Name == name {
				return &place{seed.Name, one}, nil
			}
		}
		if found.After == "" {
			break
		}
		query.Set("after", found.After)
	}
	return nil, missing("namespace " + namespace + " of seed " + seed.Name + " has no cluster " + name)
}
