package catalogue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func chart(name, description string) *v1.AddonVersion {
	return &v1.AddonVersion{
		Version: "1.0.0", Deprecated: description, Template: &v1.Template{Method: v1.MethodHelm},
		Source: &v1.Source{Helm: &v1.HelmSource{URL: "https://charts.example.com", Chart: name, Version: "1.0.0"}},
	}
}

// TestSourceKeyIsOfTheSource fails when a source is checked again after an irrelevant change, or is not checked after
// a relevant one.
func TestSourceKeyIsOfTheSource(t *testing.T) {
	web := catalogue.SourceKey(chart("web", ""))
	folder := chart("web", "")
	folder.Template.Method = v1.MethodGoTemplate
	if web != catalogue.SourceKey(chart("web", "old")) || web == catalogue.SourceKey(chart("wep", "")) || web == catalogue.SourceKey(folder) {
		t.Error("keys are of other things than the source and its method")
	}
	if catalogue.SourceKey(&v1.AddonVersion{Version: "1.0.0"}) != "" {
		t.Error("a version without source has a key")
	}
	for what, change := range map[string]func(*v1.AddonVersion){
		"form": func(version *v1.AddonVersion) {
			version.Template.FormSpec = []v1.FormField{{InternalName: "a", Required: true}}
		},
		"values":         func(version *v1.AddonVersion) { version.Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)} },
		"valuesTemplate": func(version *v1.AddonVersion) { version.ValuesTemplate = "a: 1" },
		"clusterSecrets": func(version *v1.AddonVersion) { version.Template.ClusterSecrets = true },
		"helm":           func(version *v1.AddonVersion) { version.Template.Helm = &v1.HelmOptions{DisableHooks: true} },
		"constraints":    func(version *v1.AddonVersion) { version.Constraints = &v1.Constraints{K8sVersion: ">= 1.36"} },
	} {
		changed := chart("web", "")
		if change(changed); catalogue.SourceKey(changed) == web {
			t.Errorf("a version with another %s is not rendered", what)
		}
	}
}

// TestSampleKubernetes fails when the release of Kubernetes for a check of a version does not fit it although a
// fitting one exists.
func TestSampleKubernetes(t *testing.T) {
	for constraint, want := range map[v1.VersionRange]string{
		"": "1.34.0", ">= 1.30": "1.34.0", ">= 1.36, < 1.38": "1.36.0", "> 1.34.2": "1.35.0", "1.x": "1.34.0", "what": "1.34.0",
		"~1.34.3": "1.34.3", "> 1.34.3, < 1.35": "1.34.4", "1.36.2": "1.36.2", "< 1.30": "", "~1.30.1": "",
	} {
		version := &v1.AddonVersion{Constraints: &v1.Constraints{K8sVersion: constraint}}
		if got := catalogue.SampleKubernetes(version); got != want {
			t.Errorf("%q is tried by %s, want %s", constraint, got, want)
		}
	}
}

// TestSourceChecksTravel fails when data is lost between seed and master, when a seed's report exceeds its ConfigMap,
// or when data that no seed writes is accepted.
func TestSourceChecksTravel(t *testing.T) {
	fault := catalogue.NewSourceFault(v1.ReasonFetchFailed, "a\nb "+strings.Repeat("x", 1000))
	if len(fault.Message) > 310 || !strings.HasPrefix(fault.Message, "a b ") {
		t.Errorf("the message is %d bytes: %s", len(fault.Message), fault.Message)
	}
	checks := &catalogue.SourceChecks{
		Seen: "now", Good: map[string]bool{"0123456789abcdef": true}, Unrendered: map[string]bool{"0123456789abcdef": true},
		Bad: map[string]catalogue.SourceFault{"fedcba9876543210": fault},
	}
	if diff := cmp.Diff(checks, catalogue.DecodeSourceChecks(checks.Encode())); diff != "" {
		t.Errorf("(-wrote +read):\n%s", diff)
	}
	fault.Content = catalogue.ContentKey("sha256:" + strings.Repeat("0a", 32))
	checks.Bad["fedcba9876543210"] = fault
	if read := catalogue.DecodeSourceChecks(checks.Encode()); read.Bad["fedcba9876543210"].Content != "" {
		t.Error("another process does not render what this one rendered")
	}
	for i := range 30_000 {
		checks.Good[fmt.Sprintf("%016x", i)], checks.Unrendered[fmt.Sprintf("%016x", i)] = true, true
		checks.Bad[fmt.Sprintf("a%015x", i)] = fault
	}
	size := 0
	for _, text := range checks.Encode() {
		size += len(text)
	}
	if size > 1<<20 {
		t.Errorf("a report has %d bytes", size)
	}
	read := catalogue.DecodeSourceChecks(map[string]string{
		"good": "0123456789abcdef ../x " + strings.Repeat("0", 17), "bad": `{"0123456789abcdef":{"reason":"Ready"},"x":{"reason":"FetchFailed"},"fedcba9876543210":{"reason":"RenderFailed"}}`,
	})
	if len(read.Good) != 1 || len(read.Bad) != 1 {
		t.Errorf("read %+v", read)
	}
	if share := catalogue.DecodeSourceShare("{"); share.Seed != "" {
		t.Errorf("read %+v", share)
	}
}

// TestCheckersShare fails when seeds disagree on the checker, when shares are far from equal, or when a removed seed
// moves sources of others.
func TestCheckersShare(t *testing.T) {
	counts := map[string]int{}
	for i := range 3000 {
		key := fmt.Sprintf("%016x", i*2654435761)
		checker := catalogue.CheckerOf(key, []string{"north", "south", "west"})
		if catalogue.CheckerOf(key, []string{"west", "north", "south"}) != checker {
			t.Fatal("the order of the seeds matters")
		}
		if left := catalogue.CheckerOf(key, []string{"north", "south"}); checker != "west" && left != checker {
			t.Fatalf("%s moved from %s to %s", key, checker, left)
		}
		counts[checker]++
	}
	for seed, count := range counts {
		if count < 800 || count > 1200 {
			t.Errorf("seed %s checks %d of 3000", seed, count)
		}
	}
	if catalogue.CheckerOf("0", nil) != "" {
		t.Error("nobody checks")
	}
}
