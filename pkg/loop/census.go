package loop

import (
	"context"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/conditions"
	"github.com/trellis-addons/trellis/pkg/text"
)

// CensusLabels are an object's state, and the reason of its condition Ready.
var CensusLabels = []string{"state", "reason"}

const (
	// maxWords bounds the words with figures that are not of our code: others than we can write a
	// status.
	maxWords    = 100
	countWithin = 10 * time.Second
)

var reasonWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Census counts objects by two labels, from a cache, whenever metrics are read. It implements
// prometheus.Collector.
type Census struct {
	description *prometheus.Desc
	leads       <-chan struct{}
	each        EachLabels
}

// Each visits the conditions of all objects that are to be counted.
type Each func(ctx context.Context, visit func(conditions []metav1.Condition)) error

// EachLabels counts each object by its labels. Their number is to be bounded.
type EachLabels func(ctx context.Context, count func(first, second string)) error

// NewCensus makes a Census of a metric with CensusLabels, by condition Ready, which counts once
// leads is closed.
func NewCensus(description *prometheus.Desc, leads <-chan struct{}, each Each) *Census {
	reasons := text.NewWords(maxWords, reasonWord)
	return NewLabelledCensus(description, leads, func(ctx context.Context, count func(first, second string)) error {
		return each(ctx, func(list []metav1.Condition) {
			state, ready := conditions.StateOf(list)
			reason := ""
			if ready != nil {
				reason = reasons.Label(ready.Reason)
			}
			count(string(state), reason)
		})
	})
}

// NewLabelledCensus makes a Census of a metric with two labels, which counts once leads is closed.
func NewLabelledCensus(description *prometheus.Desc, leads <-chan struct{}, each EachLabels) *Census {
	return &Census{description: description, leads: leads, each: each}
}

// Describe implements prometheus.Collector.
func (c *Census) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.description }

// Collect implements prometheus.Collector.
func (c *Census) Collect(metrics chan<- prometheus.Metric) {
	select {
	case <-c.leads:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	counts := map[[2]string]int{}
	if err := c.each(ctx, func(first, second string) { counts[[2]string{first, second}]++ }); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.description, err)
		return
	}
	for labels, count := range counts {
		metrics <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(count), labels[0], labels[1])
	}
}
