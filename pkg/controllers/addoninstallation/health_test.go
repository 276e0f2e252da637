package addoninstallation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/lab"
)

// evaluated is a version with ConfigMap settings and this health check.
func (w *world) evaluated(version string, by *kubermaticv1.HealthCheck) kubermaticv1.AddonVersion {
	w.t.Helper()
	made := w.content(version, kubermaticv1.MethodGoTemplate, w.unique("judged"), map[string]string{
		"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {version: '{{ .Variables.version }}', secret: spec-secret}\n",
	})
	made.Template.Health = by
	return made
}

// say writes a key of a ConfigMap in the user cluster.
func (w *world) say(namespace, name, key, value string) {
	w.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{%q:%q}}`, key, value))
	expect.Patch(w.t, w.seed, object, patch)
}

// expectUnhealthy waits for one object in status.unhealthy.
func (w *world) expectUnhealthy(object *kubermaticv1.AddonInstallation, reason, says string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		found := object.Status.Unhealthy
		if len(found) != 1 || found[0].Reason != reason || !strings.Contains(found[0].Message, says) {
			return fmt.Errorf("unhealthy are %+v, want one that is %s and says %q", found, reason, says)
		}
		return nil
	})
}

func mapRule(healthy, failed, message string) *kubermaticv1.HealthCheck {
	return &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthByRules, Rules: []kubermaticv1.HealthRule{{
		APIVersion: "v1", Kind: "ConfigMap", Healthy: healthy, Failed: failed, Message: message,
	}}}
}

// AG20: Fails if an add-on is healthy before its rule is true, or is not healthy afterwards; if a rule that can't be
// evaluated is not reported, or its message contains more than status and metadata; and if other rules for the same
// objects write to the user cluster, or are not followed.
func TestHealthByRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driftInterval = time.Second
	heard := w.overhear()
	w.start()
	isUp := mapRule(`self.data.state == "up"`, `self.data.state == "broken"`, `"it is in " + self.metadata.namespace + self.?spec.?x.orValue("")`)
	w.offer("judged", kubermaticv1.CatalogueCustom, w.evaluated("1.0.0", isUp))
	object := w.install("judged", "")
	w.expectReady(object, kubermaticv1.ReasonProgressing, `field "state"`)
	w.say(object.Spec.TargetNamespace, "settings", "state", "broken")
	w.expectReady(object, kubermaticv1.ReasonUnhealthy, "it is in "+object.Spec.TargetNamespace)
	w.say(object.Spec.TargetNamespace, "settings", "state", "up")
	w.expectInstalled(object, "1.0.0", "")

	heard.sinceThen()
	w.offer("judged", kubermaticv1.CatalogueCustom, w.evaluated("1.0.0", mapRule(`self.data.state > 1`, "", "")))
	w.expectReady(object, kubermaticv1.ReasonRuleFailed, "rule 0", "no such overload")
	w.expectUnhealthy(object, kubermaticv1.ReasonRuleFailed, `"healthy" of rule 0`)
	w.offer("judged", kubermaticv1.CatalogueCustom, w.evaluated("1.0.0", nil))
	w.expectInstalled(object, "1.0.0", "")
	if written := slices.DeleteFunc(heard.sinceThen(), func(call string) bool { return strings.HasPrefix(call, "GET ") }); len(written) > 0 {
		t.Errorf("another judgement writes to the user cluster: %q", written)
	}
	for _, condition := range object.Status.Conditions {
		if strings.Contains(condition.Message, "spec-secret") {
			t.Errorf("%s tells what the object has: %q", condition.Type, condition.Message)
		}
	}
}

// AG20: Fails if a rule that creates large values, and passed every check, is evaluated, or is not reported in status
// and event with its place; if it delays other installations; or if the installation can't be removed.
func TestARuleThatMakesLargeValuesIsNotEvaluated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	bomb := mapRule(`[[1]]`+strings.Repeat(`.map(a,a+a)`, 60)+`.all(a,!(2 in a))`, "", "")
	w.offer("judged", kubermaticv1.CatalogueCustom, w.evaluated("1.0.0", bomb))
	w.publish("other", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object, other := w.install("judged", ""), w.install("other", "")
	w.expectReady(object, kubermaticv1.ReasonRuleFailed, `"healthy" of rule 0`, "at character", "at most 8 of all")
	w.expectUnhealthy(object, kubermaticv1.ReasonRuleFailed, "split the rule; correct the rule")
	w.expectEvent(kubermaticv1.ReasonRuleFailed, object, `"healthy" of rule 0`)
	w.expectInstalled(other, "1.0.0", "")
	w.delete(object)
	expect.Gone(t, w.seed, object)
}

// TestAnotherEvaluationCountsAtOnce fails if a changed health check waits for the next comparison: until then the add-on
// would be Ready by the previous one, and a set would continue.
func TestAnotherEvaluationCountsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driftInterval = time.Hour
	w.start()
	version := w.evaluated("1.0.0", nil)
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	object := w.install("judged", "")
	w.expectInstalled(object, "1.0.0", "")
	version.Template.Health = mapRule(`self.data.state == "up"`, "", "")
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	w.expectReady(object, kubermaticv1.ReasonProgressing, `field "state"`)
	version.Template.Health = &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthByLease}
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	w.expectReady(object, kubermaticv1.ReasonProgressing, "2 of 3 objects are healthy", "was not renewed")
	version.Template.Health = nil
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	w.expectInstalled(object, "1.0.0", "")
	if summary := object.Status.Objects.Summary; summary != "2/2" {
		t.Errorf("objects are %s, want 2/2", summary)
	}
	total := int32(0)
	for _, kind := range object.Status.Inventory {
		total += kind.Count
	}
	if total != 2 {
		t.Errorf("the inventory is %v, want 2 objects", object.Status.Inventory)
	}
}

// TestHealthByAnObjectOfTheCluster fails if a rule that names an object of the user cluster reads another one, or if a
// withdrawn version loses its rules.
func TestHealthByAnObjectOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driftInterval = time.Second
	w.start()
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foreign"}}
	by := mapRule(`self.data.state == "up"`, "", "")
	by.Mode, by.Rules[0].Name, by.Rules[0].Namespace = "", foreign.Name, foreign.Namespace
	w.offer("judged", kubermaticv1.CatalogueCustom, w.evaluated("1.0.0", by))
	object := w.install("judged", "")
	w.expectReady(object, kubermaticv1.ReasonProgressing, "ConfigMap "+foreign.Namespace+"/foreign", "does not exist", "rule 0")
	foreign.Data = map[string]string{"state": "up"}
	w.create(foreign)
	w.expectInstalled(object, "1.0.0", "")
	w.withdraw("judged")
	w.say(foreign.Namespace, foreign.Name, "state", "down")
	w.expectUnhealthy(object, "InProgress", `"healthy" is false: self.data.state == "up"`)
}

// TestHealthIsNotWatched fails if objects without health checks are checked, or reported as healthy.
func TestHealthIsNotWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	version := w.slowly("1.0.0", 1) // nothing runs Pods here
	version.Template.Health = &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthUnwatched}
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	object := w.install("judged", "")
	w.expectReady(object, kubermaticv1.ReasonReady, "its health is not checked")
	if err := expect.Condition(object, kubermaticv1.ConditionHealthy, "True", kubermaticv1.ReasonNotWatched); err != nil {
		t.Error(err)
	}
}

// TestHealthByLease fails if an add-on is Ready without proof that it is alive, or is not Ready when its Lease is
// renewed.
func TestHealthByLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	version := w.evaluated("1.0.0", &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthByLease})
	version.Template.Timeout = &metav1.Duration{Duration: time.Second}
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	object := w.install("judged", "")
	w.expectReady(object, kubermaticv1.ReasonLeaseMissing, "Lease.coordination.k8s.io "+object.Spec.TargetNamespace+"/judged", "was not renewed")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "judged"}}
	w.create(lease)
	now := metav1.NowMicro()
	lease.Spec.RenewTime = &now
	expect.Update(t, w.seed, lease)
	w.expectInstalled(object, "1.0.0", "")
}

// AG22: Fails if a Job that does not count for health is not observed until it ends: it would run again once its time
// to live is over.
func TestAJobRunsOnceWhateverCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	version := w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("job"), map[string]string{
		"job.yaml": lab.Job, "settings.yaml": lab.Settings,
	})
	version.Template.Health = &kubermaticv1.HealthCheck{Mode: kubermaticv1.HealthUnwatched}
	w.offer("judged", kubermaticv1.CatalogueCustom, version)
	object := w.install("judged", "")
	w.expectReady(object, kubermaticv1.ReasonReady)
	job := w.awaitJob(object, "once")
	w.end(job, true)
	records := revision.NewRecords(w.seed, w.seed, revision.NewSeal([]byte("key")))
	expect.Eventually(t, expect.Patience, func() error {
		record, err := records.Load(t.Context(), w.namespace, ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name})
		if err == nil && !slices.ContainsFunc(record.Inventory, func(entry ownership.Entry) bool { return entry.Finished }) {
			err = fmt.Errorf("no end is on record: %+v", record.Inventory)
		}
		return err
	})
	w.deleteAll(job, w.settings(object)) // the latter shows that both were looked for
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.expectDrifted(object, "False", kubermaticv1.ReasonRepaired)
	if w.has(&batchv1.Job{}, job.Namespace, job.Name) {
		t.Error("it runs again")
	}
}
