package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crowd is a handler that is asked by many, and ends nothing before it is told to.
type crowd struct {
	http.Handler
	evaluating, read atomic.Int32
	end              chan struct{}
}

func newCrowd() *crowd {
	made := &crowd{end: make(chan struct{})}
	made.Handler = InTurn(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.ReadAll(request.Body)
		made.evaluating.Add(1)
		defer made.evaluating.Add(-1)
		select {
		case <-made.end:
		case <-request.Context().Done():
		}
	}))
	return made
}

// counted is a body that tells when it is read.
type counted struct {
	io.Reader
	read *atomic.Int32
}

func (c counted) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	if n > 0 {
		c.read.Add(1)
	}
	return n, err
}

// deadlined is an answer whose connection takes deadlines, as those of our servers do.
type deadlined struct {
	*httptest.ResponseRecorder
	until time.Time
}

// SetReadDeadline is what http.ResponseController calls.
func (d *deadlined) SetReadDeadline(until time.Time) error {
	d.until = until
	return nil
}

func (m *crowd) ask(ctx context.Context) *deadlined {
	answer := &deadlined{ResponseRecorder: httptest.NewRecorder()}
	m.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", counted{strings.NewReader("review"), &m.read}))
	return answer
}

// askMany gives the answers as they come.
func (m *crowd) askMany(ctx context.Context, count int) <-chan *deadlined {
	answers := make(chan *deadlined, count)
	for range count {
		go func() { answers <- m.ask(ctx) }()
	}
	return answers
}

// AC91: Of a hundred concurrent updates the webhook reads and judges two, and answers 429 to the others. Red when it reads more, when the
// others wait for ever, and when a turn is not given back.
func TestFewRequestsAreReadAndEvaluatedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flood := newCrowd()
		answers := flood.askMany(t.Context(), 100)
		synctest.Wait()
		if evaluating, read := flood.evaluating.Load(), flood.read.Load(); evaluating != evaluatedAtOnce || read != evaluatedAtOnce {
			t.Errorf("%d are judged and %d are read at once, want %d", evaluating, read, evaluatedAtOnce)
		}
		<-time.After(longestWait)
		synctest.Wait()
		if len(answers) != 100-evaluatedAtOnce {
			t.Fatalf("%d were answered after %s", len(answers), longestWait)
		}
		for range 100 - evaluatedAtOnce {
			var status metav1.Status
			answer := <-answers
			err := json.Unmarshal(answer.Body.Bytes(), &status)
			isStatus := err == nil && status.Kind == "Status" && status.Reason == metav1.StatusReasonTooManyRequests
			if answer.Code != http.StatusTooManyRequests || !isStatus {
				t.Fatalf("got %d %s", answer.Code, answer.Body)
			}
		}
		close(flood.end)
		for range evaluatedAtOnce {
			if answer := <-answers; answer.Code != http.StatusOK {
				t.Errorf("one in its turn got %d", answer.Code)
			}
		}
		if answer := flood.ask(t.Context()); answer.Code != http.StatusOK {
			t.Errorf("after the flood: got %d", answer.Code)
		}
	})
}

// Red when a request waits that the API server gave up, and when one that hangs keeps its turn: without the deadline for its body, or for
// what is asked meanwhile.
func TestNobodyKeepsATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := newCrowd()
		first, began := stuck.askMany(t.Context(), evaluatedAtOnce), time.Now()
		synctest.Wait()
		given, giveUp := context.WithCancel(t.Context())
		waiting := stuck.askMany(given, 1)
		synctest.Wait()
		giveUp()
		if <-waiting; time.Since(began) > 0 {
			t.Errorf("it waited %s for a turn although it was given up", time.Since(began))
		}
		for range evaluatedAtOnce {
			if answer := <-first; !answer.until.Equal(began.Add(longestTurn)) {
				t.Errorf("its body may take until %s", answer.until)
			}
		}
		if took := time.Since(began); took != longestTurn {
			t.Errorf("what hangs kept its turn for %s", took)
		}
	})
}
