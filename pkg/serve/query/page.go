package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

const (
	mostRows    = 500
	defaultRows = 100
	mostSearch  = 128
	mostAfter   = 512
	// rowMessage is how much of a row's message is shown, in bytes.
	rowMessage = 512
)

// orders are the values of parameter sort, with the text that rows are sorted by, before their namespace and name.
var orders = map[string]func(*row) string{
	"name":    func(*row) string { return "" },
	"cluster": func(one *row) string { return one.Cluster },
	"addon":   func(one *row) string { return one.Addon },
	"state":   func(one *row) string { return one.State },
	"created": func(one *row) string { return one.created },
}

// rowQuery selects and sorts rows. The zero value is not valid: see readRows.
type rowQuery struct {
	namespace, cluster, addon, state, search string
	sort                                     string
	isReversed                               bool
	// after is the position of the last row of the page before; nil: this is the first page.
	after *position
	limit int
}

// readRows reads the parameters of lists of installations. Errors: *ParameterError.
func readRows(values map[string]string) (rowQuery, error) {
	asked := rowQuery{state: values["state"], search: strings.ToLower(values["search"]), sort: "name", limit: defaultRows}
	var err error
	for _, one := range []struct {
		parameter string
		into      *string
	}{{"namespace", &asked.namespace}, {"addon", &asked.addon}} {
		if given, isGiven := values[one.parameter]; isGiven {
			if *one.into, err = name(one.parameter, given); err != nil {
				return asked, err
			}
		}
	}
	if asked.cluster, err = clusterName(values); err != nil {
		return asked, err
	}
	if _, isGiven := values["state"]; isGiven && !slices.Contains(view.States, asked.state) {
		problem := fmt.Sprintf("%q is not a state: use one of %s", shown(asked.state), strings.Join(view.States, ", "))
		return asked, &ParameterError{"state", problem}
	}
	if len(asked.search) > mostSearch {
		return asked, &ParameterError{"search", fmt.Sprintf("it has %d bytes, at most %d are allowed", len(asked.search), mostSearch)}
	}
	if given, isGiven := values["sort"]; isGiven {
		asked.sort, asked.isReversed = strings.CutPrefix(given, "-")
		if orders[asked.sort] == nil {
			return asked, &ParameterError{
				"sort", fmt.Sprintf("%q is not an order: use name, cluster, addon, state or created, or one of them with - in front of it",
					shown(given)),
			}
		}
	}
	return asked, asked.readPlace(values)
}

func (q *rowQuery) readPlace(values map[string]string) error {
	if given, isGiven := values["limit"]; isGiven {
		number, err := strconv.Atoi(given)
		if err != nil || number < 1 || number > mostRows {
			return &ParameterError{"limit", fmt.Sprintf("%q is not a number from 1 to %d", shown(given), mostRows)}
		}
		q.limit = number
	}
	given, isGiven := values["after"]
	if !isGiven {
		return nil
	}
	parts := strings.Split(given, "/")
	if q.sort == "name" {
		parts = append([]string{""}, parts...)
	}
	if len(parts) != 3 || len(given) > mostAfter {
		return &ParameterError{"after", "it is not the value of field after in the previous answer with the same sort"}
	}
	q.after = &position{parts[0], parts[1], parts[2]}
	return nil
}

// admits says whether a row is selected, apart from its state.
func (q *rowQuery) admits(one *row) bool {
	switch {
	case q.addon != "" && one.Addon != q.addon, q.cluster != "" && one.Cluster != q.cluster:
		return false
	case q.search == "":
		return true
	}
	return strings.Contains(one.Name, q.search) || strings.Contains(one.Cluster, q.search) || strings.Contains(one.Addon, q.search) ||
		strings.Contains(one.Namespace, q.search)
}

func (q *rowQuery) admitsWithState(one *row) bool {
	return one != nil && q.admits(one) && (q.state == "" || q.state == one.State)
}

func (q *rowQuery) position(one *row) position {
	return position{orders[q.sort](one), one.Namespace, one.Name}
}

func (q *rowQuery) compare(a, b position) int {
	if q.isReversed {
		return b.compare(a)
	}
	return a.compare(b)
}

// first keeps the first rows of an order without sorting all.
type first struct {
	asked *rowQuery
	most  int
	rows  []placed
	// worst is the last of the first rows so far; nil: there are fewer.
	worst *position
}

type placed struct {
	position
	*row
}

// sortedAtOnce is how many times the wanted rows are collected before they are sorted.
const sortedAtOnce = 8

func (f *first) add(one placed) {
	if f.worst != nil && f.asked.compare(one.position, *f.worst) > 0 {
		return
	}
	if f.rows = append(f.rows, one); len(f.rows) >= sortedAtOnce*f.most {
		f.cut()
		f.worst = &f.rows[f.most-1].position
	}
}

func (f *first) cut() {
	slices.SortFunc(f.rows, func(a, b placed) int { return f.asked.compare(a.position, b.position) })
	f.rows = f.rows[:min(len(f.rows), f.most)]
}

// page is a part of the installations that a caller may see.
type page struct {
	Installations []view.Row `json:"installations"`
	// Total counts all that are selected; Counts are those by state, of any state.
	Total  int         `json:"total"`
	Counts stateCounts `json:"counts"`
	// After is the parameter for the next page; empty: this is the last one.
	After     string `json:"after,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// stateCounts has a number for each of view.States.
type stateCounts map[string]int

func newCounts() stateCounts {
	counts := stateCounts{}
	for _, state := range view.States {
		counts[state] = 0
	}
	return counts
}

// installations lists the rows of the installations that the caller may list.
func (s *Server) installations(ctx context.Context, of *call) (*content, error) {
	seen, end, err := s.reads(ctx, of)
	if err != nil {
		return nil, err
	}
	defer end()
	return answerOf(s.page(seen, &of.given.rows))
}

// reads is the scope of a request, and a turn of its user: requests that read the whole index take CPU.
func (s *Server) reads(ctx context.Context, of *call) (seen scope, end func(), err error) {
	if seen, err = s.scope(ctx, of.identity, of.given.rows.namespace); err != nil {
		return seen, nil, err
	}
	end, err = s.turns.take(ctx, reading, of.identity.owner())
	return seen, end, err
}

func (s *Server) page(seen scope, asked *rowQuery) page {
	found := page{Installations: []view.Row{}, Counts: newCounts(), Truncated: seen.truncated}
	best := first{asked: asked, most: asked.limit + 1}
	// Mostly, rows that come first in the order are visited first then, and the others are left out at once.
	s.Rows.walk(seen, asked.isReversed, func(one *row) {
		if !asked.admits(one) {
			return
		}
		found.Counts[one.State]++
		if asked.state != "" && one.State != asked.state {
			return
		}
		found.Total++
		if at := asked.position(one); asked.after == nil || asked.compare(at, *asked.after) > 0 {
			best.add(placed{at, one})
		}
	})
	best.cut()
	if len(best.rows) > asked.limit {
		best.rows = best.rows[:asked.limit]
		found.After = best.rows[asked.limit-1].String()
	}
	for _, one := range best.rows {
		found.Installations = append(found.Installations, one.shown())
	}
	return found
}

// shown is the row with a bounded message.
func (r *row) shown() view.Row {
	shown := r.Row
	shown.Message = text.Cut(shown.Message, rowMessage)
	return shown
}

// answerOf encodes an answer that is not kept.
func answerOf(value any) (*content, error) {
	encoded, err := encode(value)
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return &content{plain: newForm(encoded, "")}, nil
}
