package pages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

const (
	// attentionOfSeed is how many installations of a seed the first page names.
	attentionOfSeed = 20
	// rowsOfPage is how many rows a page of a list has.
	rowsOfPage = 100
)

// count is a number of installations in a state.
type count struct {
	State  string
	Number int
}

// countsOf are the counts in their order.
func countsOf(all map[string]int) (found []count) {
	for _, state := range view.States {
		found = append(found, count{state, all[state]})
	}
	return found
}

// seedRows are rows of one seed, or why there are none.
type seedRows struct {
	Seed    string
	Rows    []view.Row
	Counts  []count
	Total   int
	Next    string
	More    string
	Problem *problem
	// Truncated says that the user has more namespaces than are shown.
	Truncated bool
}

// overview is the first page: counts over all seeds, and what needs a person.
type overview struct {
	Total  int
	Counts []count
	Seeds  []seedRows
	// Waiting are installations and sets that wait for an approval.
	Approvals []approval
	Sets      []setRow
	HasRows   bool
}

// approval is an installation that waits for an approval.
type approval struct {
	Seed string
	view.Row
}

func (s *Site) overview(v *visit) (*page, error) {
	var sets []setRow
	var reading sync.WaitGroup
	reading.Go(func() { sets, _ = s.readSets(v) }) // users of one cluster may not list sets
	answers := upstream.Each(v.Context(), s.platform.Seeds, func(ctx context.Context, seed *upstream.Seed) (upstream.Installations, error) {
		return s.rows(ctx, v, seed, url.Values{"state": {"Failing"}, "limit": {"20"}, "sort": {"created"}})
	})
	reading.Wait()
	if err := loginRefused(answers); err != nil {
		return nil, err
	}
	made, sum := overview{}, map[string]int{}
	for _, one := range answers {
		rows := seedRows{Seed: one.Seed.Name, Problem: problemOf(one.Err), Rows: one.Answer.Installations, Truncated: one.Answer.Truncated}
		rows.Counts = countsOf(one.Answer.Counts)
		for state, number := range one.Answer.Counts {
			sum[state] += number
			made.Total += number
			rows.Total += number
		}
		for _, row := range rows.Rows {
			made.HasRows = true
			if row.Reason == v1.ReasonPruneNeedsApproval || row.Reason == v1.ReasonNoManifests || row.Reason == v1.ReasonApprovalRequired {
				made.Approvals = append(made.Approvals, approval{one.Seed.Name, row})
			}
		}
		if len(rows.Rows) == attentionOfSeed {
			rows.More = with(at("installations"), "seed", one.Seed.Name, "state", "Failing")
		}
		made.Seeds = append(made.Seeds, rows)
	}
	made.Counts = countsOf(sum)
	for _, one := range sets {
		if one.State != view.States[0] || one.Pending > 0 {
			made.Sets = append(made.Sets, one)
		}
	}
	slices.SortStableFunc(made.Sets, func(a, b setRow) int { return int(b.Pending - a.Pending) })
	return &page{template: "overview", title: "Overview", data: made}, nil
}

// loginRefused is the refusal of the login, if seeds refuse it and none gives another answer.
func loginRefused[T any](answers []upstream.Of[T]) (err error) {
	for _, one := range answers {
		switch {
		case one.Err == nil || isHidden(one.Err):
			return nil
		case upstream.Is(one.Err, http.StatusUnauthorized):
			err = one.Err
		}
	}
	return err
}

// rows asks a seed for installations. A user without any right there is no failure: there are none.
func (s *Site) rows(ctx context.Context, v *visit, seed *upstream.Seed, query url.Values) (found upstream.Installations, err error) {
	err = seed.Ask(ctx, v.token(), query, &found, "installations")
	return found, err
}

// isHidden says whether a user lacks the right to something, or it does not exist.
func isHidden(err error) bool {
	return upstream.Is(err, http.StatusNotFound) || upstream.Is(err, http.StatusForbidden)
}
