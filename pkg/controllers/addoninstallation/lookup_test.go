package addoninstallation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// login makes a password once and looks it up afterwards, as charts of dashboards do; told shows helm's data about the
// release.
const (
	login = `{{- $before := lookup "v1" "Secret" .Release.Namespace "login" }}
{{- $password := randAlphaNum 20 }}
{{- if $before }}{{ $password = index $before.data "password" | b64dec }}{{ end }}
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: {{ $password }}}
`
	reported = `apiVersion: v1
kind: ConfigMap
metadata: {name: told}
data:
  tag: '{{ .Values.tag }}'
  release: '{{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}'
`
	// kubernetes renders differently for every version of Kubernetes.
	kubernetes = "  kubernetes: '{{ .Capabilities.KubeVersion.Version }}'\n"
	// summed has the checksum of a password that differs in each rendering until it can be looked up.
	summed = `apiVersion: v1
kind: ConfigMap
metadata: {name: summed}
data: {checksum: '{{ include (print $.Template.BasePath "/login.yaml") . | sha256sum }}'}
`
	// madeUp has values from chance and the clock only.
	madeUp = `{{- $authority := genCA "authority" 365 }}
apiVersion: v1
kind: Secret
metadata: {name: login, annotations: {made: '{{ now | date "2006-01-02" }}', checksum: '{{ randAlphaNum 9 | sha256sum }}'}}
stringData: {password: {{ randAlphaNum 20 }}, id: {{ uuidv4 }}, authority: {{ $authority.Cert | b64enc }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: job-{{ randAlphaNum 5 | lower }}}
`
)

// password is the content of Secret login, once it exists.
func (w *world) password(namespace string) string {
	w.t.Helper()
	found := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"}}
	expect.Object(w.t, w.seed, found, func(found *corev1.Secret) error {
		if len(found.Data["password"]) == 0 {
			return fmt.Errorf("there is no password")
		}
		return nil
	})
	return string(found.Data["password"])
}

// expectReported waits until ConfigMap told has this text at a key.
func (w *world) expectReported(namespace, key, want string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "told"}},
		func(found *corev1.ConfigMap) error {
			if found.Data[key] != want {
				return fmt.Errorf("%s is %q, want %q", key, found.Data[key], want)
			}
			return nil
		})
}

// tagged gives the chart another value.
func (w *world) tagged(object *kubermaticv1.AddonInstallation, tag string) {
	w.t.Helper()
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"tag":%q}`, tag)}
	})
}

// expectAnotherLook waits until the inputs in the status differ from the previous ones, and the installation is Ready.
func (w *world) expectAnotherLook(object *kubermaticv1.AddonInstallation, before string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.LastApplied == nil || object.Status.LastApplied.Inputs == before {
			return fmt.Errorf("the inputs are those of before")
		}
		return expect.Condition(object, kubermaticv1.ConditionReady, "True", "")
	})
}

// A password that a chart generates once stays after changes of values, of Kubernetes and of the process. It fails if
// lookup finds nothing (r.lookup returns nil): each change generates another password.
func TestLookupKeepsWhatWasMade(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("looked", "looked", nil, map[string]string{"login": login, "told": reported + kubernetes})
	stop := w.startUntil()
	t.Cleanup(stop)
	object := w.install("looked", "")
	namespace := object.Spec.TargetNamespace
	w.ready(object)
	made := w.password(namespace)
	w.tagged(object, "two")
	w.expectReported(namespace, "tag", "two")
	w.ready(object)
	if now := w.password(namespace); now != made {
		t.Error("another value made another password")
	}
	stop()
	w.start()
	w.running("v1.36.4")
	w.expectReported(namespace, "kubernetes", "v1.36.4")
	if now := w.password(namespace); now != made {
		t.Error("another version of Kubernetes made another password")
	}
}

// A release that helm installed keeps its password, and the templates see an upgrade of the release. It fails without
// apply.OfRelease: the password changes; and with the record's revision in renderInput: the release shows "1 true
// false".
func TestAdoptionLooksUpWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	templates := map[string]string{"login": login, "told": reported}
	w.publishChart("taken", "taken", nil, templates)
	w.start()
	namespace := w.unique("taken")
	w.program("helm", "", "install", "taken", folder(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: taken\nversion: 1.0.0\n", "values.yaml": "tag: one\n",
		"templates/login.yaml": login, "templates/told.yaml": reported,
	}), "-n", namespace, "--create-namespace")
	made := w.password(namespace)
	w.expectReported(namespace, "release", "1 true false")
	object := w.install("taken", "")
	w.adopt(object)
	w.ready(object)
	if now := w.password(namespace); now != made {
		t.Error("adoption made another password")
	}
	w.expectReported(namespace, "release", "2 false true")
}

// The templates see the revisions that helm shows. It fails with IsInstall by the number of the record's revision, or
// with another revision than that of the Helm release.
func TestTemplatesSeeHelmsRevision(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("revised", "revised", nil, map[string]string{"told": reported})
	w.start()
	object := w.install("revised", "")
	namespace := object.Spec.TargetNamespace
	w.expectReported(namespace, "release", "1 true false")
	w.ready(object)
	before := object.Status.LastApplied.Inputs
	w.running("v1.36.4") // without a request of a user
	w.expectAnotherLook(object, before)
	w.expectReported(namespace, "release", "1 true false")
	w.tagged(object, "two")
	w.expectReported(namespace, "release", "2 false true")
	w.expectRelease(object, "revised", 2)
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.tagged(object, "three")
	w.expectReported(namespace, "release", "3 false true")
	w.expectRelease(object, "revised", 3)
	w.expectNoEvent(kubermaticv1.EventNonDeterministic)
}

// A chart that prints the checksum of a generated password stays at its first revision: the checksum changes as soon as
// the password can be looked up. It fails without the rendering that finds nothing.
func TestSumsOfWhatIsLookedUpStay(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("summed", "summed", nil, map[string]string{"login": login, "summed": summed, "told": reported})
	w.start()
	object := w.install("summed", "")
	w.ready(object)
	versions, before := w.versionsIn(object.Spec.TargetNamespace), object.Status.LastApplied.Inputs
	w.running("v1.36.4") // without a request of a user
	w.expectAnotherLook(object, before)
	if now := w.versionsIn(object.Spec.TargetNamespace); fmt.Sprint(now) != fmt.Sprint(versions) {
		t.Errorf("what nobody asked for changed objects: %v, before %v", now, versions)
	}
	w.expectRelease(object, "summed", 1)
	w.running("v1.36.3")
}

// TestChanceAloneChangesNothing fails with asRecorded of pkg/install/rendering returning false: passwords, certificates, times
// and names change after each version of Kubernetes; and with byChance always returning true: a real change of the
// chart is lost.
func TestChanceAloneChangesNothing(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("chance", "chance", nil, map[string]string{"login": madeUp, "told": reported})
	w.publishChart("change", "change", nil, map[string]string{"login": madeUp, "told": reported + kubernetes})
	w.start()
	for _, test := range []struct {
		name  string
		stays bool
	}{{"chance", true}, {"change", false}} {
		object := w.install(test.name, "")
		namespace := object.Spec.TargetNamespace
		w.ready(object)
		versions := w.versionsIn(namespace)
		before := object.Status.LastApplied.Inputs
		w.running("v1.36.4")
		w.expectAnotherLook(object, before)
		if !test.stays {
			w.expectReported(namespace, "kubernetes", "v1.36.4")
			w.expectRelease(object, test.name, 2)
		} else if now := w.versionsIn(namespace); fmt.Sprint(now) != fmt.Sprint(versions) {
			t.Errorf("what nobody asked for changed objects: %v, before %v", now, versions)
		}
		made := w.password(namespace)
		w.tagged(object, "two")
		w.expectReported(namespace, "tag", "two")
		w.ready(object)
		if w.password(namespace) == made {
			t.Error("a change that somebody asked for does not render anew")
		}
		w.running("v1.36.3")
	}
}

// versionsIn are the resource versions of a namespace's ConfigMaps and Secrets, except for those of releases.
func (w *world) versionsIn(namespace string) map[string]string {
	w.t.Helper()
	found := map[string]string{}
	for name, object := range w.configMaps(namespace) {
		found[name] = object.ResourceVersion
	}
	var secret corev1.Secret
	expect.Get(w.t, w.seed, client.ObjectKey{Namespace: namespace, Name: "login"}, &secret)
	found["login"] = secret.ResourceVersion
	return found
}

// A rollout under way continues if no other revision was requested. It fails without revision.AmendInputs: the release
// is at revision 2, and the hook runs again.
func TestRolloutGoesOnWhereNobodyAsked(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.publishChart("underway", "underway", nil, map[string]string{"login": madeUp, "a": job("prepare", "pre-install", "")})
	w.start()
	object := w.install("underway", "")
	prepare := w.awaitJob(object, "prepare")
	w.expectSummary(object, "False", kubermaticv1.ReasonHookRunning, "prepare")
	intended := w.intended(object)
	w.running("v1.36.4")
	expect.Eventually(t, expect.Patience, func() error {
		if w.intended(object) == intended {
			return fmt.Errorf("the record is the one of before")
		}
		return nil
	})
	if again := w.awaitJob(object, "prepare"); again.UID != prepare.UID {
		t.Error("the hook was made anew")
	}
	w.end(w.awaitJob(object, "prepare"), true)
	w.expectRelease(object, "underway", 1)
}

// intended is the version of the installation's only record.
func (w *world) intended(object *kubermaticv1.AddonInstallation) string {
	w.t.Helper()
	var list corev1.SecretList
	expect.List(w.t, w.seed, &list, client.InNamespace(object.Namespace))
	version := ""
	for _, secret := range list.Items {
		if secret.Type == "addons.kubermatic.k8c.io/release.v1" {
			version = secret.ResourceVersion
		}
	}
	return version
}
