package addoninstallation

import (
	"testing"
	"time"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestCatchUp fails if a reconciliation compares with a status that is older than its own last one: it would write
// nothing, and the last one stays.
func TestCatchUp(t *testing.T) {
	object := func(resourceVersion, version string) *kubermaticv1.AddonInstallation {
		made := &kubermaticv1.AddonInstallation{}
		made.ResourceVersion, made.Status.Version = resourceVersion, version
		return made
	}
	for _, test := range []struct {
		why    string
		cached *kubermaticv1.AddonInstallation
		age    time.Duration
		want   string
	}{
		{"the cache is behind", object("1", "before"), 0, "written"},
		{"the cache has caught up", object("2", "as cached"), 0, "as cached"},
		{"an edit behind it says what it says", object("3", "edited"), 2 * cacheLag, "edited"},
	} {
		t.Run(test.why, func(t *testing.T) {
			var known memory
			known.wrote(object("2", "written"))
			known.written.at = known.written.at.Add(-test.age)
			known.catchUp(test.cached)
			if got := test.cached.Status.Version; got != test.want {
				t.Errorf("status says %q, want %q", got, test.want)
			}
		})
	}
}
