package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/storage"
)

// scrape is what a manager answered at a time, with the labels that Prometheus would give its series.
type scrape struct {
	At     time.Time         `json:"at"`
	Labels map[string]string `json:"labels"`
	Text   string            `json:"text"`
}

// keep the samples of a scrape.
func keep(ctx context.Context, kept storage.Appendable, one scrape) error {
	appender := kept.Appender(ctx)
	parser, err := textparse.New([]byte(one.Text), "text/plain; version=0.0.4", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return fmt.Errorf("reading a scrape: %w", err)
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return appender.Commit()
		}
		if err != nil {
			return fmt.Errorf("reading a scrape: %w", err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, value := parser.Series()
		var found labels.Labels
		parser.Labels(&found)
		builder := labels.NewBuilder(found)
		for name, label := range one.Labels {
			builder.Set(name, label)
		}
		if _, err := appender.Append(0, builder.Labels(), one.At.UnixMilli(), value); err != nil {
			return fmt.Errorf("keeping %s: %w", found, err)
		}
	}
}
