package installing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
)

// watcher watches installations and Deployments.
type watcher struct {
	seed client.Client
	// installations that changed, as read; nobody changes them.
	installations chan *kubermaticv1.AddonInstallation
}

// watch begins to watch, and to stand in for what runs Deployments without replicas: it writes the status of each once, as
// of its generation. Kubernetes' own controllers write several objects more for each, which would hide what is measured.
func (w *world) watch(b *testing.B) *watcher {
	b.Helper()
	watched, err := cache.New(w.both.Config, cache.Options{
		Scheme: wiring.Scheme(), DefaultNamespaces: map[string]cache.Config{clusterNamespace: {}, targetNamespace: {}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- watched.Start(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
	made := &watcher{seed: w.seed, installations: make(chan *kubermaticv1.AddonInstallation, 10000)}
	made.follow(b, watched, &appsv1.Deployment{}, func(object any) { made.settle(ctx, object.(*appsv1.Deployment)) })
	made.follow(b, watched, &kubermaticv1.AddonInstallation{}, func(object any) {
		made.installations <- object.(*kubermaticv1.AddonInstallation)
	})
	if !watched.WaitForCacheSync(ctx) {
		b.Fatal("the watch does not begin")
	}
	return made
}

func (w *watcher) follow(b *testing.B, watched cache.Cache, kind client.Object, see func(object any)) {
	b.Helper()
	informer, err := watched.GetInformer(b.Context(), kind, cache.BlockUntilSynced(false))
	if err != nil {
		b.Fatal(err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, object any) { see(object) },
	})
	if err != nil {
		b.Fatal(err)
	}
}

// settle says that a Deployment without replicas has what it wants.
func (w *watcher) settle(ctx context.Context, found *appsv1.Deployment) {
	if found.Status.ObservedGeneration == found.Generation {
		return
	}
	settled := found.DeepCopy()
	settled.Status = appsv1.DeploymentStatus{
		ObservedGeneration: found.Generation,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	go func() { _ = w.seed.Status().Update(ctx, settled) }() // one that changed meanwhile is seen again
}

// landing is when the installations of a round came as far as that.
type landing struct{ applied, ready time.Time }

// await waits until all are Ready in their generation, and tells when the last one was Applied and Ready.
func (w *watcher) await(b *testing.B, names []string) landing {
	b.Helper()
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	applied := map[string]bool{}
	late := time.NewTimer(patience)
	defer late.Stop()
	var came landing
	for last := ""; len(open) > 0; {
		select {
		case seen := <-w.installations:
			if !open[seen.Name] {
				continue
			}
			if !applied[seen.Name] && isTrue(seen, kubermaticv1.ConditionApplied) {
				applied[seen.Name], came.applied = true, time.Now()
			}
			if isTrue(seen, kubermaticv1.ConditionReady) {
				delete(open, seen.Name)
				came.ready = time.Now()
			} else {
				last = fmt.Sprintf("%s: %+v", seen.Name, seen.Status.Conditions)
			}
		case <-late.C:
			b.Fatalf("%d installations are not Ready after %s; seen last: %s", len(open), patience, last)
		}
	}
	return came
}

func isTrue(seen *kubermaticv1.AddonInstallation, kind string) bool {
	condition := meta.FindStatusCondition(seen.Status.Conditions, kind)
	return condition != nil && condition.Status == "True" && condition.ObservedGeneration == seen.Generation
}

// countPrefixed counts the objects of a list whose name begins so.
func countPrefixed(list client.ObjectList, prefix string) (count int, err error) {
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if named, isObject := item.(client.Object); isObject && strings.HasPrefix(named.GetName(), prefix) {
			count++
		}
		return nil
	})
	return count, err
}
