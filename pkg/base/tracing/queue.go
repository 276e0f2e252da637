package tracing

import (
	"sync"
	"time"
)

const (
	// chunkBytes is the approximate size of the spans in one message to the collector.
	chunkBytes = 128 << 10
	// longestSpan is about the most bytes of one span.
	longestSpan = 2 << 10
	// mostChunks wait at a time: 2 MiB, some ten thousand spans.
	mostChunks = 16
)

// queue has encoded spans that wait to be sent.
type queue struct {
	metrics *Metrics
	// full has a value when there is a whole chunk.
	full chan struct{}

	mutex   sync.Mutex
	current chunk
	waiting []chunk
	// spare is memory to use again, from a chunk that was sent; scratch is for one span.
	spare, scratch []byte
}

// chunk has encoded spans, as fields of a message.
type chunk struct {
	bytes []byte
	spans int
}

func newQueue(metrics *Metrics) *queue {
	return &queue{metrics: metrics, full: make(chan struct{}, 1)}
}

// add encodes a span that ends now. A span that finds no place is dropped.
func (q *queue) add(span *Span, now time.Time) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.waiting) == mostChunks {
		q.metrics.dropped.Inc()
		return
	}
	if q.current.bytes == nil {
		q.current.bytes, q.spare = q.spare, nil
	}
	if q.current.bytes == nil {
		q.current.bytes = make([]byte, 0, chunkBytes+longestSpan)
	}
	q.scratch = appendSpan(q.scratch[:0], span, now)
	q.current.bytes = appendBytes(q.current.bytes, fieldSpans, q.scratch)
	q.current.spans++
	if len(q.current.bytes) < chunkBytes {
		return
	}
	q.close()
	select {
	case q.full <- struct{}{}:
	default: // the sender knows already
	}
}

// close lets the current chunk wait.
func (q *queue) close() {
	if q.current.spans > 0 {
		q.waiting = append(q.waiting, q.current)
		q.current = chunk{}
	}
}

// next is the chunk to send first, which waits until it is done. If none waits, the current one waits from now on.
func (q *queue) next() (first chunk, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.waiting) == 0 {
		q.close()
	}
	return q.first()
}

// whole is next, but leaves the current chunk to grow.
func (q *queue) whole() (first chunk, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.first()
}

func (q *queue) first() (first chunk, ok bool) {
	if len(q.waiting) > 0 {
		return q.waiting[0], true
	}
	select {
	case <-q.full: // the chunk that it announced is sent
	default:
	}
	return chunk{}, false
}

// done removes the first chunk.
func (q *queue) done() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.spare = q.waiting[0].bytes[:0]
	q.waiting = append(q.waiting[:0], q.waiting[1:]...)
}
