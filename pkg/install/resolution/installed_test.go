package resolution_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

func TestInstalledVersionInStatus(t *testing.T) {
	for _, test := range []struct {
		why     string
		version string
		applied *v1.AppliedState
		want    string
	}{
		{why: "nothing was applied", version: "1.0.0"},
		{why: "what the cluster has", version: "1.0.0", applied: &v1.AppliedState{Addon: "web", Version: "1.0.0"}, want: "1.0.0"},
		{why: "another add-on's version says nothing", version: "9.0.0", applied: &v1.AppliedState{Addon: "db", Version: "9.0.0"}},
	} {
		object := &v1.AddonInstallation{Spec: v1.AddonInstallationSpec{AddonRef: v1.AddonReference{Name: "web"}}}
		object.Status.Version, object.Status.LastApplied = test.version, test.applied
		if got := resolution.InstalledInStatus(object); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}

func TestInstalledVersionOnRecord(t *testing.T) {
	for _, test := range []struct {
		why    string
		record *revision.Record
		want   string
	}{
		{"nothing is installed", nil, ""},
		{"applied to its end", &revision.Record{Addon: "web", Version: "2.0.0", From: "1.0.0", State: revision.StateApplied}, "2.0.0"},
		{"an intent installed nothing", &revision.Record{Addon: "web", Version: "2.0.0", State: revision.StateIntent}, ""},
		{"an intent leaves what was there", &revision.Record{Addon: "web", Version: "2.0.0", From: "1.0.0", State: revision.StateIntent}, "1.0.0"},
		{"another add-on's version says nothing", &revision.Record{Addon: "db", Version: "9.0.0", State: revision.StateApplied}, ""},
	} {
		t.Run(test.why, func(t *testing.T) {
			if got := resolution.InstalledOnRecord(test.record, "web"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
