package installation_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fleet/installation"
)

var grantKey = []byte("01234567890123456789012345678901")

func grantOf(content string) installation.Grant {
	return installation.Grant{
		Secret: "shared", Key: "values.yaml", Content: installation.ValuesDigest(grantKey, "shared", "values.yaml", []byte(content)),
	}
}

func grantee() *v1.AddonInstallation {
	live := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster-a", Name: "web", UID: "one", Labels: map[string]string{v1.LabelManagedBy: v1.ManagedBySets, v1.LabelSet: "s"},
	}}
	live.Spec.AddonRef = v1.AddonReference{Name: "web", Version: "1.0.0", Digest: "sha256:1"}
	return live
}

// Red when a grant holds for another installation, or for one that was changed, by somebody else's key, or for one that is not there.
func TestAGrantIsForOneInstallationAsItIs(t *testing.T) {
	t.Parallel()
	text := grantOf("canary").Sign(grantKey, grantee())
	grant, isGrant := installation.ReadGrant(text)
	if !isGrant || !grant.IsFor(grantKey, grantee()) || strings.Contains(text, "canary") {
		t.Fatalf("what was signed is not granted: %q", text)
	}
	if grant.IsFor([]byte("another key"), grantee()) {
		t.Error("another key will do")
	}
	for why, change := range map[string]func(*v1.AddonInstallation){
		"namespace": func(i *v1.AddonInstallation) { i.Namespace = "cluster-b" }, "name": func(i *v1.AddonInstallation) { i.Name = "x" },
		"UID": func(i *v1.AddonInstallation) { i.UID = "two" }, "no UID": func(i *v1.AddonInstallation) { i.UID = "" },
		"set": func(i *v1.AddonInstallation) { i.Labels[v1.LabelSet] = "other" }, "no labels": func(i *v1.AddonInstallation) { i.Labels = nil },
		"add-on":      func(i *v1.AddonInstallation) { i.Spec.AddonRef.Name = "x" },
		"version":     func(i *v1.AddonInstallation) { i.Spec.AddonRef.Version = "2.0.0" },
		"content":     func(i *v1.AddonInstallation) { i.Spec.AddonRef.Digest = "" },
		"place":       func(i *v1.AddonInstallation) { i.Spec.TargetNamespace = "x" },
		"template":    func(i *v1.AddonInstallation) { i.Spec.ValuesTemplate = "x" },
		"core":        func(i *v1.AddonInstallation) { i.Spec.CoreAddon = true },
		"its release": func(i *v1.AddonInstallation) { i.Spec.ReleaseName = "x" },
	} {
		live := grantee()
		change(live)
		if grant.IsFor(grantKey, live) {
			t.Errorf("it holds with another: %s", why)
		}
	}
	unborn := grantee()
	unborn.UID = ""
	if early, _ := installation.ReadGrant(grantOf("canary").Sign(grantKey, unborn)); early.IsFor(grantKey, unborn) || early.IsFor(grantKey, grantee()) {
		t.Error("what was signed for no UID holds")
	}
}

// Red when text that names no Secret is taken for a grant.
func TestWhatIsNoGrantIsNotRead(t *testing.T) {
	t.Parallel()
	right := grantOf("canary").Sign(grantKey, grantee())
	parts := strings.Split(right, "/")
	for _, text := range []string{
		"", "shared", right + "/x", "../" + right, strings.Join(parts[:3], "/"), strings.Replace(right, "shared", "A", 1),
		strings.Replace(right, "values.yaml", "..", 1), strings.Replace(right, parts[2], "ab", 1), strings.Replace(right, parts[3], "ab", 1),
	} {
		if _, isGrant := installation.ReadGrant(text); isGrant {
			t.Errorf("%q is read", text)
		}
	}
}

// Red when an old Ready counts although other values of the platform are granted, or a grant is taken away unseen.
func TestAnOldReadyWithOtherValuesProvesNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	live := grantee()
	live.Status.Conditions = []metav1.Condition{{
		Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
	}}
	live.Status.LastApplied = &v1.AppliedState{PlatformValues: grantOf("old").Content}
	for content, want := range map[string]bool{"old": true, "new": false} {
		live.Annotations = map[string]string{v1.AnnotationPlatformValues: grantOf(content).Sign(grantKey, live)}
		if got := installation.StateOf(live, installation.Pace{}, now).Ready; got != want {
			t.Errorf("granted %s: ready is %t", content, got)
		}
	}
	live.Annotations = nil
	if installation.StateOf(live, installation.Pace{}, now).Ready {
		t.Error("ready without the grant that was used")
	}
	wanted := &installation.Intent{}
	live.Annotations = map[string]string{v1.AnnotationPlatformValues: "x", v1.AnnotationDigest: "d"}
	live.Spec = v1.AddonInstallationSpec{}
	if installation.IsRight(live, wanted, "d") {
		t.Error("a grant that nobody wants is right")
	}
}
