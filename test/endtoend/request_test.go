package endtoend_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testKilledWhileFollowing kills the seed's manager as soon as the first of the installations is there that a Cluster asks for. It turns
// red when an installation that is asked for is missing in the end, or made twice. TestDiesWhileFollowing of pkg/controllers/addon ends
// the controller at the write that takes the entries off the Cluster.
func testKilledWhileFollowing(t *testing.T, box *sandbox.Sandbox) {
	seed := box.Client(cluster.Seed)
	asking := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
	var names, entries []string
	for number := range 10 {
		names = append(names, fmt.Sprintf("asked-%d", number))
		entries = append(entries, fmt.Sprintf(`{"name":%q,"addonRef":{"name":"asked"},"targetNamespace":"asked"}`, names[number]))
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubermaticv1.AnnotationInitialInstallations, "["+strings.Join(entries, ",")+"]")
	expect.Merge(t, seed, asking, patch)
	expect.Object(t, seed, newInstallation(names[0], "asked"), func(*kubermaticv1.AddonInstallation) error { return nil })
	box.Manager(cluster.Seed).Process().Kill()
	made := map[string]types.UID{}
	var found kubermaticv1.AddonInstallationList
	expect.List(t, seed, &found, client.InNamespace(cluster.Namespace()))
	for _, one := range found.Items {
		made[one.Name] = one.UID
	}
	expect.Object(t, seed, asking, func(object *kkpv1.Cluster) error {
		if text := object.Annotations[kubermaticv1.AnnotationInitialInstallations]; text != "" {
			return fmt.Errorf("the annotation is %q", text)
		}
		return nil
	})
	for _, name := range names {
		installation := newInstallation(name, "asked")
		expect.Read(t, seed, installation)
		if uid, was := made[name]; was && installation.UID != uid {
			t.Errorf("installation %q was made twice", name)
		}
		expect.Delete(t, seed, installation)
	}
	for _, name := range names {
		expect.Gone(t, seed, newInstallation(name, "asked"))
	}
}
