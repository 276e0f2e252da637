package web_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// hostile is a text that runs in a page that shows it as HTML, in an attribute or in a script.
const hostile = `"'></td></textarea><script>canary()</script><img src=x onerror=canary()>{{.}}javascript:canary()`

// turnHostile writes hostile texts into all that pages show, and returns paths of these pages.
func (w *seed) turnHostile() []string {
	t := w.t
	t.Helper()
	w.publish("web", func(made *v1.Addon) {
		made.DisplayName, made.Description, made.SupportedBy = hostile[:60], hostile, "Team Web"
		made.DocumentationURL = "https://docs.example.com/canary"
		for i := range made.Versions {
			made.Versions[i].Template.FormSpec[0].DisplayName, made.Versions[i].Template.FormSpec[0].HelpText = "<b>Replicas</b>", hostile
			made.Versions[i].Template.FormSpec[1].Options = []string{hostile, "safe"}
		}
	})
	made := given.Installation(w.namespace, "bad", "web", w.space, given.NewNamespace, given.Values(`{"mode":"safe","note":"</textarea><script>canary()</script>"}`))
	made.Spec.Paused = true
	expect.Create(t, w, made)
	expect.ChangeStatus(t, w, made, func(now *v1.AddonInstallation) {
		now.Status.Unhealthy = []v1.UnhealthyObject{{Ref: hostile, Reason: "Bad", Message: hostile}}
		now.Status.Conditions = append(now.Status.Conditions, metav1.Condition{
			Type: v1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1.ReasonObjectExists, Message: hostile, LastTransitionTime: metav1.Now(),
		})
	})
	set := given.Set(w.platform, "bad", "web")
	expect.Create(t, w, set)
	expect.ChangeStatus(t, w, set, func(now *v1.AddonSet) {
		now.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Halted", Message: hostile, LastTransitionTime: metav1.Now(),
		}}
		now.Status.Clusters = []v1.SetClusterStatus{{Name: "a", State: v1.ClusterFailed, Message: hostile}}
		now.Status.Groups = []v1.GroupStatus{{Name: "first", State: v1.GroupHalted, Counts: v1.ClusterCounts{Selected: 70, Failed: 2, Current: 68}}}
	})
	page := "/clusters/one/" + w.namespace + "/installations/bad"
	return []string{
		"/", "/catalogue", "/catalogue/web", "/clusters", "/clusters/one/" + w.namespace + "/" + w.name, page, valuesOf(page),
		page + "?show=objects", "/clusters/one/" + w.namespace + "/" + w.name + "/install/web", "/installations", "/sets", "/sets/bad", "/catalogues",
		"/catalogues/web", "/installations?search=" + strings.ReplaceAll(`"><script>canary()</script>`, ">", "%3E"),
		"/clusters/one/%3Cscript%3Ecanary()%3C%2Fscript%3E/x", "/%3Cscript%3Ecanary()%3C/script%3E", "/sets/%22%3E%3Cscript%3E",
	}
}

// Red when a text of an author, a tenant or a user cluster is anything but text on a page, or a link of theirs is not https.
func TestHostileTextIsText(t *testing.T) {
	w := newSeed(t, "hostile")
	pages := w.turnHostile()
	b := open(t, settings(t, w)).as(admin())
	page := "/clusters/one/" + w.namespace + "/installations/bad"
	b.eventually(page, "canary()")
	for _, path := range pages {
		got := b.get(path) // it looks at every element
		for _, one := range append(got.all("script"), got.all("img")...) {
			if strings.Contains(attribute(one, "src"), "canary") || attribute(one, "src") == "x" || attribute(one, "onerror") != "" {
				t.Errorf("%s runs a hostile text", path)
			}
		}
		for _, link := range got.all("a") {
			if strings.HasPrefix(attribute(link, "href"), "javascript") {
				t.Errorf("%s links to %q", path, attribute(link, "href"))
			}
		}
	}
	b.shows("/catalogue/web", "https://docs.example.com/canary")
	b.shows("/sets/bad", "Halted", "first", "68/70")
	edit := b.shows(valuesOf(page), `</textarea><script>canary()</script>`)
	if _, values := edit.form("Save"); !strings.Contains(values.Get("values"), "</textarea><script>") {
		t.Errorf("the YAML is %q", values.Get("values"))
	}
}
