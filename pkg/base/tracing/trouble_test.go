package tracing_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-addons/trellis/pkg/base/tracing"
	"github.com/trellis-addons/trellis/test/collector"
	"github.com/trellis-addons/trellis/test/fleet"
)

// transport is a collector within a bubble of time.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
	return t(request)
}

func answers(status int, header ...string) *http.Response {
	made := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
	for i := 0; i < len(header); i += 2 {
		made.Header.Set(header[i], header[i+1])
	}
	return made
}

func by(t transport) func(*tracing.Options) {
	return func(options *tracing.Options) { options.Client = &http.Client{Transport: t} }
}

// later is when that time has passed in the bubble, and all that was to happen has.
func later(after time.Duration) {
	<-time.After(after)
	synctest.Wait()
}

// A collector that is down costs spans, a log line in ten minutes, and nothing that passes would notice.
func TestADeadCollectorCostsSpansOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := start(t, "http://collector.invalid", by(func(*http.Request) (*http.Response, error) {
			calls++
			return nil, &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
		}))
		passes := 0
		for range 60 {
			begun := time.Now()
			for range 1000 {
				pass(r.ctx, strings.Repeat("x", 63))
				passes++
			}
			if took := time.Since(begun); took != 0 {
				t.Fatalf("passes waited for %s", took)
			}
			later(time.Minute)
		}
		r.stop()
		if got := r.counted(t, "failed") + r.counted(t, "dropped"); got != 3*passes || r.counted(t, "sent") != 0 {
			t.Errorf("of %d spans %d are counted", 3*passes, got)
		}
		if r.counted(t, "dropped") == 0 {
			t.Error("no span was dropped: the queue has no end")
		}
		if lines := strings.Count(r.lines.String(), "\n"); lines < 1 || lines > 7 {
			t.Errorf("%d lines were logged in an hour:\n%s", lines, r.lines)
		}
		if calls > 120 {
			t.Errorf("%d calls in an hour", calls)
		}
	})
}

// What fails and may pass is sent again, not before the collector asks for it, and once.
func TestAMessageIsSentAgainWhenTheCollectorAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		r := start(t, "http://collector.invalid", by(func(*http.Request) (*http.Response, error) {
			at = append(at, time.Now())
			if len(at) == 1 {
				return answers(http.StatusServiceUnavailable, "Retry-After", "30"), nil
			}
			return answers(http.StatusOK), nil
		}))
		pass(r.ctx, "x")
		later(10 * time.Minute)
		if len(at) != 2 || at[1].Sub(at[0]) < 30*time.Second || r.counted(t, "sent") != 3 {
			t.Errorf("calls at %v, %d spans sent", at, r.counted(t, "sent"))
		}
		r.stop()
		if !strings.Contains(r.lines.String(), "accepted again") {
			t.Errorf("the log does not tell that it is well again:\n%s", r.lines)
		}
	})
}

// A Retry-After of years, or one of a message that no collector takes, does not keep others waiting.
func TestAMessageIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		r := start(t, "http://collector.invalid", by(func(*http.Request) (*http.Response, error) {
			calls++
			return answers(http.StatusTooManyRequests, "Retry-After", "999999999"), nil
		}))
		pass(r.ctx, "x")
		later(10 * time.Minute)
		if calls != 4 || r.counted(t, "failed") != 3 {
			t.Errorf("%d calls, %d spans given up", calls, r.counted(t, "failed"))
		}
		r.stop()
	})
}

// Shutdown is bounded, also where the collector takes the connection and says nothing.
func TestTheEndDoesNotWaitForASilentCollector(t *testing.T) {
	r := start(t, "http://"+fleet.BlackHole(t))
	pass(r.ctx, "x")
	if took := r.stop(); took > 6*time.Second {
		t.Errorf("the end took %s", took)
	}
	if failed := r.counted(t, "failed"); failed != 3 {
		t.Errorf("%d spans are counted as failed, want 3", failed)
	}
}

// An answer without end is not read, and what it says is in no log.
func TestAHostileAnswerIsNeitherReadNorRepeated(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusInternalServerError} {
		to, ended := collector.Start(t), make(chan int, 8)
		to.Answer(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			sent := 0
			for {
				n, err := w.Write([]byte(strings.Repeat("planted ", 8<<10)))
				sent += n
				if err != nil {
					ended <- sent
					return
				}
			}
		})
		r := start(t, to.URL)
		pass(r.ctx, "x")
		r.stop()
		if sent := <-ended; sent > 64<<20 {
			t.Errorf("status %d: %d bytes of an answer were taken", status, sent)
		}
		if said := r.lines.String(); strings.Contains(said, "planted") || status > 299 && !strings.Contains(said, "can't be sent") {
			t.Errorf("status %d: the log repeats the answer: %s", status, r.lines)
		}
	}
}

func TestWhatIsNoHTTPIsNotRepeated(t *testing.T) {
	listener, err := fleet.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "planted\r\n\r\n")
			_ = connection.Close()
		}
	}()
	r := start(t, "http://"+listener.Addr().String())
	pass(r.ctx, "x")
	r.stop()
	pass(r.ctx, "x") // after the end: it stays in the queue, and breaks nothing
	if failed := r.counted(t, "failed"); failed != 3 || strings.Contains(r.lines.String(), "planted") || !strings.Contains(r.lines.String(), "can't be read") {
		t.Errorf("%d spans failed; the log says %s", failed, r.lines)
	}
}

func TestNoRedirectIsFollowed(t *testing.T) {
	other, to := collector.Start(t), collector.Start(t)
	to.Answer(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/traces", http.StatusTemporaryRedirect)
	})
	r := start(t, to.URL)
	pass(r.ctx, "x")
	r.stop()
	if len(other.Messages()) != 0 || r.counted(t, "failed") != 3 {
		t.Errorf("%d messages went where a redirect led", len(other.Messages()))
	}
}

// A collector may take a message and refuse some of its spans.
func TestRefusedSpansAreCounted(t *testing.T) {
	for answer, want := range map[string]int{
		"\x0a\x02\x08\x02":                2, // partial success: two are rejected
		"\x0a\x04\x08\xff\x7f\x12":        3, // more than there were
		"\x0a\xff":                        0, // cut off
		strings.Repeat("\x0a\x00", 1<<14): 0, // too long
	} {
		to := collector.Start(t)
		to.Answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		r := start(t, to.URL)
		pass(r.ctx, "x")
		r.stop()
		if refused := r.counted(t, "refused"); refused != want {
			t.Errorf("answer %.20q: %d spans are refused, want %d", answer, refused, want)
		}
	}
}

// A certificate that nobody vouches for is refused.
func TestTheCollectorsCertificateIsChecked(t *testing.T) {
	called := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer server.Close()
	r := start(t, server.URL)
	pass(r.ctx, "x")
	r.stop()
	if called || r.counted(t, "failed") != 3 {
		t.Error("spans went to a server without a certificate")
	}
}

// Some collectors have a token in their path, so no failure tells it.
func TestNoFailureShowsThePath(t *testing.T) {
	unvouched := httptest.NewTLSServer(http.HandlerFunc(collector.Accept))
	unvouched.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer unvouched.Close()
	for to, want := range map[string]string{"http://127.0.0.1:1": "refused", unvouched.URL: "certificate"} {
		r := start(t, to+"/planted")
		pass(r.ctx, "x")
		r.stop()
		if said := r.lines.String(); strings.Contains(said, "planted") || !strings.Contains(said, want) {
			t.Errorf("of %s the log says %s", to, said)
		}
	}
}

func isOver(ctx context.Context) bool { return ctx.Err() != nil }

// What ends while others are sent waits for company: of messages that are not whole there is one in five seconds.
func TestSpansThatEndWhileOthersAreSentWaitForCompany(t *testing.T) {
	for _, passes := range []int{1, 300, 2000} { // each call: a few hundred bytes, less than a message, and more than one
		synctest.Test(t, func(t *testing.T) {
			const busy = 200
			calls, small, ended := 0, 0, 1
			var r *running
			r = start(t, "http://collector.invalid", by(func(request *http.Request) (*http.Response, error) {
				if request.ContentLength < 128<<10 {
					small++
				}
				if calls++; calls > busy || isOver(r.ctx) {
					return answers(http.StatusOK), nil
				}
				for range passes {
					pass(r.ctx, strings.Repeat("x", 63))
					ended++
				}
				return answers(http.StatusOK), nil
			}))
			pass(r.ctx, "x")
			later(4 * time.Minute)
			r.stop()
			if small > 49 {
				t.Errorf("%d passes a call: %d messages of %d are small, want at most 49 in four minutes", passes, small, calls)
			}
			if sent := r.counted(t, "sent") + r.counted(t, "dropped"); sent != 3*ended {
				t.Errorf("%d passes a call: %d of %d spans are sent", passes, sent, 3*ended)
			}
		})
	}
}

// A message that is under way when the end comes is not sent a second time: its spans would be there twice.
func TestWhatIsUnderWayAtTheEndIsSentOnce(t *testing.T) {
	to, arrived := collector.Start(t), make(chan struct{}, 100)
	r := start(t, to.URL)
	to.Answer(func(w http.ResponseWriter, request *http.Request) {
		arrived <- struct{}{}
		<-r.ctx.Done()
		collector.Accept(w, request)
	})
	const passes = 1000 // more than one message has
	for range passes {
		pass(r.ctx, strings.Repeat("x", 63))
	}
	<-arrived
	r.stop()
	if spans := len(to.Spans(t)); spans != 3*passes || r.counted(t, "sent") != spans {
		t.Errorf("%d spans arrived, want %d", spans, 3*passes)
	}
}
