package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// series are the different ones that a query gives at the times of all scrapes.
func series(
	ctx context.Context, engine *promql.Engine, kept storage.Queryable, scrapes []scrape, query string,
) (map[string]labels.Labels, error) {
	found := map[string]labels.Labels{}
	for _, one := range scrapes {
		asked, err := engine.NewInstantQuery(ctx, kept, nil, query, one.At)
		if err != nil {
			return nil, err
		}
		result := asked.Exec(ctx)
		if result.Err != nil {
			return nil, result.Err
		}
		switch value := result.Value.(type) {
		case promql.Vector:
			for _, sample := range value {
				found[sample.Metric.String()] = sample.Metric.Copy()
			}
		case promql.Scalar:
			return nil, fmt.Errorf("%q gives the same number whatever was scraped", query)
		}
		asked.Close()
	}
	return found, nil
}

// selectors of an expression, without how far they look back.
func selectors(expression parser.Expr) iter.Seq[string] {
	return func(yield func(string) bool) {
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			if selector, isOne := node.(*parser.VectorSelector); isOne && !yield(selector.String()) {
				return errEnough
			}
			return nil
		})
	}
}

var errEnough = fmt.Errorf("enough was seen")

// withoutThresholds leaves out comparisons with a number, which say when an alert is one and not what it is about.
func withoutThresholds(expression parser.Expr) parser.Expr {
	switch one := expression.(type) {
	case *parser.ParenExpr:
		return withoutThresholds(one.Expr)
	case *parser.BinaryExpr:
		if one.Op.IsComparisonOperator() && isNumber(one.RHS) {
			return withoutThresholds(one.LHS)
		}
		return &parser.BinaryExpr{
			Op: one.Op, LHS: withoutThresholds(one.LHS), RHS: withoutThresholds(one.RHS),
			VectorMatching: one.VectorMatching, ReturnBool: one.ReturnBool,
		}
	}
	return expression
}

func isNumber(expression parser.Expr) bool { return expression.Type() == parser.ValueTypeScalar }

// groupedBy are the labels that any aggregation of an expression keeps, but for a histogram's own.
func groupedBy(expression parser.Expr) (names []string) {
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if aggregation, isOne := node.(*parser.AggregateExpr); isOne && !aggregation.Without {
			for _, name := range aggregation.Grouping {
				if name != labels.BucketLabel {
					names = append(names, name)
				}
			}
		}
		return nil
	})
	return names
}

func isOnAny(all map[string]labels.Labels, name string) bool {
	for _, one := range all {
		if one.Has(name) {
			return true
		}
	}
	return false
}
