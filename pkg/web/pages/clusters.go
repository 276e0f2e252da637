package pages

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// seedClusters are clusters of one seed, or why there are none.
type seedClusters struct {
	Seed     string
	Clusters []upstream.Cluster
	Total    int
	Next     string
	Problem  *problem
}

type clustersView struct {
	Seeds []seedClusters
	// Seed and Namespace limit the list; "" for all.
	Seed, Namespace string
	Total           int
}

// clusters lists the clusters of all seeds, or of one namespace.
func (s *Site) clusters(v *visit) (*page, error) {
	made := clustersView{Seed: v.PathValue("seed"), Namespace: v.PathValue("namespace")}
	made.Seed = cmp.Or(made.Seed, v.form.Get("seed"))
	seeds, err := s.seedsOf(made.Seed)
	if err != nil {
		return nil, err
	}
	query := url.Values{"limit": {"100"}}
	setAll(query, "namespace", made.Namespace, "after", v.form.Get("after"))
	answers := upstream.Each(v.Context(), seeds, func(ctx context.Context, seed *upstream.Seed) (found upstream.Clusters, _ error) {
		err := seed.Ask(ctx, v.token(), query, &found, "clusters")
		return found, err
	})
	if err := loginRefused(answers); err != nil {
		return nil, err
	}
	for _, one := range answers {
		if made.Namespace != "" && one.Err != nil {
			return nil, one.Err
		}
		if made.Namespace != "" && one.Answer.Total == 1 && len(one.Answer.Clusters) == 1 {
			only := one.Answer.Clusters[0]
			return &page{to: atCluster(one.Seed.Name, only.Namespace, only.Name)}, nil
		}
		rows := seedClusters{Seed: one.Seed.Name, Clusters: one.Answer.Clusters, Total: one.Answer.Total, Problem: problemOf(one.Err)}
		if isHidden(one.Err) {
			rows.Problem = nil // the user has no cluster there
		}
		if one.Answer.After != "" {
			rows.Next = with(v.URL.Path, "seed", one.Seed.Name, "after", one.Answer.After)
		}
		made.Total += rows.Total
		made.Seeds = append(made.Seeds, rows)
	}
	return &page{template: "clusters", title: "Clusters", data: made}, nil
}

// clusterView is one cluster: what it has, what it is offered, and what an upgrade of it does.
type clusterView struct {
	*place
	Rows    []view.Row
	Total   int
	Offers  []upstream.Addon
	MayAdd  bool
	To      string
	Upgrade *upstream.UpgradeCheck
	// Problems of single parts of the page.
	RowsProblem, OffersProblem, UpgradeProblem *problem
}

var kubernetesVersion = regexp.MustCompile(`^v?[0-9]+\.[0-9]+(\.[0-9A-Za-z.+-]+)?$`)

func (s *Site) cluster(v *visit) (*page, error) {
	seed, here, err := s.placeOf(v)
	if err != nil {
		return nil, err
	}
	made := clusterView{place: here, To: v.form.Get("to")}
	query := url.Values{"namespace": {here.Namespace}, "cluster": {here.Name}, "limit": {"500"}}
	rows, err := s.rows(v.Context(), v, seed, query)
	made.Rows, made.Total, made.RowsProblem = rows.Installations, rows.Total, problemOf(err)
	listing, err := s.listing(v, here)
	made.Offers, made.OffersProblem = listing.Addons, problemOf(err)
	made.MayAdd = seed.API.Rights(v.Context(), v.token(), here.Namespace).May("create", "addoninstallations", "")
	switch {
	case made.To == "":
	case !kubernetesVersion.MatchString(made.To):
		made.UpgradeProblem = problem1("Not accepted", "write the version like 1.37.0")
	default:
		found, err := seed.CheckUpgrade(v.Context(), v.token(), here.Cluster, made.To)
		made.Upgrade, made.UpgradeProblem = &found, problemOf(err)
	}
	stream := with(at("events"), "seed", seed.Name, "namespace", here.Namespace, "cluster", here.Name)
	return &page{template: "cluster", title: "Cluster " + here.Name, data: made, stream: stream, status: http.StatusOK}, nil
}

// isKKP says whether KKP made a cluster: then its installations do not name it.
func (p *place) isKKP() bool {
	return p.Kind == "" || p.Kind == "Cluster."+v1.GroupVersion.Group
}
