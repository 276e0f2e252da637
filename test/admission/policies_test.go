package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// everybody are the users that rules are tried for; asked is who gets through.
var (
	everybody    = []string{tenant, controller, namespaceController, garbageCollector}
	privileged   = []string{controller, namespaceController, garbageCollector}
	people       = []string{tenant, controller}
	withControl  = []string{controller}
	coreUsers    = []string{tenant, controller, coreAuthor, masterManager, namespaceController, garbageCollector}
	whoControls  = "needs control"
	whoManages   = "needs manage-core"
	noneButIt    = "the manager of the master may"
	anybodysTurn = "anybody may"
)

// request is one request, tried for several users as a dry run.
type request struct {
	why string
	// object is made before by an admin; nil for a creation.
	object client.Object
	do     func(ctx context.Context, as client.Client, object client.Object) error
	users  []string
	// needs is whoControls, whoManages, noneButIt or anybodysTurn.
	needs string
	// says is in the refusal.
	says string
}

func (r request) admits(user string) bool {
	switch isCleaner := user == namespaceController || user == garbageCollector; r.needs {
	case whoControls:
		return isCleaner || user == controller || user == masterManager
	case whoManages:
		return isCleaner || user == coreAuthor
	case noneButIt:
		return isCleaner || user == masterManager
	}
	return true
}

func create(made client.Object) func(context.Context, client.Client, client.Object) error {
	return func(ctx context.Context, as client.Client, _ client.Object) error {
		return as.Create(ctx, made.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func remove(ctx context.Context, as client.Client, object client.Object) error {
	return as.Delete(ctx, object, client.DryRunAll)
}

// patch changes an object by a merge patch; the garbage collector may not update, but patch.
func patch[T client.Object](change func(T)) func(context.Context, client.Client, client.Object) error {
	return func(ctx context.Context, as client.Client, object client.Object) error {
		changed := object.DeepCopyObject().(T)
		change(changed)
		return as.Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
	}
}

type (
	anyCatalogue    = *kubermaticv1.AddonCatalogue
	anyInstallation = *kubermaticv1.AddonInstallation
)

func catalogueRequests() []request {
	merged := func(name string) client.Object { return catalogue(name, place, kubermaticv1.RoleMerged) }
	label := patch(func(c anyCatalogue) { c.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleAvailable} })
	unlabel := patch(func(c anyCatalogue) { c.Labels = nil })
	edit := patch(func(c anyCatalogue) { c.Spec.Priority = 7 })
	annotate := patch(func(c anyCatalogue) { c.Annotations = map[string]string{"example.com/note": "x"} })
	return []request{
		{why: "an authored catalogue is made", do: create(catalogue("a", place, "")), users: people, needs: anybodysTurn},
		{why: "an authored catalogue is changed", object: catalogue("b", place, ""), do: edit, users: people, needs: anybodysTurn},
		{why: "an authored catalogue is deleted", object: catalogue("c", place, ""), do: remove, users: people, needs: anybodysTurn},
		{why: "a generated one is made", do: create(catalogue("d", platform, kubermaticv1.RoleGenerated)), users: people, needs: whoControls, says: "role"},
		{why: "a merged one is made", do: create(merged("e")), users: people, needs: whoControls, says: "role"},
		{why: "an available one is made", do: create(catalogue("f", place, kubermaticv1.RoleAvailable)), users: people, needs: whoControls, says: "role"},
		{why: "a role is given", object: catalogue("g", place, ""), do: label, users: people, needs: whoControls, says: `"cluster-a/g"`},
		{why: "a role is taken", object: merged("h"), do: unlabel, users: people, needs: whoControls, says: "role"},
		{why: "a merged one is changed", object: merged("i"), do: edit, users: people, needs: whoControls, says: "role"},
		{why: "metadata of a merged one is changed", object: merged("j"), do: annotate, users: people, needs: whoControls, says: "role"},
		{why: "a merged one is deleted", object: merged("k"), do: remove, users: everybody, needs: whoControls, says: `"cluster-a/k"`},
		{why: "the cluster itself patches a merged one", object: merged("l"), do: annotate, users: []string{garbageCollector}, needs: anybodysTurn},
		{why: "the status of a merged one is written", object: merged("m"), users: people, needs: anybodysTurn,
			do: func(ctx context.Context, as client.Client, object client.Object) error {
				changed := object.DeepCopyObject().(anyCatalogue)
				changed.Status.Addons = 1
				return as.Status().Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
			}},
	}
}

// coreRequests are about who says what every cluster gets. RBAC lets the namespace controller and the garbage collector delete,
// and the latter patch.
func coreRequests() []request {
	writers := []string{tenant, controller, coreAuthor, masterManager}
	patchers := append([]string{garbageCollector}, writers...)
	core := func(name string) client.Object {
		object := coreCatalogue(name, platform, "")
		object.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: name}
		return object
	}
	inGit := coreCatalogue("core-git", platform, "")
	inGit.Spec.Addons = nil
	inGit.Spec.Git = &kubermaticv1.CatalogueGit{Remote: "https://git.example.com/core.git"}
	generated := func(name string) *kubermaticv1.AddonCatalogue {
		object := coreCatalogue(name, platform, kubermaticv1.RoleGenerated)
		object.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: kubermaticv1.GroupVersion.String(), Kind: "AddonCatalogue", Name: "core-git", UID: "parent", Controller: new(true),
		}}
		return object
	}
	annotate := func(name string) func(context.Context, client.Client, client.Object) error {
		return patch(func(c anyCatalogue) { c.Annotations = map[string]string{name: "x"} })
	}
	says := "manage-core"
	return []request{
		{why: "a Core catalogue is made", do: create(core("c-a")), users: writers, needs: whoManages, says: says},
		{why: "one in git is made", do: create(inGit), users: writers, needs: whoManages, says: says},
		{why: "one is made elsewhere", do: create(coreCatalogue("c-b", place, "")), users: writers, needs: whoManages, says: `"cluster-a/c-b"`},
		{why: "a Core catalogue's versions are changed", object: core("c-c"), users: patchers, needs: whoManages, says: says,
			do: patch(func(c anyCatalogue) { c.Spec.Addons[0].Versions[0].Version = "99.0.0" })},
		{why: "its priority is changed", object: core("c-d"), users: patchers, needs: whoManages, says: says,
			do: patch(func(c anyCatalogue) { c.Spec.Priority = 7 })},
		{why: "its deletion is confirmed", object: coreCatalogue("c-e", platform, ""), users: patchers, needs: whoManages, says: says,
			do: annotate(kubermaticv1.AnnotationConfirmDeletion)},
		{why: "a commit of it is approved", object: core("c-f"), users: patchers, needs: whoManages, says: says,
			do: annotate(kubermaticv1.AnnotationApproveRevision)},
		{why: "a Core catalogue is deleted, and that is confirmed", object: core("c-g"), do: remove, users: coreUsers, needs: whoManages, says: says},
		{why: "a Core catalogue is hidden by a role", object: core("c-h"), users: []string{controller, masterManager}, needs: whoManages, says: says,
			do: patch(func(c anyCatalogue) { c.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged} })},
		{why: "a merged Core one becomes an author's", object: coreCatalogue("c-i", platform, kubermaticv1.RoleMerged),
			do: patch(func(c anyCatalogue) { c.Labels = nil }), users: []string{controller, masterManager}, needs: whoManages, says: says},
		{why: "the status of a Core catalogue is written", object: core("c-j"), users: writers, needs: anybodysTurn,
			do: func(ctx context.Context, as client.Client, object client.Object) error {
				changed := object.DeepCopyObject().(anyCatalogue)
				changed.Status.Addons = 1
				return as.Status().Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
			}},
		{why: "a Core one is generated", do: create(generated("c-k")), users: []string{controller, masterManager}, needs: noneButIt, says: says},
		{why: "a generated Core one is changed", object: generated("c-l"), users: []string{controller, masterManager}, needs: noneButIt, says: says,
			do: patch(func(c anyCatalogue) { c.Spec.Priority = 7 })},
		{why: "a generated Core one is deleted", object: generated("c-m"), do: remove,
			users: []string{controller, masterManager, namespaceController, garbageCollector}, needs: noneButIt, says: says},
		{why: "a generated Core one without an owner is made", do: create(coreCatalogue("c-n", platform, kubermaticv1.RoleGenerated)),
			users: []string{controller, masterManager}, needs: whoManages, says: says},
		{why: "a generated Core one becomes an author's", object: generated("c-o"), users: []string{controller, masterManager}, needs: whoManages, says: says,
			do: patch(func(c anyCatalogue) { c.Labels = nil })},
		{why: "a merged Core one is written", do: create(coreCatalogue("c-p", seedCatalogues, kubermaticv1.RoleMerged)), users: people, needs: whoControls,
			says: "controllers"},
		{why: "a Custom catalogue is made by an author of Core ones", do: create(catalogue("c-q", platform, "")), users: writers, needs: anybodysTurn},
		{why: "a catalogue without a role is made beside the merged ones", do: create(catalogue("c-r", seedCatalogues, "")), users: people,
			needs: whoControls, says: "create it on the master"},
		{why: "one that was there before the policy is deleted", object: catalogue("c-s", seedCatalogues, ""), do: remove, users: people, needs: anybodysTurn},
		{why: "one that was there before the policy gets a role", object: catalogue("c-t", seedCatalogues, ""), users: people, needs: whoControls, says: "role",
			do: patch(func(c anyCatalogue) { c.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleMerged} })},
	}
}

// takeOverRequests are about who lets a Custom catalogue take add-ons over from another one.
func takeOverRequests() []request {
	users := []string{tenant, controller, coreAuthor}
	taking := func(name, addons string) *kubermaticv1.AddonCatalogue {
		object := catalogue(name, platform, "")
		object.Annotations = map[string]string{kubermaticv1.AnnotationTakeOver: addons}
		return object
	}
	inGit := func(name string) *kubermaticv1.AddonCatalogue {
		object := catalogue(name, platform, "")
		object.Spec.Addons = nil
		object.Spec.Git = &kubermaticv1.CatalogueGit{Remote: "https://git.example.com/team.git"}
		return object
	}
	gitTaking := inGit("t-b")
	gitTaking.Annotations = map[string]string{kubermaticv1.AnnotationTakeOver: "web"}
	set := func(addons string) func(context.Context, client.Client, client.Object) error {
		return patch(func(c anyCatalogue) { c.Annotations = map[string]string{kubermaticv1.AnnotationTakeOver: addons} })
	}
	generated := taking("t-i", "web")
	generated.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleGenerated}
	says := "take-over"
	return []request{
		{why: "a catalogue that takes over is made", do: create(taking("t-a", "web")), users: users, needs: whoManages, says: says},
		{why: "one in git that takes over is made", do: create(gitTaking), users: users, needs: whoManages, says: `"kubermatic/t-b"`},
		{why: "a catalogue is to take over", object: catalogue("t-c", platform, ""), do: set("web"), users: users, needs: whoManages, says: says},
		{why: "one in git is to take over", object: inGit("t-d"), do: set("web"), users: users, needs: whoManages, says: says},
		{why: "it is to take over more", object: taking("t-e", "web"), do: set("web,db"), users: users, needs: whoManages, says: says},
		{why: "one that takes over is changed otherwise", object: taking("t-f", "web"), users: people, needs: anybodysTurn,
			do: patch(func(c anyCatalogue) { c.Spec.Priority = 7 })},
		{why: "one that takes over is to take over nothing more", object: taking("t-g", "web"), users: people, needs: anybodysTurn,
			do: patch(func(c anyCatalogue) { c.Annotations = nil })},
		{why: "one that takes over is deleted", object: taking("t-h", "web"), do: remove, users: people, needs: anybodysTurn},
		{why: "a generated one that takes over is made", do: create(generated), users: []string{controller, masterManager}, needs: whoManages, says: says},
	}
}

// free takes the finalizers off.
func free(made *kubermaticv1.AddonInstallation) *kubermaticv1.AddonInstallation {
	made.Finalizers = nil
	return made
}

// many has so many labels and annotations.
func many(name string, labels, annotations int) *kubermaticv1.AddonInstallation {
	made := free(installation(name, place, false))
	made.Labels, made.Annotations = map[string]string{}, map[string]string{}
	for into, count := range map[*map[string]string]int{&made.Labels: labels, &made.Annotations: annotations} {
		for number := range count {
			(*into)[fmt.Sprintf("example.com/%d", number)] = "x"
		}
	}
	return made
}

func installationRequests() []request {
	core := func(name string) client.Object { return installation(name, place, true) }
	change := func(change func(i anyInstallation)) func(context.Context, client.Client, client.Object) error {
		return patch(change)
	}
	raw := &runtime.RawExtension{Raw: []byte(`{"replicas":2}`)}
	refused := func(field string, edit func(i anyInstallation)) request {
		return request{why: field + " of a core installation", object: core("core-" + field), do: change(edit),
			users: people, needs: whoControls, says: fmt.Sprintf("%q is a core add-on", place+"/core-"+field)}
	}
	held := func(name string) *kubermaticv1.AddonInstallation {
		made := installation(name, place, false)
		made.Finalizers = []string{kubermaticv1.FinalizerCleanupInstallation, "example.com/before"}
		made.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "before", UID: "1"}}
		return made
	}
	const hold = "gets a new finalizer or owner reference"
	owned := func(i anyInstallation) {
		i.OwnerReferences = append(i.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "never-was", UID: "2"})
	}
	return []request{
		{why: "an installation with as many labels and annotations as may be is made", do: create(many("many-r", 64, 64)), users: people, needs: anybodysTurn},
		{why: "one with more labels is made", do: create(many("many-s", 65, 0)), users: people, needs: whoControls, says: "65 labels"},
		{why: "one with more annotations is made", do: create(many("many-t", 0, 65)), users: people, needs: whoControls, says: "65 annotations"},
		{why: "one that had more labels is changed", object: many("many-u", 70, 70), users: people, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Labels["example.com/0"], i.Spec.Paused = "y", true })},
		{why: "one that had more labels gets a further one", object: many("many-v", 70, 70), users: people, needs: whoControls, says: "71 labels",
			do: change(func(i anyInstallation) { i.Labels["example.com/more"] = "y" })},
		{why: "one that had more annotations gets a further one", object: many("many-w", 0, 70), users: people, needs: whoControls, says: "71 annotations",
			do: change(func(i anyInstallation) { i.Annotations["example.com/more"] = "y" })},
		{why: "an installation with a finalizer is made", do: create(held("l")), users: people, needs: whoControls, says: hold},
		{why: "an installation gets a finalizer", object: installation("m", place, false), users: people, needs: whoControls, says: hold,
			do: change(func(i anyInstallation) { i.Finalizers = append(i.Finalizers, "example.com/never") })},
		{why: "an installation gets the finalizer of core add-ons", object: held("n"), users: people, needs: whoControls, says: hold,
			do: change(func(i anyInstallation) { i.Finalizers = append(i.Finalizers, kubermaticv1.FinalizerCoreProtection) })},
		{why: "an installation gets an owner", object: installation("o", place, false), users: people, needs: whoControls, says: hold, do: change(owned)},
		{why: "a set's installation gets an owner", object: ofSet("p", nil), users: people, needs: whoControls, says: hold, do: change(owned)},
		{why: "an owner of an installation becomes its controller", object: held("q"), users: people, needs: whoControls, says: hold,
			do: change(func(i anyInstallation) { i.OwnerReferences[0].Controller = new(true) })},
		{why: "an installation with holds is changed", object: held("r"), users: people, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Spec.Paused, i.Finalizers = true, i.Finalizers[:1] })},
		{why: "an installation is deleted in the foreground", object: installation("s", place, false), users: people, needs: anybodysTurn,
			do: func(ctx context.Context, as client.Client, object client.Object) error {
				return as.Delete(ctx, object, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationForeground))
			}},
		{why: "an installation is made", do: create(free(installation("a", place, false))), users: people, needs: anybodysTurn},
		{why: "an installation is changed", object: installation("b", place, false), users: people, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Spec.Paused, i.Finalizers, i.Labels = true, nil, nil })},
		{why: "a core installation is made", do: create(free(installation("c", place, true))), users: people, needs: whoControls, says: "leave it out"},
		{why: "its values are changed", object: core("d"), do: change(func(i anyInstallation) { i.Spec.Values = raw }), users: people, needs: anybodysTurn},
		{why: "its valuesFrom is changed", object: core("e"), users: people, needs: anybodysTurn, do: change(func(i anyInstallation) {
			i.Spec.ValuesFrom = []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "values"}}}
		})},
		{why: "an annotation is set", object: core("f"), users: people, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Annotations = map[string]string{kubermaticv1.AnnotationReconcileAt: "now"} })},
		{why: "another label is set", object: core("g"), users: people, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Labels["team"] = "a" })},
		{why: "it is deleted", object: core("h"), do: remove, users: people, needs: anybodysTurn},
		{why: "the cluster itself deletes it", object: core("i"), do: remove, users: privileged, needs: anybodysTurn},
		{why: "its status is written", object: core("j"), users: people, needs: anybodysTurn,
			do: func(ctx context.Context, as client.Client, object client.Object) error {
				changed := object.DeepCopyObject().(anyInstallation)
				changed.Status.Version = "1.0.0"
				return as.Status().Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
			}},
		{why: "the garbage collector lets go of it", object: core("k"), users: []string{garbageCollector}, needs: anybodysTurn,
			do: change(func(i anyInstallation) { i.Finalizers = nil })},
		refused("version", func(i anyInstallation) { i.Spec.AddonRef.Version = "1.0.0" }),
		refused("create-namespace", func(i anyInstallation) { i.Spec.CreateNamespace = true }),
		refused("paused", func(i anyInstallation) { i.Spec.Paused = true }),
		refused("strategy", func(i anyInstallation) { i.Spec.ReconcileStrategy = kubermaticv1.ReconcileOnce }),
		refused("deletion-policy", func(i anyInstallation) { i.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan }),
		refused("finalizers", func(i anyInstallation) { i.Finalizers = nil }),
		{why: "more finalizers of a core installation", object: core("t"), users: people, needs: whoControls, says: `AddonInstallation "cluster-a/t"`,
			do: change(func(i anyInstallation) { i.Finalizers = append(i.Finalizers, "example.com/more") })},
		refused("managed-by", func(i anyInstallation) { i.Labels[kubermaticv1.LabelManagedBy] = "me" }),
		refused("no-managed-by", func(i anyInstallation) { i.Labels = nil }),
		refused("moved", func(i anyInstallation) {
			i.Annotations = map[string]string{kubermaticv1.AnnotationMoved: "2026-01-01T00:00:00Z"}
		}),
		refused("sick", func(i anyInstallation) { i.Annotations = map[string]string{kubermaticv1.AnnotationSick: "true"} }),
		refused("origin", func(i anyInstallation) {
			i.Annotations = map[string]string{kubermaticv1.AnnotationCoreOrigin: kubermaticv1.OriginList}
		}),
	}
}

// TestWhoMayWrite tries every rule of "Who may write" for everybody in question. (A catalogue's author says type Core and has
// every cluster; an unlabelled catalogue beside the merged ones.)
func TestWhoMayWrite(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, r := range slices.Concat(catalogueRequests(), coreRequests(), takeOverRequests(), installationRequests(), setRequests(), setInstallationRequests()) {
			t.Run(r.why, func(t *testing.T) {
				object := w.keep(t, r.object)
				for _, user := range r.users {
					if user == masterManager && r.needs != noneButIt {
						continue // what it may not write is TestStolenTokensOfManagers'
					}
					check(t, r, user, r.do(t.Context(), w.as(t, user), object))
				}
			})
		}
	})
}

// check compares an answer with what the user may.
func check(t *testing.T, r request, user string, err error) {
	t.Helper()
	switch {
	case r.admits(user) && err != nil:
		t.Errorf("%s is refused: %v", user, err)
	case !r.admits(user) && !isDenied(err):
		t.Errorf("%s is not refused by a policy: %v", user, err)
	case !r.admits(user) && !strings.Contains(err.Error(), r.says):
		t.Errorf("the refusal does not say %q: %v", r.says, err)
	}
}

// keep makes an object as an admin, for as long as the test runs.
func (w *world) keep(t *testing.T, object client.Object) client.Object {
	t.Helper()
	if object == nil {
		return nil
	}
	expect.Create(t, w.admin, object)
	t.Cleanup(func() { w.destroy(t, object) })
	return object
}

// destroy deletes an object without its finalizers.
func (w *world) destroy(t *testing.T, object client.Object) {
	t.Helper()
	bare := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil,
		`{"metadata":{"finalizers":null,"annotations":{%q:%q}}}`, kubermaticv1.AnnotationConfirmDeletion, object.GetName()))
	if err := client.IgnoreNotFound(w.admin.Patch(context.Background(), object, bare)); err != nil {
		t.Error(err)
	}
	if err := client.IgnoreNotFound(w.admin.Delete(context.Background(), object)); err != nil {
		t.Error(err)
	}
}

// TestWhatIsOnItsWayOut holds that a deleted object can be let go by anybody, and not be changed.
func TestWhatIsOnItsWayOut(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		user := w.as(t, tenant)
		merged := catalogue("going", place, kubermaticv1.RoleMerged)
		merged.Finalizers = []string{"example.com/hold"}
		for _, object := range []client.Object{merged, installation("going", place, true)} {
			w.keep(t, object)
			expect.Delete(t, w.admin, object)
			released := []byte(`{"metadata":{"finalizers":null}}`)
			if err := user.Patch(t.Context(), clone(object), client.RawPatch("application/merge-patch+json", released), client.DryRunAll); err != nil {
				t.Errorf("a deleted %T can't be let go: %v", object, err)
			}
		}
		for object, change := range map[client.Object]string{
			merged:                             `{"metadata":{"finalizers":null},"spec":{"priority":3}}`,
			installation("going", place, true): `{"metadata":{"finalizers":null},"spec":{"paused":true}}`,
		} {
			err := user.Patch(t.Context(), clone(object), client.RawPatch("application/merge-patch+json", []byte(change)), client.DryRunAll)
			if !isDenied(err) {
				t.Errorf("a deleted %T can be changed: %v", object, err)
			}
		}
	})
}

// TestAProtectedCoreInstallationIsNotReleased holds that its finalizer stays on while the controllers want it to, also when it was
// deleted while the webhook was down: without it, the cluster would lose the add-on.
func TestAProtectedCoreInstallationIsNotReleased(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		object := installation("protected", place, true)
		object.Finalizers = append(object.Finalizers, kubermaticv1.FinalizerCoreProtection)
		w.keep(t, object)
		expect.Delete(t, w.admin, object)
		released := func(user string) error {
			bare := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
			return w.as(t, user).Patch(t.Context(), clone(object), bare, client.DryRunAll)
		}
		if err := released(tenant); !isDenied(err) {
			t.Errorf("a tenant takes the protection off: %v", err)
		}
		for _, user := range withControl {
			if err := released(user); err != nil {
				t.Errorf("%s can't take the protection off: %v", user, err)
			}
		}
	})
}

func clone(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

// TestTerminatingNamespace holds that nothing is in the way of a namespace that ends.
func TestTerminatingNamespace(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		merged := w.keep(t, catalogue("left", ending, kubermaticv1.RoleAvailable))
		core := w.keep(t, installation("left", ending, true))
		authored := coreCatalogue("left-core", ending, "")
		w.keep(t, authored)
		user := w.as(t, tenant)
		if err := remove(t.Context(), user, merged); !isDenied(err) {
			t.Fatalf("before the namespace ends, its available catalogue can be deleted: %v", err)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ending}}
		expect.Delete(t, w.admin, namespace)
		for what, try := range map[string]func() error{
			"deleting an available catalogue": func() error { return remove(t.Context(), user, merged) },
			"deleting a Core catalogue":       func() error { return remove(t.Context(), user, authored) },
			"letting go of a core installation": func() error {
				return patch(func(i anyInstallation) { i.Finalizers = nil })(t.Context(), user, core)
			},
		} {
			expect.Eventually(t, expect.Patience, func() error {
				if err := try(); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				return nil
			})
		}
	})
}

// TestCoreCatalogueNeedsConfirmation holds that a Core catalogue goes only by its name, whoever asks; the namespace
// controller asks for none.
func TestCoreCatalogueNeedsConfirmation(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			why, confirmed string
			user           string
			admitted       bool
		}{
			{"unconfirmed", "", coreAuthor, false},
			{"by a wrong name", "other", coreAuthor, false},
			{"by its name", "confirm", coreAuthor, true},
			{"by the namespace controller", "", namespaceController, true},
		} {
			t.Run(test.why, func(t *testing.T) {
				object := coreCatalogue("confirm", platform, "")
				if test.confirmed != "" {
					object.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: test.confirmed}
				}
				w.keep(t, object)
				err := remove(t.Context(), w.as(t, test.user), object)
				if test.admitted && err != nil {
					t.Errorf("refused: %v", err)
				}
				if !test.admitted && (!isDenied(err) || !strings.Contains(err.Error(), "confirm-deletion=confirm")) {
					t.Errorf("the answer does not ask for the confirmation: %v", err)
				}
			})
		}
	})
}

// TestCoreAddonIsImmutable holds for everybody, by the CRD.
func TestCoreAddonIsImmutable(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for name, core := range map[string]bool{"turns-core": false, "turns-custom": true} {
			object := w.keep(t, installation(name, place, core))
			for _, user := range withControl {
				err := patch(func(i anyInstallation) { i.Spec.CoreAddon = !core })(t.Context(), w.as(t, user), object)
				if err == nil || !strings.Contains(err.Error(), "coreAddon can't be changed") || !strings.Contains(err.Error(), "custom-core-addons") {
					t.Errorf("%s changes coreAddon from %t, and gets %v", user, core, err)
				}
			}
		}
	})
}
