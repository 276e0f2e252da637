package installing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// watcher watches installations.
type watcher struct {
	// installations that changed, as read; nobody changes them.
	installations chan *kubermaticv1.AddonInstallation
}

// watch begins to watch installations, and to stand in for what runs Deployments.
func (w *world) watch(b *testing.B) *watcher {
	b.Helper()
	made := &watcher{installations: make(chan *kubermaticv1.AddonInstallation, 10000)}
	SettleDeployments(b, w.both.Config, targetNamespace)
	follow(b, w.both.Config, clusterNamespace, &kubermaticv1.AddonInstallation{}, func(_ context.Context, object any) {
		made.installations <- object.(*kubermaticv1.AddonInstallation)
	})
	return made
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
