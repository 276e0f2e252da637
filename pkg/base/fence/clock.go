package fence

import (
	"net/http"
	"time"
)

// mostAhead is how far a leader's wall clock may be ahead of its API server's.
const mostAhead = 10 * time.Minute

// comparing compares the wall clock with the time in an API server's answers.
type comparing struct {
	fence *Fence
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *comparing) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if theirs, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
		c.fence.mutex.Lock()
		defer c.fence.mutex.Unlock()
		c.fence.ahead = c.fence.now().day.Sub(theirs)
	}
	return answer, nil
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (c *comparing) WrappedRoundTripper() http.RoundTripper { return c.next }

func (f *Fence) aheadOfServer() time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.ahead
}
