package addoninstallation_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// lines are the logged lines.
type lines struct {
	mutex sync.Mutex
	kept  []string
}

func (l *lines) add(_, line string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.kept = append(l.kept, line)
}

// with counts the lines that have all of these texts.
func (l *lines) with(texts ...string) (count int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, line := range l.kept {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			count++
		}
	}
	return count
}

// events of an object in the order of their first report, as "type reason", one for each report.
func (w *world) events(object client.Object) (reported []string) {
	w.t.Helper()
	for _, item := range expect.Events(w.t, w.seed, object) {
		times := int32(1)
		if item.Series != nil {
			times = item.Series.Count
		}
		for range times {
			reported = append(reported, item.Type+" "+item.Reason)
		}
	}
	return reported
}

func (w *world) expectEvents(object client.Object, want ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if diff := cmp.Diff(want, w.events(object)); diff != "" {
			return fmt.Errorf("events (-want +got):\n%s", diff)
		}
		return nil
	})
}

// tryAgain makes the controller reconcile an installation a number of times. An edit whose generation the status shows
// proves each one.
func (w *world) tryAgain(object *kubermaticv1.AddonInstallation, times int) {
	w.t.Helper()
	for i := range times {
		w.annotate(object, kubermaticv1.AnnotationReconcileAt, strconv.Itoa(i))
	}
}

// TestAFailureIsReportedOnce fails if a failure is not reported, if each attempt is reported, if a restart reports it once
// more, if a new reason is not reported, or if the log has another text.
func TestAFailureIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log lines
	w.logger = funcr.New(log.add, funcr.Options{})
	stop := w.startUntil()
	w.publish("blocked", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	namespace := w.unique("blocked")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}}
	w.create(foreign)
	object := w.install("blocked", "")
	message := w.expectSummary(object, "False", kubermaticv1.ReasonObjectExists, "settings")
	w.expectEvent(kubermaticv1.ReasonObjectExists, object, message)
	w.expectEvents(object, "Warning ObjectExists")
	if log.with(kubermaticv1.ReasonObjectExists, strconv.Quote(message)[1:20]) != 1 {
		t.Errorf("the log does not have the failure once: %q", log.kept)
	}
	w.tryAgain(object, 5)
	stop()
	w.start()
	w.tryAgain(object, 5)

	w.want(object, "9.9.9") // earlier reports precede this one
	w.expectSummary(object, "False", kubermaticv1.ReasonVersionUnknown, "9.9.9")
	w.expectEvents(object, "Warning ObjectExists", "Warning VersionUnknown")
	if log.with("event of an installation", kubermaticv1.ReasonVersionUnknown, "9.9.9") != 1 {
		t.Errorf("the log does not have the new reason once: %q", log.kept)
	}
	w.delete(foreign)
	w.want(object, "1.0.0")
	w.ready(object)
	w.expectEvents(object, "Warning ObjectExists", "Warning VersionUnknown", "Normal Applied")
}

// TestEventsOfWhatFailsDoNotEndInApplied fails if the events of an applied add-on that does not work end with the
// applied version, or if work in progress is reported as failure.
func TestEventsOfWhatFailsDoNotEndInApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	if _, err := w.sources.Commit("stuck", map[string]string{"job.yaml": stuckJob}); err != nil {
		t.Fatal(err)
	}
	publish := func(number string) {
		version := w.version(offered{version: number})
		version.Source.Git.Remote = kubermaticv1.GitRemote(w.sources.GitURL + "/stuck.git")
		version.Template.Timeout = &metav1.Duration{Duration: time.Second}
		w.publishVersions("stuck", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{version})
	}
	publish("1.0.0")
	object := w.install("stuck", "")
	w.expectSummary(object, "False", kubermaticv1.ReasonTimeout, "Job")
	w.expectEvents(object, "Normal Applied", "Warning Timeout")
	publish("1.1.0") // applied once more, without an edit
	w.expectEvents(object, "Normal Applied", "Warning Timeout", "Normal Applied", "Warning Timeout")
}

// TestTroubleOfAnotherWorkerIsItsToReport fails if a problem is reported that another worker found.
func TestTroubleOfAnotherWorkerIsItsToReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log lines
	w.logger = funcr.New(log.add, funcr.Options{Verbosity: 1})
	w.start()
	w.publish("lent", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	object := w.install("lent", "9.9.9")
	w.expectSummary(object, "False", kubermaticv1.ReasonVersionUnknown, "9.9.9")
	w.expectEvents(object, "Warning VersionUnknown")
	w.leavesAlone(&log, func() { w.giveTo("another") })
	read := object.DeepCopy()
	expect.Get(t, w.seed, client.ObjectKeyFromObject(object), read)
	reported := read.DeepCopy()
	apimeta.FindStatusCondition(reported.Status.Conditions, kubermaticv1.ConditionReady).Reason = kubermaticv1.ReasonObjectExists
	expect.PatchStatus(t, w.seed, reported, client.MergeFrom(read))
	w.leavesAlone(&log, func() { w.want(object, "1.0.0") })

	w.giveTo("")
	w.ready(object)
	w.expectEvents(object, "Warning VersionUnknown", "Normal Applied")
}

// TestWhatAnotherWorkerAppliedIsOnRecord fails if a worker uses its memory of an installation that another one
// reconciled since: it would take revision 1 for the present one.
func TestWhatAnotherWorkerAppliedIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driftInterval = time.Hour // a comparison would restore it
	var first, second lines
	w.logger = funcr.New(first.add, funcr.Options{Verbosity: 1})
	w.start()
	w.worker, w.logger = "second", funcr.New(second.add, funcr.Options{Verbosity: 1})
	w.start()
	w.publish("lent", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"}, offered{version: "2.0.0"})
	object := w.install("lent", "1.0.0")
	w.expectInstalled(object, "1.0.0", "2.0.0")
	w.leavesAlone(&first, func() { w.giveTo("second") })
	w.want(object, "2.0.0")
	w.expectInstalled(object, "2.0.0", "")
	w.leavesAlone(&second, func() { w.giveTo("nobody") })
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.AddonRef.Version = "1.0.0"
		object.Annotations = map[string]string{kubermaticv1.AnnotationAllowDowngrade: "true"}
	})
	w.giveTo("")
	w.expectInstalled(object, "1.0.0", "2.0.0")
}

// leavesAlone waits until a controller has seen, after an edit, that the installation is another worker's.
func (w *world) leavesAlone(log *lines, edit func()) {
	w.t.Helper()
	before := log.with("NotMine")
	edit()
	expect.Eventually(w.t, expect.Patience, func() error {
		if log.with("NotMine") == before {
			return errors.New("no pass has left it alone since")
		}
		return nil
	})
}

// giveTo gives the Cluster to the controllers with that worker name.
func (w *world) giveTo(worker string) {
	w.t.Helper()
	before := w.cluster.DeepCopy()
	w.cluster.Labels = map[string]string{kkpv1.LabelWorkerName: worker}
	expect.Patch(w.t, w.seed, w.cluster, client.MergeFrom(before))
}

const stuckJob = `apiVersion: batch/v1
kind: Job
metadata: {name: 'stuck-{{ .Variables.version }}'}
spec:
  template: {spec: {restartPolicy: Never, nodeSelector: {no: where}, containers: [{name: once, image: "example.com/once:1"}]}}
`

// TestANewerVersionIsReportedOnce fails if a newer version that fits is not reported, if it is reported again by a later reconciliation or a
// restart, or if a version is reported that does not fit.
func TestANewerVersionIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.startUntil()
	first, second, third := w.version(offered{version: "1.0.0"}), w.version(offered{version: "1.1.0"}), w.version(offered{version: "2.0.0"})
	third.Constraints = &kubermaticv1.Constraints{K8sVersion: ">= 9"}
	w.publishVersions("newer", kubermaticv1.CatalogueCustom, []kubermaticv1.AddonVersion{first, second, third})
	object := w.install("newer", "1.0.0")
	w.ready(object)
	w.expectEvent(kubermaticv1.EventUpdateAvailable, object, "1.1.0", "1.0.0")
	w.tryAgain(object, 3)
	stop()
	w.start()
	w.tryAgain(object, 2)
	w.want(object, "1.1.0")
	w.expectVersion(object, "1.1.0")
	w.expectEvents(object, "Normal UpdateAvailable", "Normal Applied", "Normal Applied")
}
