package buildinfo

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Set by -ldflags "-X …/pkg/buildinfo.version=…", all three or none.
var version, commit, date string

// unknown replaces missing information.
const unknown = "unknown"

// Info identifies the build of a program. No field is empty.
type Info struct {
	// Version is a semantic version without the leading v. "devel": a build that has none.
	Version string
	// Commit is the full id of the commit. Files that were changed after it make it end in "-dirty".
	Commit string
	// Date is the commit's, in UTC, as in RFC 3339.
	Date string
}

// Read returns the build of the running program.
func Read() Info {
	if version != "" {
		return Info{Version: version, Commit: orUnknown(commit), Date: orUnknown(date)}
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return noted(&debug.BuildInfo{})
	}
	return noted(build)
}

// noted is the information that go build writes into each program.
func noted(build *debug.BuildInfo) Info {
	settings := map[string]string{}
	for _, setting := range build.Settings {
		settings[setting.Key] = setting.Value
	}
	info := Info{
		Version: strings.TrimPrefix(build.Main.Version, "v"),
		Commit:  orUnknown(settings["vcs.revision"]), Date: orUnknown(settings["vcs.time"]),
	}
	if info.Version == "" || info.Version == "(devel)" {
		info.Version = "devel"
	}
	if settings["vcs.modified"] == "true" {
		info.Commit += "-dirty"
	}
	return info
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// String is the output of --version, without the program's name.
func (i Info) String() string {
	return fmt.Sprintf("%s (commit %s, %s)", i.Version, i.Commit, i.Date)
}

// Metric is a gauge of value 1 whose labels identify the build, to be joined with others by instance.
func (i Info) Metric() prometheus.Collector {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "trellis_build_info",
		Help:        "The running build; always 1.",
		ConstLabels: prometheus.Labels{"version": i.Version, "commit": i.Commit, "date": i.Date},
	})
	gauge.Set(1)
	return gauge
}
