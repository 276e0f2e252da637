package fence

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// RS39: A process whose clock is a day ahead of the API server's does not lead: soak times and deadlines would end by it. Red when it takes
// a lease, when a clock that is behind or a little ahead keeps it from leading, or when the election's client compares no clocks.
func TestAProcessWhoseClockIsAheadDoesNotLead(t *testing.T) {
	for _, test := range []struct {
		why   string
		ahead time.Duration
		leads bool
	}{
		{"as it should be", 0, true},
		{"a little ahead", 9 * time.Minute, true},
		{"ahead", 11 * time.Minute, false},
		{"a day ahead", 24 * time.Hour, false},
		{"a day behind", -24 * time.Hour, true},
	} {
		t.Run(test.why, func(t *testing.T) {
			written := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(-test.ahead).UTC().Format(http.TimeFormat))
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodGet {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				written++
				_, _ = io.Copy(w, r.Body)
			}))
			defer server.Close()
			var options manager.Options
			term := Election{Lease: time.Minute, Renewal: 40 * time.Second, Retry: time.Second}
			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
			if _, err := term.Join(config, "kubermatic", "lease", &options); err != nil {
				t.Fatal(err)
			}
			lock := options.LeaderElectionResourceLockInterface
			if _, _, err := lock.Get(t.Context()); err == nil {
				t.Fatal("there is a lease")
			}
			record := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 60}
			if err := lock.Create(t.Context(), record); (err == nil) != test.leads || (written == 1) != test.leads {
				t.Errorf("it leads: %v, after %d writes", err, written)
			} else if err != nil && !strings.Contains(err.Error(), "ahead of the API server's") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// TestWhoseClockIsAheadGivesTheLeaseUp turns red when a lease can't be given to others by a clock that is ahead.
func TestWhoseClockIsAheadGivesTheLeaseUp(t *testing.T) {
	b := newBench()
	if err := b.renew(t); err != nil {
		t.Fatal(err)
	}
	b.fence.ahead = time.Hour
	if err := b.renew(t); err == nil {
		t.Error("the lease is renewed")
	}
	if err := b.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Errorf("it can't be given up: %v", err)
	}
}
