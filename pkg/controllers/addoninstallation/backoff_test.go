package addoninstallation

import (
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
)

// RS05: A call that failed is tried at longer and longer intervals, at last every five minutes. Red
// when the longest wait is another one, when failures are not counted on, and when a success does
// not end the count.
func TestFailedCallIsTriedEveryFiveMinutes(t *testing.T) {
	f := passOver(&kubermaticv1.AddonInstallation{}, &memory{})
	var last time.Duration
	for i := range 40 {
		retry, failed := f.backOff(loop.RetryAt{Message: "etcd is full"}, time.Now()).(loop.RetryAt)
		if !failed || retry.After < last || retry.After > 5*time.Minute {
			t.Fatalf("failure %d waits %s after %s", i+1, retry.After, last)
		}
		last = retry.After
	}
	if last != 5*time.Minute || f.retries.count != 40 {
		t.Errorf("after %d failures it waits %s", f.retries.count, last)
	}
	f.backOff(loop.Done{}, time.Now())
	if retry := f.backOff(loop.RetryAt{}, time.Now()).(loop.RetryAt); retry.After != time.Second || f.retries.count != 1 {
		t.Errorf("the first failure after a success waits %s as number %d", retry.After, f.retries.count)
	}
}
