package catalogue_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Red when the supporter of a catalogue or of an add-on is lost on its way to the users of a cluster, or when a change of it
// is not noticed.
func TestUsersSeeWhoSupportsAnAddon(t *testing.T) {
	t.Parallel()
	old, newer := authored("old", v1.CatalogueCore, 9, "web: 1.0.0", "dns: 1.0.0"), authored("new", v1.CatalogueCore, 0, "web: 2.0.0")
	before := asBefore(sourcesOf(t, old, newer))
	old.Spec.SupportedBy, newer.Spec.SupportedBy = "Team A", "Team B"
	old.Spec.Addons[1].SupportedBy = "Example Inc."
	merged := asBefore(sourcesOf(t, old, newer))
	for name, want := range map[string]v1.SupportedBy{"web": "Team B", "dns": "Example Inc."} {
		of := merged.Addons[name]
		if of.Spec.SupportedBy != want || of.Spec.Addons[0].SupportedBy != want || of.Digest == before.Addons[name].Digest {
			t.Errorf("%s: supported by %q and %q, want %q", name, of.Spec.SupportedBy, of.Spec.Addons[0].SupportedBy, want)
		}
		if before.Addons[name].Spec.SupportedBy != "" {
			t.Errorf("%s: a supporter that no catalogue names", name)
		}
	}
	if old.Spec.Addons[0].SupportedBy != "" {
		t.Error("a catalogue that was read is changed")
	}
	made := merged.Addons["web"].Spec
	made.Type = v1.CatalogueCustom
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{Spec: made})
	if err != nil {
		t.Fatal(err)
	}
	platform := catalogue.Platform{K8sVersion: "1.36.0"}
	listed, _ := catalogue.NewLister(platform, catalogue.ListOptions{}).List(entry)
	detail, _ := entry.Detail("2.0.0")
	available, err := catalogue.Available([]*catalogue.Entry{entry}, platform)
	if err != nil {
		t.Fatal(err)
	}
	got := []v1.SupportedBy{listed.SupportedBy, detail.SupportedBy, available.Addons[0].SupportedBy}
	if diff := cmp.Diff([]v1.SupportedBy{"Team B", "Team B", "Team B"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Red when a text is accepted that the schema refuses, or the other way round.
func TestASupporterIsOneShortLine(t *testing.T) {
	t.Parallel()
	for text, isGood := range map[string]bool{
		"Team A": true, strings.Repeat("ü", 128): true, strings.Repeat("a", 129): false, "two\nlines": false, "a\u202eb": false, "\u2028": false,
	} {
		object := authored("web", v1.CatalogueCustom, 0, "web: 1.0.0")
		object.Spec.Addons[0].SupportedBy = v1.SupportedBy(text)
		if _, err := catalogue.Read(object); (err == nil) != isGood {
			t.Errorf("%q: %v", text, err)
		}
	}
}
