package upgrade

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
)

// spareName is the API server of a seed that comes back from a backup.
const spareName = "spare"

// kept are the kinds that docs/guides/backup.md names, in the order in which it puts them back.
var kept = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Namespace"), kkpv1.GroupVersion.WithKind("Cluster"),
	corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	kubermaticv1.GroupVersion.WithKind("AddonInstallation"),
}

// A seed that is lost is put back into a new API server as Velero does it: what is selected by namespace comes back with its name, labels and
// annotations, without status, owners and finalizers, under another UID. Red when the manager that starts over it writes to the user
// cluster, renders, or does not know any more what an installation brought.
func TestASeedFromABackupAppliesNothing(t *testing.T) {
	long.Skip(t, "upgrade", "a seed is lost and put back")
	t.Parallel()
	_, now := both(t, older)
	p := newPlatform(t, fleet.ClusterOptions{Name: spareName, Audit: []string{account(seedChart), account(distributor)}})
	p.begin(now, few)
	p.rested(seedName, few, marks{})
	p.stop(seedChart, seedName)
	backup := p.backup()
	had := p.versions()
	since := p.mark(userName)

	p.restore(now, backup)
	p.start(now, seedChart, spareName)
	spare := p.client(spareName)
	p.rested(spareName, few, since)
	expectNone(t, now, "the user cluster", p.writesTo(userName, since))
	p.expectNothingRendered(spareName)
	if diff := cmp.Diff(had, p.versions()); diff != "" {
		t.Errorf("objects of the user cluster were written (-before +after):\n%s", diff)
	}
	p.confirmSeed(now, spare)
	p.allReady(spare, few)
	expectNone(t, now, "the user cluster", p.writesTo(userName, since))

	gone := installation("template", "template-000")
	expect.Delete(t, spare, gone)
	expect.Gone(t, spare, gone)
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: gone.Name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: target, Name: gone.Name}},
	} {
		if err := p.user.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left of what was installed: %v", object, object.GetName(), err)
		}
	}
}

// backup what is selected: Clusters, and of the platform's and the cluster's namespace all of the kinds.
func (p *platform) backup() (objects []*unstructured.Unstructured) {
	p.t.Helper()
	for _, kind := range kept {
		var found unstructured.UnstructuredList
		found.SetGroupVersionKind(kind)
		expect.List(p.t, p.seed, &found)
		for i := range found.Items {
			object := &found.Items[i]
			of := object.GetNamespace()
			if kind.Kind == "Namespace" {
				of = object.GetName()
			}
			if of == "" || of == platformNamespace || of == clusterNamespace {
				objects = append(objects, object)
			}
		}
	}
	return objects
}

// restore has the kinds, and then the objects of a backup, on the spare API server, and installs the chart there.
func (p *platform) restore(of release, backup []*unstructured.Unstructured) {
	p.t.Helper()
	p.standaloneKinds(of, spareName)
	expect.NoError(p.t, fleet.InstallCRDs(p.t.Context(), p.fleet.Cluster(spareName).Config, of.crds(seedChart)))
	spare := p.client(spareName)
	for _, object := range backup {
		bare := &unstructured.Unstructured{Object: object.DeepCopy().Object}
		delete(bare.Object, "status")
		bare.Object["metadata"] = map[string]any{}
		bare.SetNamespace(object.GetNamespace())
		bare.SetName(object.GetName())
		bare.SetLabels(object.GetLabels())
		bare.SetAnnotations(object.GetAnnotations())
		p.ensure(spare, bare)
	}
	p.playJobs(spareName)
	p.install(of, seedChart, spareName)
}

// confirmSeed leads the master to the seed that came back, which is another API server than before, and says so.
func (p *platform) confirmSeed(of release, spare client.Client) {
	p.t.Helper()
	p.apply(spare, of.rights)
	var system corev1.Namespace
	expect.Get(p.t, spare, client.ObjectKey{Name: metav1.NamespaceSystem}, &system)
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: "kubeconfig-seed"}}
	p.edit(p.master, kubeconfig, func() { kubeconfig.Data["kubeconfig"] = p.kubeconfig(spareName, distributor) })
	about := &kkpv1.Seed{ObjectMeta: metav1.ObjectMeta{Namespace: platformNamespace, Name: seedName}}
	p.edit(p.master, about, func() {
		metav1.SetMetaDataAnnotation(&about.ObjectMeta, kubermaticv1.AnnotationConfirmSeed, string(system.UID))
	})
	merged := &kubermaticv1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: catalogueNamespace, Name: "template"}}
	expect.Object(p.t, spare, merged, func(*kubermaticv1.AddonCatalogue) error { return nil })
	expect.Object(p.t, spare, installation("template", "template-001"), func(found *kubermaticv1.AddonInstallation) error {
		if err := expect.Condition(found, kubermaticv1.ConditionCompatible, "True", kubermaticv1.ReasonCompatible); err != nil {
			return fmt.Errorf("after the catalogue came: %w", err)
		}
		return expect.Condition(found, kubermaticv1.ConditionReady, "True", kubermaticv1.ReasonReady)
	})
}
