package addoninstallation_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/hostile"
	"github.com/trellis-addons/trellis/test/long"
	kit "github.com/trellis-addons/trellis/test/world"
)

// TestLiesAboutCopiesOfThePullSecret: a user cluster answers anything for a copy whose original changes. No answer and
// no password is repeated, the record stays small, and the same copy is correct once the answers are. It fails if the
// UID of any answer counts: mode changing-uid leaves ObjectExists.
func TestLiesAboutCopiesOfThePullSecret(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{
		"huge-secrets", "no-secrets", "losing-secrets", "quoting-secrets", "lying-uid", "changing-uid", "lying-fields", "forgets-writes",
	} {
		t.Run(mode, func(t *testing.T) { lieAboutCopies(t, mode) }) // a cluster that lies repeatedly is called at growing intervals
	}
}

func lieAboutCopies(t *testing.T, mode string) {
	t.Parallel()
	w, original := pullWorld(t)
	w.driftInterval = time.Hour // nothing else causes a reconciliation
	server := w.behindHostile()
	w.start()
	first := w.install("first", "")
	w.ready(first)
	target := first.Spec.TargetNamespace
	before := w.expectCopy(target, "first-word")
	server.Set(hostile.ModeNamed(mode))
	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("second-word") })
	expect.Eventually(t, expect.Patience, func() error {
		if server.Count("lies") == 0 {
			return errors.New("no lie yet")
		}
		return nil
	})
	w.lookAgain(first)
	record := expect.Object(t, w.seed, w.pullRecord(), func(*corev1.ConfigMap) error { return nil })
	if size := len(record.Data["copies.json"]); size > 5_000 {
		t.Errorf("the record has %d bytes", size)
	}
	server.Set(hostile.Truth)
	w.updateOriginal(original, func() { original.Data[corev1.DockerConfigJsonKey] = pullLogin("third-word") })
	expect.Eventually(t, expect.Patience, func() error {
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(first), first); err != nil {
			return err
		}
		if text := fmt.Sprint(first.Status); strings.Contains(text, "-word") || len(text) > 20_000 {
			t.Errorf("the status is %.300s", text)
		}
		found := w.copyIn(target)
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		if string(found.Data[corev1.DockerConfigJsonKey]) != string(pullLogin("third-word")) {
			return fmt.Errorf("the copy is another: %v", first.Status.Conditions)
		}
		if found.UID != before.UID {
			t.Error("the copy was made anew")
		}
		return expect.Condition(first, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}

// TestACopyThatIsTakenAwayInALoop: a tenant deletes the copy whenever it exists, and has a hundred namespaces that
// request one. It fails if there are more than two writes for each comparison, or if a tenant's label counts.
func TestACopyThatIsTakenAwayInALoop(t *testing.T) {
	t.Parallel()
	w, _ := pullWorld(t)
	w.clock = kit.RunningClock(t)
	heard := w.overhear()
	var tenants []string
	for at := range 100 {
		tenants = append(tenants, fmt.Sprintf("tenant-%s-%d", w.id, at))
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenants[at], Labels: map[string]string{kubermaticv1.LabelPullSecret: "true"}}})
	}
	w.start()
	first := w.install("first", "")
	w.ready(first)
	heard.sinceThen()
	target, comparisons, writes := first.Spec.TargetNamespace, 0, 0
	takeAway := func() error {
		if err := client.IgnoreNotFound(w.seed.Delete(t.Context(), w.copyIn(target))); err != nil {
			return err
		}
		for _, call := range heard.sinceThen() {
			switch {
			case strings.HasPrefix(call, http.MethodGet+" /api/v1/secrets"):
				comparisons++
			case !strings.HasPrefix(call, http.MethodGet):
				writes++
			}
		}
		if comparisons < 10 {
			return fmt.Errorf("%d comparisons", comparisons)
		}
		return nil
	}
	w.hurry(4, func() { expect.Eventually(t, expect.Patience, takeAway) })
	t.Logf("%d comparisons, %d writes to the user cluster", comparisons, writes)
	if writes < comparisons/2 || writes > 2*(comparisons+1) {
		t.Errorf("%d writes to the user cluster for %d comparisons", writes, comparisons)
	}
	record := expect.Object(t, w.seed, w.pullRecord(), func(*corev1.ConfigMap) error { return nil })
	if size := len(record.Data["copies.json"]); size > 2_000 {
		t.Errorf("the record has %d bytes", size)
	}
	for _, namespace := range tenants {
		if err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(w.copyIn(namespace)), w.copyIn(namespace)); !apierrors.IsNotFound(err) {
			t.Errorf("a copy in a tenant's namespace: %v", err)
		}
	}
	w.expectCopy(target, "first-word")
	w.ready(first)
}

// TestAnAddonThatLabelsHundredsOfNamespaces: an author of add-ons may request copies in that many namespaces. It fails
// if there are more.
func TestAnAddonThatLabelsHundredsOfNamespaces(t *testing.T) {
	long.Skip(t, "installations", "Kubernetes takes half a second of a processor for each namespace that goes")
	t.Parallel()
	w, _ := pullWorld(t)
	var manifests strings.Builder
	for at := range pullsecret.MaxNamespaces + 20 {
		fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: wide-%s-%03d, labels: {%s: 'true'}}\n",
			w.id, at, kubermaticv1.LabelPullSecret)
	}
	repository := fmt.Sprintf("pull-%s-wide", w.id)
	w.commit(repository, manifests.String())
	w.publishFrom("wide", kubermaticv1.CatalogueCustom, repository)
	w.start()
	wide := w.install("wide", "")
	w.ready(wide)
	w.expectCopies(func(known pullsecret.Copies) error {
		if len(known.All) != pullsecret.MaxNamespaces {
			return fmt.Errorf("%d copies", len(known.All))
		}
		return nil
	})
	w.delete(wide)
	expect.Eventually(t, 3*expect.Patience, func() error { // 120 namespaces are deleted one after the other
		err := w.seed.Get(t.Context(), client.ObjectKeyFromObject(wide), wide)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %w", err)
	})
	expect.Gone(t, w.seed, w.pullRecord())
}
