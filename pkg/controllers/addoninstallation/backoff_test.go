package addoninstallation

import (
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/loop"
)

// RS05: A failed call is retried at growing intervals, up to five minutes. It fails if the longest wait differs, if
// failures are not counted, and if a success does not end the count.
func TestFailedCallIsTriedEveryFiveMinutes(t *testing.T) {
	f := factsFor(&kubermaticv1.AddonInstallation{}, &memory{})
	var last time.Duration
	for i := range 40 {
		retry := f.backOff(&loop.Outcome{Kind: loop.RetryAt, Message: "etcd is full"}, time.Now())
		if !retry.Is(loop.RetryAt) || retry.Recheck < last || retry.Recheck > 5*time.Minute {
			t.Fatalf("failure %d waits %s after %s", i+1, retry.Recheck, last)
		}
		last = retry.Recheck
	}
	if last != 5*time.Minute || f.retries.count != 40 {
		t.Errorf("after %d failures it waits %s", f.retries.count, last)
	}
	f.backOff(&loop.Outcome{Kind: loop.Done}, time.Now())
	if retry := f.backOff(&loop.Outcome{Kind: loop.RetryAt}, time.Now()); retry.Recheck != time.Second || f.retries.count != 1 {
		t.Errorf("the first failure after a success waits %s as number %d", retry.Recheck, f.retries.count)
	}
}
