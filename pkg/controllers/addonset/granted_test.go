package addonset_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/standins"
)

// refusals counts, by namespace, writes of installations that the API server refused.
type refusals struct {
	mutex  sync.Mutex
	counts map[string]int
}

func (r *refusals) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
		if err == nil && request.Method == http.MethodPatch && len(path) > 5 && path[5] == "addoninstallations" && answer.StatusCode >= 400 {
			r.mutex.Lock()
			r.counts[path[4]]++
			r.mutex.Unlock()
		}
		return answer, err
	})
}

func (r *refusals) of(name string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.counts[standins.NamespaceOf(name)]
}

// TestWhatWasGrantedInAnotherOrderIsNotWritten: all clusters move at once, and their namespaces refuse the writes.
// Then the set gets a canary group, and only the canary's namespace still refuses. The test fails when the others are
// written with their previous grants, while only the canary's group is open.
func TestWhatWasGrantedInAnotherOrderIsNotWritten(t *testing.T) {
	w := newWorld(t, 3, 1)
	w.offers("web", "1.0.0")
	groups := w.set("tools").Spec.Rollout.Groups
	var later []client.Object
	for i, name := range w.names {
		if policy := w.refusing(standins.NamespaceOf(name)); i > 0 {
			later = append(later, policy...)
		}
	}
	w.write(w.set("tools", atOnce))
	refused := &refusals{counts: map[string]int{}}
	w.start(refused.over)
	expect.Eventually(t, expect.Patience, func() error {
		for _, name := range w.names {
			if refused.of(name) == 0 {
				return fmt.Errorf("%s was not refused yet", name)
			}
		}
		return nil
	})
	of := w.write(w.set("tools", atOnce, func(of *v1.AddonSet) {
		of.Spec.Rollout.Groups = groups
		of.Spec.Rollout.ProgressDeadline = &metav1.Duration{Duration: 20 * time.Second}
	}))
	expect.Object(t, w.seed, copyOf(of), func(found *v1.AddonSet) error {
		if len(found.Status.Groups) != 2 || found.Status.Groups[0].State != v1.GroupOpen {
			return fmt.Errorf("the groups are %+v", found.Status.Groups)
		}
		return nil
	})
	for _, policy := range later {
		expect.Delete(t, w.seed, policy)
	}
	w.steady(func() error {
		if at := w.at("1.0.0"); len(at) != 0 {
			return fmt.Errorf("%q have it before the canary", at)
		}
		return nil
	})
}
