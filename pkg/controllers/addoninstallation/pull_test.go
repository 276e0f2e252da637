package addoninstallation_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

// The platform's pull Secret, and its copies in user clusters.

// pulling has a ReplicaSet of an image that is rewritten.
const pulling = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: NAME}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: a, image: registry.example.com/app:1}]}
`

// pullLogin is a pull Secret's content with a password, whose text shows where it was copied.
func pullLogin(password string) []byte {
	return fmt.Appendf(nil, `{"auths":{"mirror.example.com":{"username":"robot","password":%q}}}`, password)
}

// pullWorld has the original, and add-ons first and second whose pods need it.
func pullWorld(t *testing.T) (w *world, original *corev1.Secret) {
	t.Helper()
	w = newWorld(t)
	return w, w.havePull()
}

// havePull creates the original, and two add-ons whose pods need it.
func (w *world) havePull() (original *corev1.Secret) {
	w.t.Helper()
	w.pull, w.driftInterval, w.pullAway = "mirror", time.Second, time.Second
	original = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.catalogue, Name: w.pull, Labels: map[string]string{kubermaticv1.LabelUse: kubermaticv1.UsePull},
		},
		Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: pullLogin("first-word")},
	}
	w.create(original)
	for _, name := range []string{"first", "second"} {
		repository := fmt.Sprintf("pull-%s-%s", w.id, name)
		w.commit(repository, strings.ReplaceAll(pulling, "NAME", name))
		w.publishFrom(name, kubermaticv1.CatalogueCustom, repository)
	}
	return original
}

// copyIn is the Secret of that name in a namespace of the user cluster.
func (w *world) copyIn(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.pull}}
}

func (w *world) expectCopy(namespace, password string) *corev1.Secret {
	w.t.Helper()
	return expect.Object(w.t, w.seed, w.copyIn(namespace), func(found *corev1.Secret) error {
		if !bytes.Equal(found.Data[corev1.DockerConfigJsonKey], pullLogin(password)) {
			return fmt.Errorf("the copy in %q is another", namespace)
		}
		return nil
	})
}

// updateOriginal changes the original.
func (w *world) updateOriginal(original *corev1.Secret, change func()) {
	w.t.Helper()
	change()
	expect.Update(w.t, w.seed, original)
}

// TestThePullSecretFollowsWhereContentIsPinned fails if an installation that is maintained from its record, since the
// catalogue has other content than its digest names, does not get a rotated pull Secret: images could not be pulled
// once the old one expires.
func TestThePullSecretFollowsWhereContentIsPinned(t *testing.T) {
	t.Parallel()
	w, original := pullWorld(t)
	w.start()
	version := w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("held"), map[string]string{"set.yaml": strings.ReplaceAll(pulling, "NAME", "held")})
	w.offer("held", kubermaticv1.CatalogueCustom, version)
	object := w.installPinned("held", "1.0.0", contentOf(t, version))
	w.ready(object)
	w.expectCopy(object.Spec.TargetNamespace, "first-word")
	version.Values = raw(`{"version":"another"}`)
	w.offer("held", kubermaticv1.CatalogueCustom, version)
	expect.HasCondition(t, w.seed, object, expect.Is(compatible, "True", kubermaticv1.ReasonPinned))
	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("second-word") })
	w.expectCopy(object.Spec.TargetNamespace, "second-word")
	w.ready(object)
}

// TestThePullSecretFollowsWhereAWaveIsWaitedFor fails if an installation that waits for its set's wave, since the
// platform's Secret has other content than the set granted, does not get a pull Secret that was rotated meanwhile.
func TestThePullSecretFollowsWhereAWaveIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	original := w.havePull()
	w.markWith([]byte(grantKey))
	version := w.content("1.0.0", kubermaticv1.MethodGoTemplate, w.unique("granted"), map[string]string{
		"set.yaml": strings.ReplaceAll(pulling, "NAME", "granted") + "---\n" + strings.ReplaceAll(settingsTemplate, ".Values.", ".Variables."),
	})
	w.offer("granted", kubermaticv1.CatalogueCustom, version)
	w.mark("granted", []byte(grantKey), nothing)
	w.create(w.platformSecret(platformText(canary)))
	w.start()
	object := w.ofSet("member")
	w.grant(object, canary)
	w.expectGranted(object, kubermaticv1.ReasonReady, "", canary)
	w.expectCopy(object.Spec.TargetNamespace, "first-word")
	w.putPlatform(platformText(canary + "-2"))
	w.expectGranted(object, kubermaticv1.ReasonPinned, `Secret "shared" changed`, canary)
	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("second-word") })
	w.expectCopy(object.Spec.TargetNamespace, "second-word")
	w.expectGranted(object, kubermaticv1.ReasonPinned, `Secret "shared" changed`, canary)
	w.grant(object, canary+"-2")
	w.expectGranted(object, kubermaticv1.ReasonReady, "", canary+"-2")
	w.expectCopy(object.Spec.TargetNamespace, "second-word")
}

// AG24: Copies are written before the pods, also in labelled namespaces, follow the original, are repaired, stay while
// another installation needs them, and are deleted with the last one. It fails if any of this is not so.
func TestThePullSecretFollows(t *testing.T) {
	t.Parallel()
	w, original := pullWorld(t)
	labelled := w.unique("labelled")
	repository := fmt.Sprintf("pull-%s-labels", w.id)
	w.commit(repository, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s: 'true'}}\n",
		labelled, kubermaticv1.LabelPullSecret))
	w.publishFrom("labels", kubermaticv1.CatalogueCustom, repository)
	heard := w.overhear()
	w.start()
	first := w.install("first", "")
	w.ready(first)
	calls := heard.sinceThen()
	written := func(part string) int {
		return slices.IndexFunc(calls, func(call string) bool {
			return strings.HasPrefix(call, "PATCH ") && strings.Contains(call, part)
		})
	}
	if secret, pods := written("/secrets/mirror"), written("/replicasets/"); secret < 0 || pods < secret {
		t.Errorf("the Secret comes as call %d, its pods as call %d", secret, pods)
	}
	target := first.Spec.TargetNamespace
	w.expectCopy(target, "first-word")

	second := given.Installation(w.namespace, "second", "second", target, given.NewNamespace)
	w.create(second)
	labels := w.install("labels", "")
	w.ready(second)
	w.ready(labels)
	w.expectCopy(labelled, "first-word")

	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("second-word") })
	w.expectCopy(target, "second-word")
	w.expectCopy(labelled, "second-word")

	w.delete(w.copyIn(target))
	kept := w.expectCopy(target, "second-word")
	kept.Data[corev1.DockerConfigJsonKey] = pullLogin("of a tenant")
	expect.Update(t, w.seed, kept, client.FieldOwner("tenant"))
	w.expectCopy(target, "second-word")

	w.delete(first)
	expect.Gone(t, w.seed, first)
	w.expectCopy(target, "second-word")
	w.updateOriginal(original, func() { original.Labels = nil })
	expect.Gone(t, w.seed, w.copyIn(target))
	expect.Gone(t, w.seed, w.copyIn(labelled))
	w.updateOriginal(original, func() {
		original.Labels = map[string]string{kubermaticv1.LabelUse: kubermaticv1.UsePull}
	})
	w.expectCopy(target, "second-word")
	w.delete(second)
	w.delete(labels)
	expect.Gone(t, w.seed, second)
	expect.Gone(t, w.seed, labels)
	expect.Gone(t, w.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: target}}) // the copy did not keep it
	expect.Gone(t, w.seed, w.pullRecord())
}

// pullRecord is the ConfigMap with the list of copies.
func (w *world) pullRecord() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.catalogue, Name: "addon-pull-" + w.cluster.Name}}
}

// AG24: A Secret with our label, our field manager and the mark of another copy is left unchanged, also in the place of
// a deleted copy, and the installation names it. It fails if marks of the user cluster count.
func TestTheCopyOfAPullSecretIsKnownByItsUID(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	w.start()
	first := w.install("first", "")
	w.ready(first)
	ours := w.expectCopy(first.Spec.TargetNamespace, "first-word")

	second := w.unique("second")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second}})
	owner := ownership.Owner{ClusterUID: w.cluster.UID}
	forge := func(namespace string) types.UID {
		t.Helper()
		forged := &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: w.pull, Labels: ours.Labels, Annotations: ours.Annotations,
			},
			Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: pullLogin("of a tenant")},
		}
		expect.NoError(t, w.seed.Create(t.Context(), forged, client.FieldOwner(owner.FieldManager())))
		return forged.UID
	}
	uid := forge(second)
	object := w.install("second", "")
	w.expectReady(object, kubermaticv1.ReasonObjectExists, `Secret "mirror"`, fmt.Sprintf("namespace %q", second))
	for _, text := range []string{"of a tenant", "first-word"} {
		if strings.Contains(fmt.Sprint(object.Status), text) {
			t.Errorf("the status has %q", text)
		}
	}
	w.delete(object)
	expect.Gone(t, w.seed, object)
	if found := w.expectCopy(second, "of a tenant"); found.UID != uid {
		t.Error("the tenant's Secret was made anew")
	}

	w.delete(ours)
	expect.Eventually(t, expect.Patience, func() error { // before or after it was restored
		err := client.IgnoreNotFound(w.seed.Delete(t.Context(), w.copyIn(first.Spec.TargetNamespace)))
		if err != nil {
			return err
		}
		forged := w.copyIn(first.Spec.TargetNamespace)
		forged.Labels, forged.Annotations, forged.Type = ours.Labels, ours.Annotations, corev1.SecretTypeDockerConfigJson
		forged.Data = map[string][]byte{corev1.DockerConfigJsonKey: pullLogin("of a tenant")}
		return w.seed.Create(t.Context(), forged, client.FieldOwner(owner.FieldManager()))
	})
	w.expectReady(first, kubermaticv1.ReasonObjectExists, `Secret "mirror"`, fmt.Sprintf("namespace %q", first.Spec.TargetNamespace))
	w.expectCopy(first.Spec.TargetNamespace, "of a tenant")
}

// AG24: A tenant's label on a namespace causes no copy there. It fails if a restart writes a copy or its record, or if
// a namespace counts because of data in the user cluster.
func TestARestartCopiesNothingAgain(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	heard := w.overhear()
	stop := w.startUntil()
	first := w.install("first", "")
	w.ready(first)
	before := w.expectCopy(first.Spec.TargetNamespace, "first-word")
	record := expect.Object(t, w.seed, w.pullRecord(), func(*corev1.ConfigMap) error { return nil })
	if strings.Contains(record.Data["copies.json"], "robot") {
		t.Error("the record has the content")
	}
	stop()
	other := w.unique("tenants")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other, Labels: map[string]string{kubermaticv1.LabelPullSecret: "true"}}})
	heard.sinceThen()
	w.start()
	var seen []string
	expect.Eventually(t, expect.Patience, func() error { // it compared the existing objects
		seen = append(seen, heard.sinceThen()...)
		if !slices.ContainsFunc(seen, func(call string) bool { return strings.HasPrefix(call, "GET /api/v1/secrets") }) {
			return fmt.Errorf("no comparison among %q", seen)
		}
		return nil
	})
	w.annotate(first, kubermaticv1.AnnotationReconcileAt, "now")
	w.ready(first)
	for _, call := range append(seen, heard.sinceThen()...) {
		if !strings.HasPrefix(call, "GET ") {
			t.Errorf("the restart makes call %q", call)
		}
	}
	after := w.expectCopy(first.Spec.TargetNamespace, "first-word")
	again := expect.Object(t, w.seed, w.pullRecord(), func(*corev1.ConfigMap) error { return nil })
	if after.ResourceVersion != before.ResourceVersion || again.ResourceVersion != record.ResourceVersion {
		t.Error("the copy or its record was written again")
	}
	if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(w.copyIn(other)), w.copyIn(other)); !apierrors.IsNotFound(err) {
		t.Errorf("a copy in a tenant's namespace: %v", err)
	}
}

// TestHooksMakeTheNamespaceThatTheyPullIn: a namespace that hooks create does not delay the hook that creates it, and
// then has the copy. It fails if a copy that only hooks need delays the apply.
func TestHooksMakeTheNamespaceThatTheyPullIn(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t)
	w.havePull()
	namespaces := map[string]string{}
	templates := map[string]string{"settings": settings}
	for _, event := range []string{"pre-install", "post-install", "pre-delete"} {
		namespaces[event] = w.unique(event)
		marks := fmt.Sprintf("annotations: {helm.sh/hook: %s, helm.sh/hook-weight: '%%d'}", event)
		templates[event+"-space"] = fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, "+marks+"}\n", namespaces[event], 1)
		templates[event+"-pods"] = strings.ReplaceAll(strings.ReplaceAll(pulling, "{name: NAME}",
			fmt.Sprintf("{name: NAME, namespace: %s, "+marks+"}", namespaces[event], 2)), "NAME", "hooked")
	}
	w.publishChart("hooked", "hooked", nil, templates)
	w.start()
	object := w.install("hooked", "")
	w.ready(object)
	w.annotate(object, kubermaticv1.AnnotationReconcileAt, "now")
	w.expectCopy(namespaces["pre-install"], "first-word")
	w.expectCopy(namespaces["post-install"], "first-word")
	w.delete(object)
	expect.Gone(t, w.seed, object)
	if err := w.seed.Get(t.Context(), client.ObjectKey{Name: namespaces["pre-delete"]}, &corev1.Namespace{}); err != nil {
		t.Errorf("the hooks before the removal: %v", err)
	}
}
