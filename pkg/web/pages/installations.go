package pages

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/login"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

// mostSelected is how many installations one action changes.
const mostSelected = 100

// filters of the list are in its address.
type filters struct{ Seed, Namespace, Cluster, Addon, State, Search, Sort string }

func filtersOf(query url.Values) filters {
	return filters{
		query.Get("seed"), query.Get("namespace"), query.Get("cluster"), query.Get("addon"), query.Get("state"), query.Get("search"),
		query.Get("sort"),
	}
}

// query are the filters for an endpoint.
func (f *filters) query() url.Values {
	made := url.Values{}
	setAll(made, "namespace", f.Namespace, "cluster", f.Cluster, "addon", f.Addon, "state", f.State, "search", f.Search, "sort", f.Sort)
	return made
}

// address is the list with these filters on one seed, in one state, after a row.
func (f *filters) address(seed, state, after string) string {
	return with(at("installations"), "seed", seed, "namespace", f.Namespace, "cluster", f.Cluster, "addon", f.Addon, "state", state,
		"search", f.Search, "sort", f.Sort, "after", after)
}

type installationsView struct {
	filters
	Here   string
	Total  int
	Shown  int
	Counts []link
	Seeds  []seedRows
	// Names of all seeds, States and Sorts are what can be chosen.
	Names, States, Sorts []string
	IsFiltered           bool
}

// link is a count that leads to its rows.
type link struct {
	count
	URL      string
	IsChosen bool
}

var sorts = []string{"name", "cluster", "addon", "state", "created", "-created"}

func (s *Site) installations(v *visit) (*page, error) {
	made := installationsView{filters: filtersOf(v.form), Here: v.URL.RequestURI(), States: view.States, Sorts: sorts}
	for _, one := range s.platform.Seeds {
		made.Names = append(made.Names, one.Name)
	}
	seeds, err := s.seedsOf(made.Seed)
	if err != nil {
		return nil, err
	}
	query := made.query()
	query.Set("limit", strconv.Itoa(max(5, rowsOfPage/len(seeds))))
	if len(seeds) == 1 {
		setAll(query, "after", v.form.Get("after"))
	}
	answers := upstream.Each(v.Context(), seeds, func(ctx context.Context, seed *upstream.Seed) (upstream.Installations, error) {
		return s.rows(ctx, v, seed, query)
	})
	if err := loginRefused(answers); err != nil {
		return nil, err
	}
	sum, all := map[string]int{}, 0
	for _, one := range answers {
		rows := seedRows{
			Seed: one.Seed.Name, Rows: one.Answer.Installations, Total: one.Answer.Total, Problem: problemOf(one.Err),
			Truncated: one.Answer.Truncated,
		}
		if isHidden(one.Err) {
			rows.Problem = nil // the user has no namespace there
		}
		if next := one.Answer.After; next != "" && len(seeds) == 1 {
			rows.Next = made.address(one.Seed.Name, made.State, next)
		} else if next != "" {
			rows.More = made.address(one.Seed.Name, made.State, "")
		}
		for state, number := range one.Answer.Counts {
			sum[state], all = sum[state]+number, all+number
		}
		made.Total, made.Shown = made.Total+rows.Total, made.Shown+len(rows.Rows)
		made.Seeds = append(made.Seeds, rows)
	}
	made.Counts = append(made.Counts, link{count{"All", all}, made.address(made.Seed, "", ""), made.State == ""})
	for _, one := range countsOf(sum) {
		made.Counts = append(made.Counts, link{one, made.address(made.Seed, one.State, ""), one.State == made.State})
	}
	made.IsFiltered = made.filters != filters{Sort: made.Sort}
	stream := with(at("events"), "seed", made.Seed, "namespace", made.Namespace, "cluster", made.Cluster)
	return &page{template: "installations", title: "Installations", data: made, stream: stream}, nil
}

// manyView is the outcome of an action on several installations.
type manyView struct {
	Label string
	Rows  []manyRow
	Back  string
	Done  int
}

type manyRow struct {
	Seed, Namespace, Name string
	Problem               *problem
}

// actOnMany pauses, resumes or reconciles selected installations: one write each.
func (s *Site) actOnMany(v *visit) (*page, error) {
	selected := v.form["one"]
	labels := map[string]string{"pause": "Pause", "resume": "Resume", "reconcile": "Reconcile now"}
	made := &manyView{Label: labels[v.form.Get("do")], Back: localBack(v.form.Get("back"))}
	switch {
	case made.Label == "":
		return nil, wrong("this action is not possible for several installations")
	case len(selected) == 0:
		return nil, wrong("select at least one installation")
	case len(selected) > mostSelected:
		return nil, wrong(fmt.Sprintf("select at most %d installations", mostSelected))
	}
	made.Rows = make([]manyRow, len(selected))
	var all sync.WaitGroup
	for i, one := range selected {
		all.Go(func() { made.Rows[i] = s.actOnOne(v, one) })
	}
	all.Wait()
	for _, one := range made.Rows {
		if one.Problem == nil {
			made.Done++
		}
	}
	slices.SortStableFunc(made.Rows, func(a, b manyRow) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &page{template: "many", title: made.Label, data: made}, nil
}

func localBack(path string) string {
	if path = login.Local(path); strings.HasPrefix(path, "/installations?") || strings.HasPrefix(path, "/clusters/") {
		return path
	}
	return at("installations")
}

// actOnOne acts on an installation that is named seed/namespace/name.
func (s *Site) actOnOne(v *visit, named string) manyRow {
	parts := append(strings.SplitN(named, "/", 3), "", "")
	made := manyRow{Seed: parts[0], Namespace: parts[1], Name: parts[2]}
	seed := s.platform.Seed(made.Seed)
	if seed == nil {
		made.Problem = problemOf(missing("there is no such seed"))
		return made
	}
	object, one := upstream.Object{Resource: resource, Namespace: made.Namespace, Name: made.Name}, &v1.AddonInstallation{}
	err := seed.API.Get(v.Context(), v.token(), object, nil, one)
	if err == nil {
		var operations []operation
		switch v.form.Get("do") {
		case "reconcile":
			operations = annotating(one, v1.AnnotationReconcileAt, s.Now().UTC().Format(time.RFC3339Nano), false)
		default:
			operations = []operation{{"op": "add", "path": "/spec/paused", "value": v.form.Get("do") == "pause"}}
		}
		err = patch(v, seed.API, object, one.Generation, operations)
	}
	made.Problem = problemOf(err)
	return made
}
