package addoninstallation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/lab"
)

// migration is a plain Job with a time to live after its end in seconds, and a ConfigMap whose repair shows that a
// comparison was made.
func migration(image, seconds string) map[string]string {
	spec := "spec:\n  ttlSecondsAfterFinished: " + seconds
	return map[string]string{
		"job.yaml":      strings.Replace(strings.Replace(lab.Job, "spec:", spec, 1), "once:1", image, 1),
		"settings.yaml": lab.Settings,
	}
}

// migrated offers versions of an add-on of that method, each with these files.
func (w *world) migrated(name string, method kubermaticv1.Method, contents ...map[string]string) {
	w.t.Helper()
	placed, folder := map[string]string{}, ""
	if method == kubermaticv1.MethodHelm {
		folder = "templates/"
	}
	var versions []kubermaticv1.AddonVersion
	for at, files := range contents {
		made := w.version(offered{version: fmt.Sprintf("%d.0.0", at+1)})
		made.Template.Method, made.Source.Git.Path = method, fmt.Sprintf("%d", at+1)
		made.Source.Git.Remote = kubermaticv1.GitRemote(w.sources.GitURL + "/" + name + ".git")
		if method == kubermaticv1.MethodHelm {
			placed[made.Source.Git.Path+"/Chart.yaml"] = "apiVersion: v2\nname: " + name + "\nversion: " + made.Version + "\n"
		}
		for file, text := range files {
			placed[made.Source.Git.Path+"/"+folder+file] = text
		}
		versions = append(versions, made)
	}
	if _, err := w.sources.Commit(name, placed); err != nil {
		w.t.Fatal(err)
	}
	w.offer(name, kubermaticv1.CatalogueCustom, versions...)
}

// lookedAt deletes the ConfigMap, requests a comparison and waits until it is restored.
func (w *world) lookedAt(object *kubermaticv1.AddonInstallation) {
	w.t.Helper()
	settings := w.settings(object)
	w.deleteAll(settings)
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, string(settings.UID))
	expect.Eventually(w.t, expect.Patience, func() error {
		now := settings.DeepCopy()
		return w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(settings), now)
	})
	w.ready(object)
}

// TestAJobThatEndsAndGoesRunsOnce fails if a Job that completed and was deleted runs a second time; if it is not
// recreated after a deletion before its end; if one whose manifest changed does not run; and if a Job is never deleted.
// The user cluster has the controller that deletes Jobs by their time to live.
func TestAJobThatEndsAndGoesRunsOnce(t *testing.T) {
	t.Parallel()
	for _, method := range []kubermaticv1.Method{kubermaticv1.MethodGoTemplate, kubermaticv1.MethodHelm} {
		for _, seconds := range []string{"0", "1"} {
			t.Run(string(method)+" "+seconds, func(t *testing.T) {
				t.Parallel()
				w := newHookWorld(t)
				w.driftInterval = time.Second
				stop := w.startUntil()
				w.migrated("moved", method, migration("once:1", seconds), migration("once:2", seconds))
				object := w.install("moved", "1.0.0")

				job := w.awaitJob(object, "once")
				w.deleteAll(job) // before its end
				job = w.awaitJob(object, "once", job.UID)
				first := job.UID
				if job.Spec.TTLSecondsAfterFinished != nil {
					t.Error("the Job may go before its end was seen")
				}
				w.end(job, true)
				expect.Gone(t, w.seed, job)
				w.ready(object)
				w.lookedAt(object)
				stop()
				stop = w.startUntil()
				w.lookedAt(object)
				if w.has(&batchv1.Job{}, object.Spec.TargetNamespace, "once") {
					t.Fatal("it runs again")
				}

				w.want(object, "2.0.0")
				job = w.awaitJob(object, "once", first)
				w.end(job, true)
				expect.Gone(t, w.seed, job)
				w.ready(object)
				stop()
			})
		}
	}
}

// TestAJobThatFailsStaysUntilItIsDeleted fails if a failed Job is deleted, so that its error is lost, and runs again;
// and if its manual deletion does not run it again.
func TestAJobThatFailsStaysUntilItIsDeleted(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.driftInterval = time.Second
	w.start()
	w.migrated("failing", kubermaticv1.MethodGoTemplate, migration("once:1", "0"))
	object := w.install("failing", "")
	job := w.awaitJob(object, "once")
	w.end(job, false)
	w.expectReady(object, kubermaticv1.ReasonUnhealthy, "once")
	settings := w.settings(object)
	w.deleteAll(settings)
	expect.Eventually(t, expect.Patience, func() error {
		return w.seed.Get(t.Context(), client.ObjectKeyFromObject(settings), settings.DeepCopy())
	})
	failed := w.awaitJob(object, "once")
	if failed.UID != job.UID || failed.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("the failed Job is %s with TTL %v, it was %s", failed.UID, failed.Spec.TTLSecondsAfterFinished, job.UID)
	}
	w.deleteAll(failed)
	w.end(w.awaitJob(object, "once", job.UID), true)
	w.ready(object)
	expect.Gone(t, w.seed, job)
}
