package loop

import (
	"context"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// CensusLabels are an object's state, and the reason of its condition Ready.
var CensusLabels = []string{"state", "reason"}

const (
	// maxWords limits the label values with figures that are not of our code: other clients may write a status.
	maxWords    = 100
	countWithin = 10 * time.Second
)

var reasonWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)

// Census counts objects by two labels, from a cache, each time that metrics are read. It implements
// prometheus.Collector.
type Census struct {
	description *prometheus.Desc
	leads       <-chan struct{}
	each        EachLabels
}

// Each visits the conditions of all objects to count.
type Each func(ctx context.Context, visit func(conditions []metav1.Condition)) error

// EachLabels counts each object by its labels. Their number has to be limited.
type EachLabels func(ctx context.Context, count func(first, second string)) error

// NewCensus creates a Census of a metric with CensusLabels, by condition Ready. It counts once leads is closed.
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

// EachOf visits the items of a list, which are shared with the cache: do not change them.
func EachOf[T any](ctx context.Context, from client.Reader, list client.ObjectList, visit func(*T), options ...client.ListOption) error {
	if err := from.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	return meta.EachListItem(list, func(one runtime.Object) error {
		visit(any(one).(*T))
		return nil
	})
}

// NewLabelledCensus creates a Census of a metric with two labels. It counts once leads is closed.
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
