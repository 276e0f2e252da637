package endtoend_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/audit"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

const (
	// led begins the names of what these tests make.
	led = "led"
	// ledObjects are so many that a leader can be killed while it writes them.
	ledObjects = 1000
	// takeover is enough for the end of two leases, the start of two managers and the rest of the objects, on a busy machine.
	takeover = 4 * time.Minute
	// ledCatalogues are made one half before and one half after the master's leader is killed.
	ledCatalogues = 20
)

// testLeadersKilled: of two replicas of each manager, the one that leads is killed with kill -9 in the middle of its work, and the other, or
// its own next process, ends it: all objects of an installation are in the user cluster, and all catalogues on the seed, each made once by
// the audit logs, and changed by nothing that came after. It turns red when the next leader makes or changes again what is there.
func testLeadersKilled(t *testing.T, box *sandbox.Sandbox) {
	target := sandbox.UserClusters()[3]
	seed, user := box.Client(target.Seed), box.Client(target.Name)
	leading := []string{sandbox.Master, target.Seed}
	for _, cluster := range leading {
		standby, err := box.Standby(t.Context(), cluster)
		expect.NoError(t, err)
		t.Cleanup(standby.Stop)
	}
	var manifests strings.Builder
	for i := range ledObjects {
		fmt.Fprintf(&manifests, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\n---\n", led, i)
	}
	commit(t, box, led, map[string]string{"all.yaml": manifests.String()})
	expect.Ensure(t, box.Client(sandbox.Master), catalogueOf(led, gitVersion(box, led, "")))
	before, err := box.Holders(t.Context(), leading...)
	expect.NoError(t, err)
	installation := newInstallation(led, led)
	installation.Namespace = target.Namespace()
	expect.Ensure(t, seed, installation)
	makeCatalogues(t, box, 0, ledCatalogues/2)

	expect.Eventually(t, expect.Patience, func() error { return atLeastOne(len(maps(t, user))) })
	box.Manager(target.Seed).Process().Kill()
	written := maps(t, user)
	if len(written) == ledObjects {
		t.Errorf("all %d objects were there before the leader was killed", ledObjects)
	}
	expect.Eventually(t, expect.Patience, func() error { return atLeastOne(len(catalogues(t, seed))) })
	box.Manager(sandbox.Master).Process().Kill()
	makeCatalogues(t, box, ledCatalogues/2, ledCatalogues)

	expect.Eventually(t, takeover, func() error {
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
			return err
		}
		return expect.Condition(installation, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
	expect.Eventually(t, expect.Patience, func() error {
		if have := len(catalogues(t, seed)); have != ledCatalogues {
			return fmt.Errorf("%d of %d catalogues are on the seed", have, ledCatalogues)
		}
		return nil
	})
	after, err := box.Holders(t.Context(), leading...)
	expect.NoError(t, err)
	for cluster, holder := range after {
		if holder == before[cluster] {
			t.Errorf("%s is led by %s, as before: no leader was killed", cluster, holder)
		}
	}
	there := maps(t, user)
	if len(there) != ledObjects {
		t.Errorf("%d objects are there, want %d", len(there), ledObjects)
	}
	for name, version := range written {
		if there[name] != version {
			t.Errorf("%q was changed after the leader was killed: %q, before %q", name, there[name], version)
		}
	}
	expectOnce(t, "configmaps", events(t, box, target.Name))
	expectOnce(t, "addoncatalogues", events(t, box, target.Seed))
	for _, of := range accounts(t, box) {
		refused, _, _ := audit.Replay(of.events, "system:serviceaccount:"+sandbox.Namespace+":"+of.name, nil)
		for _, event := range refused {
			t.Errorf("it was refused a call: %s", event)
		}
	}
	dropInstallation(t, seed, installation)
}

// makeCatalogues makes catalogues of one add-on each, from one number up to another.
func makeCatalogues(t *testing.T, box *sandbox.Sandbox, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		expect.Ensure(t, box.Client(sandbox.Master), catalogueOf(fmt.Sprintf("%s-%d", led, i), gitVersion(box, led, "")))
	}
}

func atLeastOne(count int) error {
	if count == 0 {
		return errors.New("there is none yet")
	}
	return nil
}

func maps(t *testing.T, user client.Client) map[string]string {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	return versionsOf(t, user, list, led)
}

func catalogues(t *testing.T, seed client.Client) map[string]string {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kubermaticv1.GroupVersion.WithKind("AddonCatalogueList"))
	return versionsOf(t, seed, list, sandbox.CatalogueNamespace)
}

// versionsOf are the objects of these tests in a namespace, each with its resourceVersion.
func versionsOf(t *testing.T, c client.Client, list *metav1.PartialObjectMetadataList, namespace string) map[string]string {
	t.Helper()
	expect.List(t, c, list, client.InNamespace(namespace))
	found := map[string]string{}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, led+"-") {
			found[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
	}
	return found
}

// expectOnce holds when no object of the tests was made twice, by an audit log. What a leader wrote that was killed before it had its UID on
// record is applied once more by the next one, which changes nothing. A call of which the killed one did not hear the end may be told with
// another code, so who counts what was made counts what is there.
func expectOnce(t *testing.T, resource string, calls []audit.Event) {
	t.Helper()
	writes := map[string]int{}
	for _, call := range calls {
		of, isWrite := call.ObjectRef, slices.Contains([]string{"create", "update", "patch", "delete"}, call.Verb)
		if !isWrite || of == nil || of.Resource != resource || of.Subresource != "" || !strings.HasPrefix(of.Name, led+"-") ||
			of.Namespace != led && of.Namespace != sandbox.CatalogueNamespace ||
			call.ResponseStatus.Code != http.StatusCreated || strings.Contains(call.RequestURI, "dryRun") {
			continue
		}
		writes[of.Name]++
	}
	if len(writes) == 0 {
		t.Errorf("no %s were made", resource)
	}
	for name, count := range writes {
		if count != 1 {
			t.Errorf("%s %q was made %d times", resource, name, count)
		}
	}
}
