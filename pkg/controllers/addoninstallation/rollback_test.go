package addoninstallation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	kit "github.com/trellis-addons/trellis/test/world"
)

// settingsTwin is healthy without replicas, and never with one: nothing runs Pods here.
const settingsTwin = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {version: '{{ .Values.version }}'}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: '{{ .Values.app }}'}}
  template:
    metadata: {labels: {app: '{{ .Values.app }}'}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
`

const extra = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {of: two}\n"

// atomic is a version with a ReplicaSet, as a chart. A version with other values fails, and has a minute to get
// healthy; one that works has ten hours, also with an accelerated clock.
func (w *world) atomic(version, values, more string) kubermaticv1.AddonVersion {
	w.t.Helper()
	made := w.content(version, kubermaticv1.MethodHelm, fmt.Sprintf("atomic-%s/%s", w.id, version), map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n", "templates/all.yaml": settingsTwin + more,
		"values.yaml": "replicas: 0\napp: web\nversion: none\n",
	})
	made.Template.Atomic, made.Template.Timeout = true, &metav1.Duration{Duration: 10 * time.Hour}
	if values != "" {
		made.Template.Timeout.Duration = time.Minute
	}
	made.Values = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"version":%q%s}`, version, values)}
	return made
}

// hookJob is a hook of a rollback that ends without a controller: a ConfigMap is ready once it exists.
const hookJob = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: told, annotations: {helm.sh/hook: post-rollback}}\n"

// revisions are "number state version", newest first; of rollbacks also the revision that they restore.
func (w *world) revisions(object *kubermaticv1.AddonInstallation) []string {
	w.t.Helper()
	records := revision.NewRecords(w.seed, w.seed, revision.NewSeal([]byte("key")))
	owner := ownership.Owner{ClusterUID: w.cluster.UID, Installation: object.Name}
	newest, err := records.Load(w.t.Context(), w.namespace, owner)
	expect.NoError(w.t, err)
	var rows []string
	for at := 1; newest != nil && at <= newest.Revision; at++ {
		record, err := records.LoadRevision(w.t.Context(), w.namespace, owner, at)
		expect.NoError(w.t, err)
		if record == nil {
			continue
		}
		row := fmt.Sprintf("%d %s %s", at, record.State, record.Version)
		if back := record.Rollback; back != nil {
			row += fmt.Sprintf(" for %d after %d", back.To, back.Failed)
		}
		rows = append(rows, row)
	}
	return rows
}

func (w *world) expectRevisions(object *kubermaticv1.AddonInstallation, want ...string) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		if diff := cmp.Diff(want, w.revisions(object)); diff != "" {
			return fmt.Errorf("revisions (-want +got):\n%s", diff)
		}
		return nil
	})
}

// expectBack waits until version 1.0.0 is restored and healthy, with no objects of the version that failed.
func (w *world) expectBack(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	w.hurry(100, func() {
		w.expectReady(object, kubermaticv1.ReasonRolledBack, `"2.0.0" failed`, `back to version "1.0.0"`,
			kubermaticv1.AnnotationReconcileAt)
	})
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if _, stays := w.configMaps(object.Spec.TargetNamespace)["extra"]; stays || w.installed(object) != "1.0.0" {
			return fmt.Errorf("version %q is there, and what the failed one brought: %t", w.installed(object), stays)
		}
		if state := object.Status; state.Version != "1.0.0" || state.Target != "2.0.0" || state.Artifact.Digest != state.LastApplied.ArtifactDigest {
			return fmt.Errorf("the status says version %q, target %q, artifact %+v, last applied %+v",
				state.Version, state.Target, state.Artifact, state.LastApplied)
		}
		return expect.Condition(object, kubermaticv1.ConditionHealthy, "True", kubermaticv1.ReasonHealthy)
	})
}

// TestAtomicUpgradeGivesWay fails if a failed atomic upgrade stays (TimeLeft never over), if the version that failed is
// tried again and again (gaveUp never true), or never again (gaveUp without reconcile-at, or without inputs); if
// objects of only that version stay (rollbackOf does not copy Superseded); if objects are recreated; if a later failure
// of a version that was healthy rolls it back (recordHealth without proof).
func TestAtomicUpgradeGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	first := w.atomic("1.0.0", "", hookJob)
	w.offer("atomic", kubermaticv1.CatalogueCustom, first)
	object := w.install("atomic", "")
	w.expectInstalled(object, "1.0.0", "")
	before := uids(w.configMaps(object.Spec.TargetNamespace))

	w.offer("atomic", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"replicas":1`, extra))
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0")
	w.expectBack(object)
	after := uids(w.configMaps(object.Spec.TargetNamespace))
	if after["told"] == "" {
		t.Error("the hook post-rollback of the version that is back did not run")
	}
	delete(after, "told")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("UIDs (-before +after):\n%s", diff)
	}
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2")
	if diff := cmp.Diff([]string{"1 superseded", "2 superseded", "3 deployed"}, w.helmHistory("atomic", object.Spec.TargetNamespace)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	w.clock.Step(time.Hour)
	w.afterwards(object, func() { w.label(object) })
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2") // it is not retried automatically

	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "once more"}
	})
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2", "4 Applied 2.0.0")
	w.hurry(100, func() {
		w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2", "4 Applied 2.0.0",
			"5 Applied 1.0.0 for 3 after 4")
	})
	w.expectBack(object)
	if figures := figuresOf(t, w.figures); !slices.Contains(figures, "installation_revisions_total rolledBack 2") ||
		!slices.Contains(figures, "installation_delay_seconds 3") {
		t.Errorf("after two rollbacks: %q", figures)
	}

	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"replicas":0}`)}
	})
	w.expectInstalled(object, "2.0.0", "")
	expect.Delete(t, w.seed, object)
	expect.Gone(t, w.seed, object)
	left := uids(w.configMaps(object.Spec.TargetNamespace))
	delete(left, "told") // hooks are not removed with a release, as with helm
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAtomicRefusedUpgradeGivesWay fails if an upgrade that the cluster refuses stays partly applied (GiveWay taken out
// of Advance), or if the rollback of an incomplete one leaves its objects.
func TestAtomicRefusedUpgradeGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	first := w.atomic("1.0.0", "", "")
	w.offer("refused", kubermaticv1.CatalogueCustom, first)
	object := w.install("refused", "")
	w.expectInstalled(object, "1.0.0", "")
	w.offer("refused", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"app":"other"`, extra))
	w.expectReady(object, kubermaticv1.ReasonImmutableField)
	w.expectBack(object)
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Intent 2.0.0", "3 Applied 1.0.0 for 1 after 2")
}

// expectCause waits for the user cluster's own reason for which an installation is not Ready.
func (w *world) expectCause(object *kubermaticv1.AddonInstallation, want string) {
	w.t.Helper()
	expect.Object(w.t, w.seed, object, func(object *kubermaticv1.AddonInstallation) error {
		if object.Status.Cause != want {
			return fmt.Errorf("the cause is %q, want %q", object.Status.Cause, want)
		}
		return nil
	})
}

// TestTheClustersOwnReasonIsInTheStatus fails if the status lacks a user cluster's own reason for a version that can't
// be applied (project), if it is lost with the rollback (rollbackOf, asGivenUp), and if it stays once everything works.
func TestTheClustersOwnReasonIsInTheStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	first := w.atomic("1.0.0", "", "")
	w.offer("caused", kubermaticv1.CatalogueCustom, first)
	object := w.install("caused", "")
	w.expectInstalled(object, "1.0.0", "")
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: object.Spec.TargetNamespace, Name: "extra"}}
	w.create(foreign)
	w.offer("caused", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"replicas":0`, extra))
	w.expectReady(object, kubermaticv1.ReasonObjectExists)
	w.expectCause(object, kubermaticv1.ReasonObjectOfOthers)
	w.hurry(100, func() { w.expectReady(object, kubermaticv1.ReasonRolledBack) })
	w.expectCause(object, kubermaticv1.ReasonObjectOfOthers)

	w.delete(foreign)
	w.edit(object, func(object *kubermaticv1.AddonInstallation) {
		object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "once more"}
	})
	w.expectInstalled(object, "2.0.0", "")
	w.expectCause(object, "")
}

// TestAtomicRollbackNeedsNoCatalogue fails if a rollback needs the catalogue (GoBack taken out of maintain).
func TestAtomicRollbackNeedsNoCatalogue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	first := w.atomic("1.0.0", "", "")
	w.offer("alone", kubermaticv1.CatalogueCustom, first)
	object := w.install("alone", "")
	w.expectInstalled(object, "1.0.0", "")
	w.offer("alone", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"replicas":1`, extra))
	expect.Eventually(t, expect.Patience, func() error {
		if version := w.installed(object); version != "2.0.0" {
			return fmt.Errorf("version %q is there", version)
		}
		return nil
	})
	w.withdraw("alone")
	w.hurry(100, func() {
		expect.Eventually(t, expect.Patience, func() error {
			if _, stays := w.configMaps(object.Spec.TargetNamespace)["extra"]; stays || w.installed(object) != "1.0.0" {
				return fmt.Errorf("version %q is there, and what the failed one brought: %t", w.installed(object), stays)
			}
			return nil
		})
	})
	w.expectReady(object, kubermaticv1.ReasonWithdrawn)
}

// TestAtomicFirstInstallationStays fails if a first installation that fails is removed, or if the lack of a revision to
// restore is not reported.
func TestAtomicFirstInstallationStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	w.start()
	w.offer("first", kubermaticv1.CatalogueCustom, w.atomic("1.0.0", `,"replicas":1`, ""))
	object := w.install("first", "")
	w.expectRevisions(object, "1 Applied 1.0.0")
	w.hurry(100, func() {
		w.expectReady(object, kubermaticv1.ReasonTimeout, "no earlier revision", "nothing is undone")
	})
	if version := w.installed(object); version != "1.0.0" {
		t.Errorf("version %q is there", version)
	}
}

// errLost is the error of a writer whose process dies, or whose answer is lost.
var errLost = errors.New("lost")

// lossy fails each save twice: before it is written, and after. The controller then has the knowledge of a new process.
type lossy struct {
	addoninstallation.Records
	lock  sync.Mutex
	count int
	// lost counts the saves that were lost in either way.
	lost int
}

func (l *lossy) lose(save func() error) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.count++
	if l.count%3 == 0 {
		return save()
	}
	l.lost++
	if l.count%3 == 2 {
		if err := save(); err != nil {
			return err
		}
	}
	return errLost
}

func (l *lossy) SaveIntent(ctx context.Context, namespace string, record *revision.Record) error {
	return l.lose(func() error { return l.Records.SaveIntent(ctx, namespace, record) })
}

func (l *lossy) SaveApplied(ctx context.Context, namespace string, record *revision.Record) error {
	return l.lose(func() error { return l.Records.SaveApplied(ctx, namespace, record) })
}

// RS05: The result is the same for each lost save, before or after its write. It fails if a recorded rollback is not
// continued (Decide without gaveUp for an intent), or is begun twice.
func TestRollbackEndsTheSameWhereverASaveIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.renderers, w.clock = bothMethods(), kit.RunningClock(t)
	saves := &lossy{}
	w.records = func(records addoninstallation.Records) addoninstallation.Records {
		saves.Records = records
		return saves
	}
	w.start()
	first := w.atomic("1.0.0", "", "")
	w.offer("lossy", kubermaticv1.CatalogueCustom, first)
	object := w.install("lossy", "")
	w.hurry(20, func() { w.expectInstalled(object, "1.0.0", "") }) // a lost save is retried after a pause, which grows
	w.offer("lossy", kubermaticv1.CatalogueCustom, first, w.atomic("2.0.0", `,"replicas":1`, extra))
	w.hurry(4, func() { w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0") })
	w.expectBack(object)
	w.expectRevisions(object, "1 Applied 1.0.0", "2 Applied 2.0.0", "3 Applied 1.0.0 for 1 after 2")
	t.Logf("%d saves were lost", saves.lost)
	var secrets corev1.SecretList
	if err := w.seed.List(t.Context(), &secrets, client.InNamespace(object.Spec.TargetNamespace), client.MatchingLabels{"owner": "helm"}); err != nil || len(secrets.Items) != 3 {
		t.Errorf("%d revisions of the Helm release, %v", len(secrets.Items), err)
	}
}
