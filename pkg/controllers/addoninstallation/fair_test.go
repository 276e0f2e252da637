package addoninstallation_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/hostile"
)

// slowClusterSize is more installations than there are workers.
const slowClusterSize = 12

// RS13, AC54: A cluster that answers byte by byte delays no other cluster. It fails if one cluster's share of the
// workers is not limited: the other cluster's installation is never reconciled. It also fails if a reconciliation has
// no time limit: the slow cluster is never reported.
func TestAClusterThatDripsItsListsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queueLimits = fairqueue.Limits{Workers: 10, SlowAfter: 3 * time.Second, Deadline: 4 * time.Second}
	slow := w.addNeighbour()
	server := hostile.New(t, fleet.Shared().Cluster("both"))
	w.leadTo(slow, server)
	w.publish("dripped", kubermaticv1.CatalogueCustom, offered{version: "1.0.0"})
	w.start()
	var dripped []*kubermaticv1.AddonInstallation
	for i := range slowClusterSize {
		dripped = append(dripped, w.installIn(slow, fmt.Sprintf("dripped-%d", i), "dripped"))
	}
	for _, object := range dripped {
		w.expectReady(object, kubermaticv1.ReasonReady)
	}

	server.Set(hostile.ModeNamed("slow-pages"))
	for _, object := range dripped {
		w.edit(object, func(object *kubermaticv1.AddonInstallation) {
			object.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"}
		})
	}
	expect.Eventually(t, expect.Patience, func() error {
		if server.Count("pages") == 0 {
			return errors.New("no list was asked for")
		}
		return nil
	})
	w.expectReady(w.installIn(w.namespace, "prompt", "dripped"), kubermaticv1.ReasonReady)
	expect.Eventually(t, expect.Patience, func() error { return w.tooSlow(dripped) })

	server.Set(hostile.Truth)
	for _, object := range dripped {
		w.expectReady(object, kubermaticv1.ReasonReady)
	}
}

// leadTo makes a Cluster's kubeconfig name another API server, before the start of the controller.
func (w *world) leadTo(namespace string, server *hostile.Server) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "internal-admin-kubeconfig"}}
	expect.Read(w.t, w.seed, secret)
	secret.Data["kubeconfig"] = server.Kubeconfig()
	expect.Update(w.t, w.seed, secret)
}

// installIn creates an installation in a Cluster's namespace, with a target namespace of the same name.
func (w *world) installIn(namespace, name, addon string) *kubermaticv1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(namespace, name, addon, w.unique(name), given.In("1.0.0"), given.NewNamespace)
	w.create(object)
	return object
}

// tooSlow is nil once some of the installations report that their cluster did not answer in time, and the time of the
// next attempt.
func (w *world) tooSlow(objects []*kubermaticv1.AddonInstallation) error {
	var last error
	for _, object := range objects {
		if err := w.seed.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		last = expect.Condition(object, kubermaticv1.ConditionReady, "Unknown", kubermaticv1.ReasonClusterUnreachable)
		ready := meta.FindStatusCondition(object.Status.Conditions, kubermaticv1.ConditionReady)
		if last == nil && strings.Contains(ready.Message, "did not answer all calls ") && object.Status.NextAttempt != nil {
			return nil
		}
	}
	return fmt.Errorf("nobody is told that the cluster is slow; the last one says: %v", last)
}
