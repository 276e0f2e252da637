package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
)

// refuseQuoting makes the user cluster's API server refuse ConfigMaps with the canary, and quote only the canary, which
// is a part of the text.
func (w *world) refuseQuoting() {
	w.t.Helper()
	name := w.namespace + "-quotes"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "canary", Expression: `has(object.data) && "version" in object.data && object.data.version.startsWith("password=")`,
			}},
			Validations: []admissionv1.Validation{{
				Expression: "false", Message: "refused", MessageExpression: `"this was seen: " + object.data.version.substring(9)`,
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	w.create(policy)
	w.create(binding)
	expect.Eventually(w.t, expect.Patience, func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe"}, Data: map[string]string{"version": "password=x"}}
		if err := w.seed.Create(w.t.Context(), probe, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "this was seen: x") {
			return fmt.Errorf("the policy does not work yet: %v", err)
		}
		return nil
	})
}

// expectUntold reports an error if the status, an event or the log of an installation contains a text.
func (w *world) expectUntold(object *kubermaticv1.AddonInstallation, logged, text string) {
	w.t.Helper()
	var events corev1.EventList
	expect.List(w.t, w.seed, &events, client.InNamespace(w.namespace))
	expect.Read(w.t, w.seed, object)
	reported, err := yaml.Marshal([]any{object, events})
	expect.NoError(w.t, err)
	for place, all := range map[string]string{"the installation and events": string(reported), "the log": logged} {
		for line := range strings.Lines(all) {
			if strings.Contains(line, text) {
				w.t.Errorf("what the Secret holds stands in %s: %s", place, line)
			}
		}
		if all == "" {
			w.t.Errorf("nothing is known of %s", place)
		}
	}
}

// A user cluster refuses an object that contains a granted value inside a longer text, and quotes the value. It fails
// if conditions, which events and the log repeat, are written without hideValues.
func TestAnswersOfTheUserClusterShowNoGrantedValue(t *testing.T) {
	t.Parallel()
	w, logged := grantWorld(t)
	w.refuseQuoting()
	w.offer("granted", kubermaticv1.CatalogueCustom, w.content("1.0.0", kubermaticv1.MethodGoTemplate, "quoted", map[string]string{
		"all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: 'password={{ .Variables.version }}'}\n",
	}))
	w.mark("granted", []byte(grantKey), nothing)
	w.create(w.platformSecret(platformText(canary)))
	object := w.ofSet("quoted")
	w.grant(object, canary)
	w.expectGranted(object, kubermaticv1.ReasonObjectInvalid, "this was seen: ***", "")
	w.expectUntold(object, logged(), canary)
}

// An installation that a set released keeps an invalid grant: nothing is rendered after any edit, and the status
// reports it, until the annotation is removed. It fails if claimsGrant does not look at the record (the edit is
// rendered without the values).
func TestAReleasedInstallationWithAVoidGrantIsNotRendered(t *testing.T) {
	t.Parallel()
	w, _ := grantWorld(t)
	w.create(w.platformSecret(platformText(canary)))
	object := w.ofSet("released")
	w.grant(object, canary)
	w.expectGranted(object, kubermaticv1.ReasonReady, "", canary)
	w.edit(object, func(live *kubermaticv1.AddonInstallation) {
		live.Labels = nil
		live.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"more":"edited"}`)}
	})
	w.expectGranted(object, kubermaticv1.ReasonValuesMissing, "grants this installation nothing", canary)
	w.spoilSettings(object)
	expect.Eventually(t, expect.Patience, func() error {
		if have := w.installed(object); have != canary {
			return fmt.Errorf("the user cluster has %q", have)
		}
		return nil
	})
	w.edit(object, func(live *kubermaticv1.AddonInstallation) { live.Annotations = nil })
	w.expectGranted(object, kubermaticv1.ReasonReady, "", "1.0.0")
}

// A grant is invalid once any signed field changes, and for another installation of the same name. Values that could
// shape templates are refused, without naming their place in the Secret. It fails without valuesTemplate,
// addonRef.digest, set or UID in markFor (target namespace and release name are immutable), without checkMarks of the
// installation's valuesTemplate, and without hasReserved.
func TestAnEditedInstallationHasNoGrant(t *testing.T) {
	t.Parallel()
	w, _ := grantWorld(t)
	w.create(w.platformSecret(platformText(canary)))
	for name, change := range map[string]func(*kubermaticv1.AddonInstallation){
		"template": func(live *kubermaticv1.AddonInstallation) { live.Spec.ValuesTemplate = "more: edited" },
		"digest": func(live *kubermaticv1.AddonInstallation) {
			live.Spec.AddonRef.Digest = live.Status.LastApplied.EntryDigest
		},
		"set": func(live *kubermaticv1.AddonInstallation) { live.Labels[kubermaticv1.LabelSet] = "another" },
	} {
		object := w.ofSet(name)
		w.grant(object, canary)
		w.expectGranted(object, kubermaticv1.ReasonReady, "", canary)
		w.edit(object, change)
		w.expectGranted(object, kubermaticv1.ReasonValuesMissing, "grants this installation nothing", canary)
	}

	again := w.ofSet("again")
	w.grant(again, canary)
	w.expectGranted(again, kubermaticv1.ReasonReady, "", canary)
	replayed := again.Annotations
	w.delete(again)
	expect.Gone(t, w.seed, again)
	w.ofSet("again")
	w.edit(again, func(live *kubermaticv1.AddonInstallation) { live.Annotations = replayed })
	w.expectGranted(again, kubermaticv1.ReasonValuesMissing, "grants this installation nothing", "")

	marked := w.ofSet("marked")
	w.edit(marked, func(live *kubermaticv1.AddonInstallation) { live.Spec.ValuesTemplate = `more: '{{ "{{" }} .Values }}'` })
	w.grant(marked, canary)
	w.expectGranted(marked, kubermaticv1.ReasonValuesInvalid, "contains template marks", "")

	reserved := w.ofSet("reserved")
	text := []byte("kkp: {Cluster: mine}\n")
	w.putPlatform(text)
	w.edit(reserved, func(live *kubermaticv1.AddonInstallation) {
		live.Annotations[kubermaticv1.AnnotationPlatformValues] = w.grantOf(live, text)
	})
	w.expectGranted(reserved, kubermaticv1.ReasonValuesMissing, `or the reserved key "kkp"`, "")
}

// A granted value makes a version fail, which is rolled back, and then the Secret changes: the value in the recorded
// message of the failure is no longer known. It fails if GiveWay records the message unmasked.
func TestWhatARollbackReportsHoldsNoGrantedValue(t *testing.T) {
	t.Parallel()
	w, logged := grantWorld(t)
	version := w.content("1.0.0", kubermaticv1.MethodGoTemplate, "given-up", map[string]string{
		"all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ if ne .Variables.version \"harmless\" }}password={{ end }}{{ .Variables.version }}'}\n",
	})
	version.Template.Atomic, version.Template.Timeout = true, &metav1.Duration{Duration: 2 * time.Second}
	w.offer("granted", kubermaticv1.CatalogueCustom, version)
	w.mark("granted", []byte(grantKey), nothing)
	w.create(w.platformSecret(platformText("harmless")))
	object := w.ofSet("given-up")
	w.grant(object, "harmless")
	w.expectGranted(object, kubermaticv1.ReasonReady, "", "harmless")

	w.refuseQuoting()
	w.putPlatform(platformText(canary))
	w.grant(object, canary)
	w.expectGranted(object, kubermaticv1.ReasonRolledBack, "this was seen: ***", "harmless")
	w.putPlatform(platformText("third-value"))
	w.expectGranted(object, kubermaticv1.ReasonValuesMissing, `Secret "shared" changed`, "harmless")
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}
	record, err := revision.NewRecords(w.seed, w.seed, revision.NewSeal([]byte("key"))).Load(t.Context(), w.namespace, owner)
	if err != nil || record.Rollback == nil {
		t.Fatalf("the record is %+v: %v", record, err)
	}
	if problem := record.Rollback.Problem; strings.Contains(problem, canary) || !strings.Contains(problem, "this was seen") {
		t.Errorf("on record is %q", problem)
	}
	w.expectUntold(object, logged(), canary)
}
