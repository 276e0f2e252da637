package loop

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/conditions"
)

// CensusLabels are an object's state, and the reason of its condition Ready.
var CensusLabels = []string{"state", "reason"}

const (
	// maxReasons bounds the reasons with figures: others than we can write a status.
	maxReasons  = 100
	otherReason = "other"
	countWithin = 10 * time.Second
)

var reasonWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Census counts objects by their condition Ready, from a cache, whenever metrics are read. It
// implements prometheus.Collector.
type Census struct {
	description *prometheus.Desc
	leads       <-chan struct{}
	each        Each

	mutex   sync.Mutex
	reasons map[string]bool
}

// Each visits the conditions of all objects that are to be counted.
type Each func(ctx context.Context, visit func(conditions []metav1.Condition)) error

// NewCensus makes a Census of a metric with CensusLabels, which counts once leads is closed.
func NewCensus(description *prometheus.Desc, leads <-chan struct{}, each Each) *Census {
	return &Census{description: description, leads: leads, each: each, reasons: map[string]bool{}}
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
	err := c.each(ctx, func(list []metav1.Condition) {
		state, ready := conditions.StateOf(list)
		reason := ""
		if ready != nil {
			reason = c.bounded(ready.Reason)
		}
		counts[[2]string{string(state), reason}]++
	})
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(c.description, err)
		return
	}
	for labels, count := range counts {
		metrics <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(count), labels[0], labels[1])
	}
}

// bounded is a reason as a label.
func (c *Census) bounded(reason string) string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.reasons[reason]:
		return reason
	case len(c.reasons) >= maxReasons || !reasonWord.MatchString(reason):
		return otherReason
	}
	c.reasons[reason] = true
	return reason
}
