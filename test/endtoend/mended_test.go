package endtoend_test

import (
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// testMended: the master's manager mends what it finds otherwise than it wrote it, on its own cluster and on a seed. It turns red when it
// has no right to.
func testMended(t *testing.T, box *sandbox.Sandbox) {
	t.Run("a kept spec that was brought back", func(t *testing.T) { testRevisionBroughtBack(t, box) })
	t.Run("an add-on that is reserved for Core", func(t *testing.T) { testReserved(t, box) })
	t.Run("a seed that stores more", func(t *testing.T) { testStoresMore(t, box) })
	t.Run("a key and a mark that were damaged", func(t *testing.T) { testDamaged(t, box) })
}

// testRevisionBroughtBack: a catalogue gets the spec that it had before, whose ControllerRevision a backup brought back.
func testRevisionBroughtBack(t *testing.T, box *sandbox.Sandbox) {
	master := box.Client(sandbox.Master)
	first := gitVersion(box, "moving", "v1")
	second := gitVersion(box, "moving", "v2")
	second.Version = "1.1.0"
	authored := catalogueOf("again", first)
	expect.Ensure(t, master, authored)
	// kept waits until one spec is kept, and no other than before.
	kept := func(number int64) *appsv1.ControllerRevision {
		t.Helper()
		var found appsv1.ControllerRevision
		expect.Eventually(t, expect.Patience, func() error {
			var list appsv1.ControllerRevisionList
			if err := master.List(t.Context(), &list, client.InNamespace(sandbox.Namespace)); err != nil {
				return err
			}
			count := 0
			for i := range list.Items {
				if metav1.IsControlledBy(&list.Items[i], authored) {
					found, count = list.Items[i], count+1
				}
			}
			if count != 1 || found.Revision != number {
				return fmt.Errorf("%d specs are kept, one with number %d", count, found.Revision)
			}
			return nil
		})
		return &found
	}
	previous := kept(1)
	setVersions(t, master, authored, second)
	kept(2)
	previous.ResourceVersion, previous.UID = "", ""
	expect.Ensure(t, master, previous)
	setVersions(t, master, authored, first)
	if again := kept(3); again.Name != previous.Name {
		t.Errorf("%s is kept, want %s", again.Name, previous.Name)
	}
	expect.Delete(t, master, authored)
}

// testReserved: a Core catalogue takes the name of an add-on that everybody is offered.
func testReserved(t *testing.T, box *sandbox.Sandbox) {
	master, seed := box.Client(sandbox.Master), box.Client(cluster.Seed)
	offered := catalogueOf("reserved", gitVersion(box, "moving", "v1"))
	core := catalogueOf("reserved", gitVersion(box, "moving", "v2"))
	core.Name, core.Spec.Type = "reserving", kubermaticv1.CatalogueCore
	core.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: core.Name}
	for _, authored := range []*kubermaticv1.AddonCatalogue{offered, core} {
		expect.Ensure(t, master, authored)
		expect.Object(t, seed, merged("reserved"), func(found *kubermaticv1.AddonCatalogue) error {
			if want := authored.Spec.Type; found.Spec.Type != want && want != "" {
				return fmt.Errorf("its type is %s", found.Spec.Type)
			}
			return nil
		})
	}
	for _, authored := range []*kubermaticv1.AddonCatalogue{offered, core} {
		expect.Delete(t, master, authored)
	}
	expect.Gone(t, seed, merged("reserved"))
}

// merged is a merged catalogue, to be read on a seed.
func merged(addon string) *kubermaticv1.AddonCatalogue {
	return &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.CatalogueNamespace, Name: addon}}
}

// testStoresMore: the copy of a set has the mark of what is stored by a seed whose CRD has a default that the master does not know.
func testStoresMore(t *testing.T, box *sandbox.Sandbox) {
	master, seed := box.Client(sandbox.Master), box.Client(cluster.Seed)
	const byDefault = 7
	changePriority(t, seed, func(field *apiextensionsv1.JSONSchemaProps) {
		field.Default = &apiextensionsv1.JSON{Raw: []byte(strconv.Itoa(byDefault))}
	})
	set := boardSet()
	set.Name = "more"
	expect.Eventually(t, expect.Patience, func() error { // the API server follows its CRDs by a watch
		stored := set.DeepCopy()
		err := seed.Create(t.Context(), stored, client.DryRunAll)
		if err == nil && stored.Spec.Priority != byDefault {
			err = fmt.Errorf("it stores priority %d", stored.Spec.Priority)
		}
		return err
	})
	expect.Ensure(t, master, set)
	copied := set.DeepCopy()
	copied.Namespace = sandbox.CatalogueNamespace
	expect.Object(t, seed, copied, func(found *kubermaticv1.AddonSet) error {
		if found.Spec.Priority != byDefault {
			return fmt.Errorf("it has priority %d", found.Spec.Priority)
		}
		return nil
	})
	expect.Object(t, master, set, func(found *kubermaticv1.AddonSet) error { // the seed believes the copy
		return expect.Condition(found, kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonPaused)
	})
	dropSet(t, master, set)
	expect.Gone(t, seed, copied)
	changePriority(t, seed, func(field *apiextensionsv1.JSONSchemaProps) { field.Default = nil })
}

// changePriority changes a field of AddonSets in the CRD of a seed.
func changePriority(t *testing.T, seed client.Client, change func(field *apiextensionsv1.JSONSchemaProps)) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "addonsets.kubermatic.k8c.io"}}
	expect.Read(t, seed, crd)
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	field := fields["priority"]
	change(&field)
	fields["priority"] = field
	expect.Update(t, seed, crd)
}

// testDamaged: a seed's key and the digest of a merged catalogue are damaged by hand. The seed is looked at when its kubeconfig changes.
func testDamaged(t *testing.T, box *sandbox.Sandbox) {
	master, seed := box.Client(sandbox.Master), box.Client(cluster.Seed)
	damage := func(object client.Object, patch string, arguments ...any) {
		t.Helper()
		expect.Merge(t, seed, object, fmt.Appendf(nil, patch, arguments...))
	}
	web := merged("web")
	damage(web, `{"metadata":{"annotations":{%q:"sha256:other"}}}`, kubermaticv1.AnnotationDigest)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: kubermaticv1.SecretCatalogueKey}}
	damage(key, `{"data":{%q:"c2hvcnQ="}}`, kubermaticv1.MarkKeyField)

	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.Namespace, Name: "kubeconfig-" + cluster.Seed}}
	expect.Read(t, master, kubeconfig)
	kubeconfig.Data["kubeconfig"] = append(kubeconfig.Data["kubeconfig"], "# changed\n"...)
	expect.Update(t, master, kubeconfig)
	expect.Object(t, seed, key, func(found *corev1.Secret) error {
		if length := len(found.Data[kubermaticv1.MarkKeyField]); length != catalogue.MarkKeySize {
			return fmt.Errorf("the key has %d bytes", length)
		}
		return nil
	})
	expect.Object(t, seed, web, func(found *kubermaticv1.AddonCatalogue) error {
		if reported := found.Annotations[kubermaticv1.AnnotationGeneration]; reported != fmt.Sprint(found.Generation) {
			return fmt.Errorf("its generation is %d, and told is %s", found.Generation, reported)
		}
		if found.Annotations[kubermaticv1.AnnotationDigest] == "sha256:other" {
			return errPrevious
		}
		return nil
	})
}
