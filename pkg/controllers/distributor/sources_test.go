package distributor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/conditions"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/test/expect"
)

// says has an installation of the world's add-on say why it is not Ready.
func (w *world) says(name, reason string) {
	w.t.Helper()
	object := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.platform + "-" + name}}
	seed := w.client("seed")
	expect.Read(w.t, seed, object)
	before := object.DeepCopy()
	conditions.False(&object.Status.Conditions, object.Generation, v1.ConditionReady, reason, "such text never leaves the seed")
	expect.PatchStatus(w.t, seed, object, client.MergeFrom(before))
}

// expectSources waits until condition SourcesReady has the reason and a message with the words,
// beside Ready True, and the row of the seed says something or nothing.
func (w *world) expectSources(object *v1.AddonCatalogue, reason, row string, words ...string) {
	w.t.Helper()
	state := "False"
	if reason == v1.ReasonSourcesUnchecked { // no seed of this world checks sources
		state = "Unknown"
	}
	expect.Object(w.t, w.master, object, func(object *v1.AddonCatalogue) error {
		if err := expect.Condition(object, v1.ConditionSourcesReady, state, reason, words...); err != nil {
			return err
		}
		if reported := meta.FindStatusCondition(object.Status.Conditions, v1.ConditionSourcesReady).Message; strings.Contains(reported, "such text") {
			return fmt.Errorf("it repeats what the seed says: %s", reported)
		}
		if len(object.Status.Seeds) != 1 || object.Status.Seeds[0].Sources != row {
			return fmt.Errorf("the rows are %+v, want sources %q", object.Status.Seeds, row)
		}
		return expect.Condition(object, v1.ConditionReady, "True", v1.ReasonDistributed)
	})
}

// Red without sourcesReady; the first half where secretProblems are not looked at, the second where
// add does not look at the column, or the worker does not report what it counted.
func TestSourcesThatCannotBeHadAreReported(t *testing.T) {
	w := newWorld(t)
	w.seed("north", kubeconfigOf("seed"))
	object := w.catalogueOf("web", map[string][]string{w.platform: {"1.0.0"}})
	object.Spec.Addons[0].Versions[0].Source.Git.SecretRef = &v1.LocalReference{Name: "my-reg"}
	expect.Create(w.t, w.master, object)
	w.start(func(options *distributor.Options) { options.CountEvery = 50 * time.Millisecond })
	w.expectSources(object, v1.ReasonSecretNotCopied, "", `Secret "my-reg"`, "it does not exist in the platform namespace")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.platform, Name: "my-reg", Annotations: map[string]string{v1.AnnotationUsedBy: "AddonCatalogue/web"},
		},
		Data: map[string][]byte{"ca.crt": []byte("authority")},
	}
	expect.Create(w.t, w.master, secret)
	w.expectSources(object, v1.ReasonSecretNotCopied, "", `Secret "my-reg"`, "it has no label")
	expect.Change(w.t, w.master, secret, func(secret *corev1.Secret) { secret.Labels = map[string]string{v1.LabelUse: v1.UseSource} })
	w.expectSources(object, v1.ReasonSourcesUnchecked, "", "no seed checks sources now")

	w.installation("one", "")
	w.says("one", v1.ReasonFetchFailed)
	w.expectSources(object, v1.ReasonFetchFailed, fmt.Sprintf("installations can't get the content of %q: FetchFailed", w.platform), `seed "north"`)
	w.installation("two", "")
	w.says("two", v1.ReasonArtifactNotFound)
	w.expectSources(object, v1.ReasonArtifactNotFound,
		fmt.Sprintf("installations can't get the content of %q: ArtifactNotFound", w.platform), `seed "north"`)
	w.says("one", v1.ReasonUnhealthy)
	w.says("two", v1.ReasonUnhealthy)
	w.expectSources(object, v1.ReasonSourcesUnchecked, "", "no seed checks sources now")
}
