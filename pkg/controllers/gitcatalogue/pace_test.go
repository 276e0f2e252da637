package gitcatalogue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// Red when a repository whose commits change everything has the manager write megabytes to the master with each look, or when such a
// commit does not come after a time.
func TestACommitThatChangesMuchWaitsForTheOneBefore(t *testing.T) {
	w := newWorld(t)
	versions := func(minor int) map[string]string {
		files := map[string]string{}
		for i := range 64 {
			var pairs []string
			for j := range 100 {
				pairs = append(pairs, fmt.Sprintf("addon-%d", i), fmt.Sprintf("1.%d.%d", minor, j))
			}
			files[fmt.Sprintf("%d.yaml", i)] = file(pairs...)
		}
		return files
	}
	first := w.commit(versions(0))
	w.start("", "")
	object := w.catalogue("platform")
	expect.Create(w.t, w.client, object)
	w.expectFetched(object, "True", v1.ReasonFetched)

	second := w.commit(versions(1))
	w.look(object)
	told := w.expectFetched(object, "False", v1.ReasonDistributing)
	if !strings.Contains(told, "commit "+second+" waits until ") || !strings.Contains(told, "of commit "+first+" stay") {
		t.Error(told)
	}
	w.asking.Step(5 * time.Minute)
	w.look(object)
	w.expectFetched(object, "True", v1.ReasonFetched)
	expect.Get(w.t, w.client, client.ObjectKeyFromObject(object), object)
	if object.Status.Revision != second {
		t.Errorf("it is at commit %s", object.Status.Revision)
	}
}
