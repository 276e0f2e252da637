package remote

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const canary = "CANARY-token-0123456789"

// failures records the failures that a client reports.
type failures struct {
	mutex sync.Mutex
	all   []error
}

func (t *failures) record(_ context.Context, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.all = append(t.all, err)
}

func (t *failures) misbehaviour() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return slices.ContainsFunc(t.all, IsMisbehaviour)
}

// clientOf leads to an API server that somebody else wrote.
func clientOf(t *testing.T, options Options, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	if options.Budget == nil {
		options.Budget = NewBudget(256 * mebi)
	}
	made, err := New(&rest.Config{
		Host: server.URL, BearerToken: canary,
		TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// sends answers with pieces, the middle one as often as said.
func sends(kind, head, piece string, times int, tail string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, head)
		block := strings.Repeat(piece, 1000)
		for ; times >= 1000; times -= 1000 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, strings.Repeat(piece, times)+tail)
	}
}

// allocated is what a call allocates, in MiB; the server's own buffers are in it.
func allocated(call func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return int((after.TotalAlloc - before.TotalAlloc) >> 20)
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestAnswersEndAtTheirLimits: each answer is within 32 MiB and costs a decoder gigabytes; it
// is refused while it comes.
func TestAnswersEndAtTheirLimits(t *testing.T) {
	for _, test := range []struct {
		why     string
		handler http.HandlerFunc
		want    string
	}{
		{"millions of empty items", sends(jsonType, `{"items":[{}`, ",{}", 10<<20, `]}`), "list or an object of more than 100000"},
		{"millions of values", sends(jsonType, `{"items":[{}`, `,{"a":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}`, 90_000, `]}`), "more than 1000000 values"},
		{"a name of megabytes", sends(jsonType, `{"items":[{"metadata":{"`, "x", 2<<20, `":{}}}]}`), "a name of more than 65536 bytes"},
		{"levels without end", sends(jsonType, `{"items":`, "[", 1<<20, ``), "more than 128 levels deep"},
		{"white space without end", sends(jsonType, ``, " ", 64<<20, ``), "more than 32768 KiB"},
		{"a page for people", sends("text/html", "<html>", "", 0, ""), "neither JSON nor protobuf"},
		{"YAML, whose aliases multiply", sends("application/yaml", "a: &a [x]", "", 0, ""), "neither JSON nor protobuf"},
		{"half an object", sends(jsonType, `{"items":[`, "", 0, ""), notJSON},
		{"millions of empty items on the wire", sends(protobufType, string(emptyItems(8<<20)), "", 0, ""), "list or an object of more than 100000"},
		{"a kind that was not requested", sends(protobufType, string(enveloped("SecretList", nil)), "", 0, ""), "a kind that was not requested"},
	} {
		t.Run(test.why, func(t *testing.T) {
			var heard failures
			made := clientOf(t, Options{Failed: heard.record}, test.handler)
			client, err := made.Metadata()
			if err != nil {
				t.Fatal(err)
			}
			took := allocated(func() { _, err = client.Resource(configMaps).List(t.Context(), metav1.ListOptions{}) })
			var misbehaves *MisbehavesError
			if !errors.As(err, &misbehaves) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if diff := cmp.Diff("GET /api/v1/configmaps", misbehaves.Asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if !heard.misbehaviour() {
				t.Error("nobody was told")
			}
			if took > 200 { // raw bytes of 32 MiB, copied as they grow; decoded it would be thousands
				t.Errorf("took %d MiB", took)
			}
		})
	}
}

// TestHonestAnswersPass: what real API servers answer in each form.
func TestHonestAnswersPass(t *testing.T) {
	for _, test := range []struct {
		why     string
		handler http.HandlerFunc
		items   int
	}{
		{"a page of metadata on the wire", sends(protobufType, string(wired(t, page(500))), "", 0, ""), 500},
		{"a page of JSON", sends(jsonType+"; charset=utf-8", `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{}`, ",{}", 499, `]}`), 500},
	} {
		t.Run(test.why, func(t *testing.T) {
			client, err := clientOf(t, Options{}, test.handler).Metadata()
			if err != nil {
				t.Fatal(err)
			}
			list, err := client.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.items, len(list.Items)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeletionsAnswerWithWholeObjects: an API server answers a deletion with the object of a
// ServiceAccount, a claim or a Namespace, or of whatever has finalizers; in protobuf where that is
// accepted, in which nobody looks at other kinds than metadata. That of all objects is answered
// with a list of them, as large as any. Red when protobuf is accepted, and when limitsOf takes the
// list for one object.
func TestDeletionsAnswerWithWholeObjects(t *testing.T) {
	var heard failures
	client, err := clientOf(t, Options{Failed: heard.record}, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), protobufType) {
			w.Header().Set("Content-Type", protobufType)
			_, _ = w.Write(enveloped("ServiceAccount", []byte{0x0a, 0}))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/x") {
			sends(jsonType, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"x"}}`, "", 0, "")(w, r)
			return
		}
		sends(jsonType, `{"kind":"ServiceAccountList","apiVersion":"v1","items":[{}`, `,{"a":"`+strings.Repeat("a", 9000)+`"}`, 2000, `]}`)(w, r)
	}).Metadata()
	if err != nil {
		t.Fatal(err)
	}
	accounts := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace("ns")
	if err := accounts.Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Errorf("deleting: %v", err)
	}
	if err := accounts.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Errorf("deleting all: %v", err)
	}
	if heard.misbehaviour() {
		t.Errorf("blamed: %v", heard.all)
	}
}

// TestFailuresStayFailures: an answer that is no good one keeps its status, whatever is in it.
func TestFailuresStayFailures(t *testing.T) {
	client, err := clientOf(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, strings.Repeat("<p>", plainLimit))
	}).Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = client.Resource(configMaps).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// TestListsHaveTotals: each page is in order, and there is always one more.
func TestListsHaveTotals(t *testing.T) {
	for _, test := range []struct {
		why    string
		totals Totals
		calls  int
		want   string
	}{
		{"calls", Totals{Calls: 7}, 7, "the list does not end after 7 calls"},
		{"items", Totals{Items: 45}, 5, "the list has more than 45 items"},
		{"bytes", Totals{Bytes: mebi}, 11, "the list has more than 1 MiB"},
	} {
		t.Run(test.why, func(t *testing.T) {
			calls := 0
			client, err := clientOf(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				calls++
				sends(jsonType, `{"kind":"List","apiVersion":"v1","metadata":{"continue":"more"},"items":[{"kind":"A","apiVersion":"v1"}`, `,{"kind":"A","apiVersion":"v1"}`, 9, `],"x":"`+strings.Repeat("x", 100*kibi)+`"}`)(w, r)
			}).Dynamic()
			if err != nil {
				t.Fatal(err)
			}
			// A pass has totals too, which each of its lists counts in.
			ctx := Within(Within(t.Context(), "the pass", Totals{Calls: 1000}), "the list", test.totals)
			for err == nil {
				_, err = client.Resource(configMaps).List(ctx, metav1.ListOptions{})
			}
			var misbehaves *MisbehavesError
			if !errors.As(err, &misbehaves) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(test.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// AC52: The token goes to its host, and nothing is asked whose answer has no limits.
func TestCallsGoNowhereElse(t *testing.T) {
	followed := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed++ }))
	defer elsewhere.Close()
	made := clientOf(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "2147483647")
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	response, err := made.HTTP.Post(made.Config.Host+"/api/v1/secrets", jsonType, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTemporaryRedirect || followed > 0 || response.Header.Get("Retry-After") != "5" {
		t.Errorf("got %s with Retry-After %s, %d calls elsewhere", response.Status, response.Header.Get("Retry-After"), followed)
	}
	var unsupported *UnsupportedError
	if _, err := made.HTTP.Get(made.Config.Host + "/api/v1/secrets?watch=1"); !errors.As(err, &unsupported) {
		t.Errorf("a watch: %v", err)
	}
	if _, err := made.HTTP.Get(made.Config.Host + "/api/v1/secrets?continue=" + strings.Repeat("x", queryLimit)); !IsMisbehaviour(err) {
		t.Errorf("a token of an API server's making: %v", err)
	}
}

// TestHeadersAreBounded: megabytes of headers are no answer.
func TestHeadersAreBounded(t *testing.T) {
	made := clientOf(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 10*kibi))
		}
	})
	if response, err := made.HTTP.Get(made.Config.Host + "/version"); err == nil {
		response.Body.Close()
		t.Error("a megabyte of headers was read")
	}
}

// AC51: A kubeconfig leads to no metadata service.
func TestAddressesOfNobodysAPIServerAreRefused(t *testing.T) {
	for address, refused := range map[string]bool{
		"169.254.169.254:443": true, "[fe80::1%eth0]:443": true, "100.100.100.200:443": true, "[fd00:ec2::254]:443": true,
		"[::ffff:169.254.169.254]:443": true, "[64:ff9b::a9fe:a9fe]:443": true, "224.0.0.1:443": true, "10.0.0.1:6443": false, "127.0.0.1:6443": false, "[::1]:6443": false,
		"[2001:db8::1]:443": false,
	} {
		if err := (Addresses{}).check("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// AC51: One that tenants write leads to ordinary hosts only, and to what the operator allows besides; to no metadata service even then.
func TestAddressesThatTenantsNameAreOrdinaryHosts(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("::1/128")}
	for address, refused := range map[string][2]bool{ // with nothing allowed, and with these
		"127.0.0.1:6443": {true, true}, "127.0.0.2:6443": {true, false}, "[::1]:6443": {true, false}, "[::ffff:127.0.0.2]:6443": {true, false},
		"0.0.0.0:443": {true, true}, "169.254.1.1:443": {true, false}, "169.254.169.254:443": {true, true}, "[64:ff9b::7f00:1]:443": {true, true},
		"[64:ff9b:1::7f00:1]:443": {true, true}, "10.0.0.1:6443": {false, false}, "[2001:db8::1]:443": {false, false},
	} {
		for i, rules := range []Addresses{{OnlyHosts: true}, {OnlyHosts: true, Allowed: allowed}} {
			if err := rules.check("tcp", address, nil); (err != nil) != refused[i] {
				t.Errorf("%s with %v: %v", address, rules.Allowed, err)
			}
		}
	}
}

// dripping is a server's side of a body.
type dripping struct {
	piece string
	every time.Duration
	ctx   context.Context
}

func (d *dripping) Read(buffer []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.every):
		return copy(buffer, d.piece), nil
	}
}

func (*dripping) Close() error { return nil }

type drippingServer struct{ dripping }

func (s *drippingServer) RoundTrip(request *http.Request) (*http.Response, error) {
	body := s.dripping
	body.ctx = request.Context()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &body, ContentLength: -1, Request: request}, nil
}

// AC54: A byte a second ends after ten; what is slow and goes on does not.
func TestBodiesHaveALeastRate(t *testing.T) {
	for _, test := range []struct {
		why   string
		piece int
		slow  bool
		ends  time.Duration
	}{
		{"a byte a second", 1, true, 2 * rateWindow},
		{"just enough", leastBytes / 4, false, 0},
	} {
		t.Run(test.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var heard failures
				made := &Client{options: Options{Failed: heard.record}, budget: NewBudget(256 * mebi), traffic: newTraffic(time.Now())}
				made.share = made.budget.share()
				made.next = &drippingServer{dripping{piece: strings.Repeat(" ", test.piece), every: time.Second}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://x/api/v1/pods", nil)
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				response, err := made.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				for buffer := make([]byte, leastBytes); err == nil; {
					_, err = response.Body.Read(buffer)
				}
				var slow *TooSlowError
				if errors.As(err, &slow) != test.slow || test.slow && time.Since(begin) != test.ends || heard.misbehaviour() != test.slow {
					t.Errorf("ended after %s with %v", time.Since(begin), err)
				}
			})
		})
	}
}

// TestLargeAnswersWaitForOneAnother: what is held and decoded at a time has a budget, which small
// answers don't need.
func TestLargeAnswersWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(30 * mebi)
		release, err := budget.acquire(t.Context(), 5*mebi, 0)
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := budget.acquire(soon, 8*mebi, 0); err == nil {
			t.Error("a second large answer was decoded beside the first")
		}
		if _, err := budget.acquire(t.Context(), 10*kibi, 1000); err != nil {
			t.Errorf("a small one waited: %v", err)
		}
		release()
		if release, err = budget.acquire(t.Context(), 1<<40, 1<<30); err != nil {
			t.Errorf("one that is larger than all takes all: %v", err)
		}
		release()

		one, other := hold{share: budget.share()}, hold{share: budget.share()}
		same := hold{share: one.share}
		if _, err := one.reserve(t.Context(), middleBytes+1); err != nil {
			t.Fatal(err)
		}
		for _, waiting := range []*hold{&same, &other} {
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := waiting.reserve(soon, middleBytes+1); err == nil {
				t.Error("there was room for two of the largest")
			}
			cancel()
		}
		if _, err := other.reserve(t.Context(), smallBytes); err != nil {
			t.Error(err)
		}
		one.drop()
		if _, err := other.reserve(t.Context(), middleBytes+1); err != nil {
			t.Error(err)
		}
		other.drop()
	})
}

// TestBytesThatNobodyAskedForEnd: time, calls and bodies explain what comes in; the rest ends the
// connection.
func TestBytesThatNobodyAskedForEnd(t *testing.T) {
	now := time.Unix(0, 0)
	quiet := newTraffic(now)
	for range 100_000 { // an honest answer a second: frames, headers, a body
		now = now.Add(time.Second)
		quiet.called()
		if quiet.received(10*kibi, now) || quiet.read(9*kibi, now) {
			t.Fatal("an honest API server was refused")
		}
	}
	flooded, sent := newTraffic(now), 0
	for ; !flooded.received(1700, now); sent += 1700 { // a hundred pings a millisecond
		now = now.Add(time.Millisecond)
	}
	if sent > 5*mebi {
		t.Errorf("%d bytes of pings were taken", sent)
	}
	full := newTraffic(now)
	for sent = 0; !full.read(mebi, now); sent += mebi {
	}
	if sent != windowBytes {
		t.Errorf("%d bytes of bodies in one window", sent)
	}
}
