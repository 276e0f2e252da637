package tracing

import (
	"sync"
	"time"
)

const (
	// chunkBytes is what one message to the collector has of spans, more or less.
	chunkBytes = 128 << 10
	// longestSpan is about the most bytes of one span.
	longestSpan = 2 << 10
	// mostChunks wait at a time: 2 MiB, some ten thousand spans.
	mostChunks = 16
)

// queue has encoded spans that wait to be sent.
type queue struct {
	metrics *Metrics
	// full has something when there is a whole chunk.
	full chan struct{}

	mutex   sync.Mutex
	current chunk
	waiting []chunk
	// spare is memory to use again: that of a chunk that was sent, and of one span.
	spare, scratch []byte
}

// chunk are encoded spans, as fields of a message.
type chunk struct {
	bytes []byte
	spans int
}

func newQueue(metrics *Metrics) *queue {
	return &queue{metrics: metrics, full: make(chan struct{}, 1)}
}

// add encodes a span that ends now. One that finds no place is dropped.
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
	default: // it is known already
	}
}

// close has the current chunk wait.
func (q *queue) close() {
	if q.current.spans > 0 {
		q.waiting = append(q.waiting, q.current)
		q.current = chunk{}
	}
}

// next is the chunk to send first, which waits on until it is done. Where none waits, the current one does from now on.
func (q *queue) next() (first chunk, ok bool) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.waiting) == 0 {
		q.close()
	}
	return q.first()
}

// whole is as next, and leaves the current chunk to grow.
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
	case <-q.full: // what it told of is sent
	default:
	}
	return chunk{}, false
}

// done takes the first chunk out.
func (q *queue) done() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.spare = q.waiting[0].bytes[:0]
	q.waiting = append(q.waiting[:0], q.waiting[1:]...)
}
