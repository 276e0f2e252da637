package resolution_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/install/resolution"
	"github.com/trellis-addons/trellis/pkg/install/revision"
)

// pinnedTo is a request for a version with that content.
func pinnedTo(version, installed, digest string) resolution.Request {
	made := asking(version, installed)
	made.Installation.Spec.AddonRef.Digest = digest
	return made
}

func contentOf(entry *catalogue.Entry, version string) string {
	_, origin := entry.Version(version)
	return origin.Content
}

// TestAPinGetsItsContentOrNothing fails when Choose returns other content than the pinned one, when deprecation or
// constraints count as content, or when the upgrade check counts other content as a reason to stay or to break: there
// a pin counts as its exact version.
func TestAPinGetsItsContentOrNothing(t *testing.T) {
	entry := entryOf(t, v1.CatalogueCustom, offered{"2.0.0", "", ""}, offered{"1.0.0", "", ""})
	digest := contentOf(entry, "1.0.0")
	for _, test := range []struct {
		why     string
		request resolution.Request
		entry   *catalogue.Entry
		reason  string
		outcome resolution.Outcome
	}{
		{"its content", pinnedTo("1.0.0", "1.0.0", digest), entry, "", resolution.OutcomeKeeps},
		{"another spelling of the version", pinnedTo("v1", "1.0.0", digest), entry, "", resolution.OutcomeKeeps},
		{"deprecated since", pinnedTo("1.0.0", "1.0.0", digest), entryOf(t, v1.CatalogueCustom, offered{"1.0.0", "", "old"}), "", resolution.OutcomeKeeps},
		{"other content", pinnedTo("1.0.0", "1.0.0", "sha256:other"), entry, v1.ReasonContentGone, resolution.OutcomeKeeps},
		{"other content, nothing installed", pinnedTo("1.0.0", "", "sha256:other"), entry, v1.ReasonContentGone, resolution.OutcomeMoves},
		{"it does not fit", pinnedTo("1.0.0", "1.0.0", "sha256:other"), entryOf(t, v1.CatalogueCustom, offered{"1.0.0", ">= 1.99", ""}),
			v1.ExcludedK8sVersion, resolution.OutcomeBreaks},
		{"withdrawn", pinnedTo("1.0.0", "1.0.0", digest), entryOf(t, v1.CatalogueCustom, offered{"2.0.0", "", ""}), v1.ReasonWithdrawn, resolution.OutcomeUnknown},
	} {
		choice, refusal := test.request.Choose(test.entry)
		reason := ""
		if refusal != nil {
			reason = refusal.Reason()
		}
		if reason != test.reason || (choice.Version == nil) != (reason != "") {
			t.Errorf("%s: got %v, refused by %v, want reason %q", test.why, choice.Version, refusal, test.reason)
		}
		find := func(string) *catalogue.Entry { return test.entry }
		if got := resolution.CheckUpgrade(find, []resolution.Request{test.request}, "1.37.0")[0]; got.Outcome != test.outcome {
			t.Errorf("%s: the upgrade check says %+v, want %s", test.why, got, test.outcome)
		}
	}
}

// TestWhatOnlyTheRecordHas fails when a record counts as the requested version although it has another, above all
// with content that core installations have to leave; or when a version that was withdrawn, or has other content now,
// is not found on record.
func TestWhatOnlyTheRecordHas(t *testing.T) {
	entry := entryOf(t, v1.CatalogueCustom, offered{"1.0.0", "", ""})
	without := entryOf(t, v1.CatalogueCustom, offered{"2.0.0", "", ""})
	onCore := entryOf(t, v1.CatalogueCore, offered{"2.0.0", "", ""})
	ruled := pinnedTo("1.0.0", "", "")
	ruled.Installation.Spec.CoreAddon = true
	ruled.Installation.Annotations = map[string]string{v1.AnnotationCoreOrigin: v1.OriginRule}
	record := func(change func(*revision.Record)) *revision.Record {
		made := &revision.Record{Addon: "prometheus", Version: "v1.0.0", Content: "sha256:meant"}
		change(made)
		return made
	}
	same := func(*revision.Record) {}
	for _, test := range []struct {
		why     string
		request resolution.Request
		entry   *catalogue.Entry
		record  *revision.Record
		want    revision.Gone
	}{
		{"the content that is meant", pinnedTo("1.0.0", "", "sha256:meant"), entry, record(same), revision.GoneContent},
		{"other content", pinnedTo("1.0.0", "", "sha256:another"), entry, record(same), ""},
		{"no record", pinnedTo("1.0.0", "", "sha256:meant"), entry, nil, ""},
		{"another version of that content", pinnedTo("1.0.0", "", "sha256:meant"), entry, record(func(r *revision.Record) { r.Version = "0.9.0" }), ""},
		{"another add-on", pinnedTo("1.0.0", "", "sha256:meant"), entry, record(func(r *revision.Record) { r.Addon = "web" }), ""},
		{"a newer record that can't be read", pinnedTo("1.0.0", "", "sha256:meant"), entry, record(func(r *revision.Record) { r.Skipped = 2 }), ""},
		{"a record of before, of which nothing is known", pinnedTo("1.0.0", "", "sha256:meant"), entry, record(func(r *revision.Record) {
			r.Content, r.EntryDigest = "", "sha256:older"
		}), ""},
		{"withdrawn, pinned", pinnedTo("1.0.0", "", "sha256:meant"), without, record(same), revision.GoneVersion},
		{"withdrawn", pinnedTo("1.0.0", "", ""), without, record(same), revision.GoneVersion},
		{"withdrawn with the whole add-on", pinnedTo("1.0.0", "", ""), nil, record(same), revision.GoneVersion},
		{"of a range", pinnedTo("1.x", "", ""), without, record(same), ""},
		{"a Core catalogue took the name over", pinnedTo("1.0.0", "", ""), onCore, record(same), ""},
		{"a Custom catalogue has what a rule asks for", ruled, without, record(same), ""},
		{"another version is offered, that one too", pinnedTo("1.0.0", "", ""), entry, record(same), ""},
	} {
		_, refusal := test.request.Choose(test.entry)
		if got := test.request.OnRecord(test.record, test.entry, refusal); got != test.want {
			t.Errorf("%s: got %q, want %q (refused by %v)", test.why, got, test.want, refusal)
		}
	}
}

// TestAVersionThatIsLeftIsNotFinished fails when a version that core installations have to leave counts as withdrawn:
// a rollout of it would be finished.
func TestAVersionThatIsLeftIsNotFinished(t *testing.T) {
	request := asking("1.0.0", "")
	request.Installation.Spec.CoreAddon = true
	record := &revision.Record{Addon: "prometheus", Version: "1.0.0"}
	for version, want := range map[string]revision.Gone{"1.0.0": "", "0.9.0": revision.GoneVersion} {
		entry := leaving(t, version, offered{"2.0.0", "", ""})
		_, refusal := request.Choose(entry)
		if got := request.OnRecord(record, entry, refusal); got != want {
			t.Errorf("%s is to be left: got %q, want %q", version, got, want)
		}
	}
}

// TestReleaseNames fails when the catalogue's release name has precedence over the installation's, or a go-template
// has one.
func TestReleaseNames(t *testing.T) {
	for _, test := range []struct {
		why, own, catalogues string
		method               v1.Method
		want                 string
	}{
		{"its name", "", "", v1.MethodHelm, "web"},
		{"the catalogue's", "", "theirs", v1.MethodHelm, "theirs"},
		{"the installation's", "mine", "theirs", v1.MethodHelm, "mine"},
		{"no Helm", "mine", "", v1.MethodGoTemplate, ""},
	} {
		installation := &v1.AddonInstallation{}
		installation.Name, installation.Spec.ReleaseName = "web", test.own
		choice := resolution.Choice{Version: &v1.AddonVersion{Template: &v1.Template{
			Method: test.method, Helm: &v1.HelmOptions{ReleaseName: test.catalogues},
		}}}
		if got := choice.ReleaseName(installation); got != test.want {
			t.Errorf("%s: got %q, want %q", test.why, got, test.want)
		}
	}
}
