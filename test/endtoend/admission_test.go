package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// counted is how long it takes at most until an installation is in the master's figures: they are a minute old at most.
const counted = 3 * time.Minute

// testAdmission: what can never work is refused by the managers' webhooks, and whoever takes out a version that is used
// hears how many installations use it on which seed.
func testAdmission(t *testing.T, box *sandbox.Sandbox) {
	commit(t, box, "admitted", map[string]string{"v1/settings.yaml": settingsManifest("one")})
	version := gitVersion(box, "admitted", "v1")
	version.Template.FormSpec = []kubermaticv1.FormField{{
		DisplayName: "Replicas", InternalName: "replicas", Type: kubermaticv1.FormInteger,
	}}
	second := version
	second.Version = "v1.0"
	master, warnings := listening(t, box, sandbox.Master)
	expectRefusal(t, master.Create(t.Context(), withVersions(catalogueOf("admitted", version), version, second)),
		`AddonCatalogue "kubermatic/admitted": addon "admitted" version "v1.0"`, "is the same version: remove one of them")

	second.Version = "1.1.0"
	authored := withVersions(catalogueOf("admitted", version), version, second)
	expect.Ensure(t, master, authored)
	seed := box.Client(cluster.Seed)
	expect.Object(t, seed, &kubermaticv1.AddonCatalogue{
		ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.CatalogueNamespace, Name: "admitted"},
	}, func(*kubermaticv1.AddonCatalogue) error { return nil })

	installation := newInstallation("admitted", "admitted")
	installation.Spec.AddonRef.Version = "1.0.0"
	wrong := installation.DeepCopy()
	wrong.Spec.Values = rawValues(`{"replicas":"many"}`)
	// The seed's manager sees the merged catalogue a moment after we do.
	expect.Eventually(t, expect.Patience, func() error {
		return refusal(seed.Create(t.Context(), wrong.DeepCopy(), client.DryRunAll), `field "Replicas" (replicas) must be a whole number`)
	})
	expect.Ensure(t, seed, installation)
	ready(t, seed, installation)

	book := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: kubermaticv1.ConfigMapUsage}}
	expect.Eventually(t, counted, func() error {
		if err := master.Get(t.Context(), client.ObjectKeyFromObject(book), book); err != nil {
			return err
		}
		usage, err := catalogue.DecodeUsage(cluster.Seed, book.Data[cluster.Seed])
		if err == nil && usage.Installations[catalogue.UsedVersion{Addon: "admitted", Version: "1.0.0"}] != 1 {
			err = fmt.Errorf("the installation is not counted yet: %s", book.Data[cluster.Seed])
		}
		return err
	})
	setVersions(t, master, authored, second)
	if want := fmt.Sprintf("seed %q: 1 installation on it uses the removed versions (1 of admitted 1.0.0)", cluster.Seed); !warnings.contain(want) {
		t.Errorf("no warning says %q: %q", want, warnings.all())
	}
	testPoliciesOfSandbox(t, box)
}

// testPoliciesOfSandbox: a user without verb control makes no core installation.
func testPoliciesOfSandbox(t *testing.T, box *sandbox.Sandbox) {
	const user = "tenant"
	rights := rbacv1.PolicyRule{APIGroups: []string{kubermaticv1.GroupVersion.Group}, Resources: []string{"addoninstallations"}, Verbs: []string{"create"}}
	seed := box.Client(cluster.Seed)
	expect.Ensure(t, seed, given.UserRights(user, rights)...)
	config := rest.CopyConfig(box.Fleet.Cluster(cluster.Seed).Config)
	config.Impersonate.UserName = user
	tenant, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	expect.NoError(t, err)
	forged := newInstallation("forged", "admitted")
	expect.Eventually(t, expect.Patience, func() error { return tenant.Create(t.Context(), forged.DeepCopy(), client.DryRunAll) })
	forged.Spec.CoreAddon = true
	if err := tenant.Create(t.Context(), forged, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
		t.Errorf("a user makes a core installation: %v", err)
	}
}

func rawValues(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func withVersions(object *kubermaticv1.AddonCatalogue, versions ...kubermaticv1.AddonVersion) *kubermaticv1.AddonCatalogue {
	object.Spec.Addons[0].Versions = versions
	return object
}

var errAdmitted = errors.New("it was admitted")

// refusal says why an answer is not a webhook's refusal with all the words.
func refusal(answer error, words ...string) error {
	if answer == nil {
		return errAdmitted
	}
	return expectWords(answer.Error(), append(words, "admission webhook"))
}

func expectRefusal(t *testing.T, answer error, words ...string) {
	t.Helper()
	if err := refusal(answer, words...); err != nil {
		t.Error(err)
	}
}

// heard are the warnings that a client was given.
type heard struct {
	mutex sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (h *heard) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.texts = append(h.texts, text)
}

func (h *heard) all() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.texts)
}

func (h *heard) contain(words string) bool {
	return slices.ContainsFunc(h.all(), func(text string) bool { return strings.Contains(text, words) })
}

// listening is a client that keeps the warnings it is given.
func listening(t *testing.T, box *sandbox.Sandbox, name string) (client.Client, *heard) {
	t.Helper()
	warnings := &heard{}
	config := rest.CopyConfig(box.Fleet.Cluster(name).Config)
	config.WarningHandlerWithContext = warnings
	made, err := client.New(config, client.Options{Scheme: sandbox.Scheme()})
	expect.NoError(t, err)
	return made, warnings
}
