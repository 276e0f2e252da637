// Command promql asks Prometheus' own engine queries over scrapes of metrics, all of which stand as JSON at standard input, and writes
// what each of them answers. It is a module of its own, so that nothing of Prometheus is in the product.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// work is what is asked for.
type work struct {
	Scrapes []scrape `json:"scrapes"`
	Queries []string `json:"queries"`
}

// answer is what became of a query at the times of all scrapes.
type answer struct {
	Query string `json:"query"`
	// Problem is why it can't be answered; empty: it was.
	Problem string `json:"problem,omitempty"`
	// Series are their number, before any comparison with a number left some out.
	Series int `json:"series"`
	// Missing are labels that the query groups by and no series has.
	Missing []string `json:"missing,omitempty"`
	// Unmet are the selectors in it that nothing was scraped for.
	Unmet []string `json:"unmet,omitempty"`
	// Firing are how many it gives at the time of the last scrape, comparisons with numbers among it: as an alert.
	Firing int `json:"firing"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var asked work
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return fmt.Errorf("reading what is asked for: %w", err)
	}
	kept, err := teststorage.NewWithError()
	if err != nil {
		return fmt.Errorf("opening a storage: %w", err)
	}
	defer func() { _ = kept.Close() }()
	for _, one := range asked.Scrapes {
		if err := keep(ctx, kept, one); err != nil {
			return err
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute})
	answers := make([]answer, 0, len(asked.Queries))
	for _, query := range asked.Queries {
		answers = append(answers, ask(ctx, engine, kept, asked.Scrapes, query))
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// ask a query at the time of each scrape. Rates look back over scrapes of before.
func ask(ctx context.Context, engine *promql.Engine, kept storage.Queryable, scrapes []scrape, query string) answer {
	found := answer{Query: query}
	expression, err := reader.ParseExpr(query)
	if err != nil {
		found.Problem = err.Error()
		return found
	}
	for selector := range selectors(expression) {
		if count, err := series(ctx, engine, kept, scrapes, selector); err != nil || len(count) == 0 {
			found.Unmet = append(found.Unmet, selector)
		}
	}
	answered, err := series(ctx, engine, kept, scrapes, withoutThresholds(expression).String())
	if err != nil {
		found.Problem = err.Error()
		return found
	}
	firing, err := series(ctx, engine, kept, scrapes[max(0, len(scrapes)-1):], query)
	if err != nil {
		found.Problem = err.Error()
		return found
	}
	found.Series, found.Firing = len(answered), len(firing)
	for _, label := range groupedBy(expression) {
		if !isOnAny(answered, label) {
			found.Missing = append(found.Missing, label)
		}
	}
	return found
}

// reader is Prometheus' parser as it is set up without feature flags.
var reader = parser.NewParser(parser.Options{})
