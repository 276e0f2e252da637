package buildinfo

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// A build says what its linker was told, or else what Go noted; never nothing. Red when Go's notes
// win over the linker's, or when a changed checkout passes for its commit.
func TestABuildSaysWhatItIs(t *testing.T) {
	settings := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs.revision", Value: "1f"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: modified},
		}
	}
	for _, test := range []struct {
		why   string
		build debug.BuildInfo
		want  Info
	}{
		{"a tagged commit", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: settings("false")},
			Info{"1.2.3", "1f", "2026-01-02T03:04:05Z"}},
		{"a changed checkout", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: settings("true")},
			Info{"devel", "1f-dirty", "2026-01-02T03:04:05Z"}},
		{"no checkout", debug.BuildInfo{}, Info{"devel", unknown, unknown}},
	} {
		if diff := cmp.Diff(test.want, noted(&test.build)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}

	t.Cleanup(func() { version, commit, date = "", "", "" })
	version, commit, date = "1.2.3", "2e", ""
	if diff := cmp.Diff(Info{"1.2.3", "2e", unknown}, Read()); diff != "" {
		t.Errorf("set by the linker (-want +got):\n%s", diff)
	}
	if got := Read().String(); got != "1.2.3 (commit 2e, unknown)" {
		t.Errorf("got %q", got)
	}
}

// Red when a label of the metric has another one's value.
func TestAMetricReportsTheBuild(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Info{Version: "1.2.3", Commit: "2e", Date: "2026-01-02T03:04:05Z"}.Metric())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	metric := families[0].GetMetric()[0]
	got := map[string]string{}
	for _, label := range metric.GetLabel() {
		got[label.GetName()] = label.GetValue()
	}
	want := map[string]string{"version": "1.2.3", "commit": "2e", "date": "2026-01-02T03:04:05Z"}
	if diff := cmp.Diff(want, got); diff != "" || families[0].GetName() != "trellis_build_info" || metric.GetGauge().GetValue() != 1 {
		t.Errorf("%s is %v (-want +got):\n%s", families[0].GetName(), metric, diff)
	}
}
