package admission

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

type anySet = *kubermaticv1.AddonSet

func set(name, namespace, role string) *kubermaticv1.AddonSet {
	made := given.Set(namespace, name, "web")
	if role != "" {
		made.Labels = map[string]string{kubermaticv1.LabelRole: role}
	}
	return made
}

func copyOf(name, namespace string) *kubermaticv1.AddonSet {
	return set(name, namespace, kubermaticv1.RoleCopy)
}

// ofSet is an installation that a set made, and that wants to be changed.
func ofSet(name string, change func(anyInstallation)) *kubermaticv1.AddonInstallation {
	made := installation(name, place, false)
	made.Labels = map[string]string{kubermaticv1.LabelSet: "monitoring", kubermaticv1.LabelManagedBy: kubermaticv1.ManagedBySets}
	made.Annotations = map[string]string{
		kubermaticv1.AnnotationDigest: "0a", kubermaticv1.AnnotationMoved: "2026-01-01T00:00:00Z", kubermaticv1.AnnotationSick: "true",
	}
	if change != nil {
		change(made)
	}
	return made
}

// setRequests are about sets and their copies. RBAC decides about sets.
func setRequests() []request {
	edit := patch(func(s anySet) { s.Spec.Priority = 7 })
	status := func(ctx context.Context, as client.Client, object client.Object) error {
		changed := object.DeepCopyObject().(anySet)
		changed.Status.Revision = "0a"
		return as.Status().Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
	}
	held := func(name string) client.Object {
		made := copyOf(name, seedCatalogues)
		made.Finalizers = []string{kubermaticv1.FinalizerCleanupSet}
		return made
	}
	const says = "is a copy, or would become one"
	core := func(name string) *kubermaticv1.AddonSet {
		made := set(name, platform, "")
		made.Spec.Type, made.Spec.Addons = kubermaticv1.AddonSetCore, nil
		return made
	}
	confirmed := core("s-t")
	confirmed.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: confirmed.Name}
	coreCopy := core("s-u")
	coreCopy.Namespace, coreCopy.Labels = seedCatalogues, map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleCopy}
	authors, needed := []string{tenant, controller, coreAuthor}, "ask for verb manage-core on addonsets"
	return []request{
		{why: "a Core set is made", do: create(core("s-o")), users: authors, needs: whoManages, says: needed},
		{why: "a Core set is changed", object: core("s-p"), do: edit, users: authors, needs: whoManages, says: `AddonSet "kubermatic/s-p" is of type Core`},
		{why: "a Core set's removal is confirmed", object: core("s-q"), users: authors, needs: whoManages, says: needed,
			do: patch(func(s anySet) { s.Annotations = map[string]string{kubermaticv1.AnnotationConfirmDeletion: "s-q"} })},
		{why: "a Core set is approved", object: core("s-r"), users: authors, needs: whoManages, says: needed,
			do: patch(func(s anySet) { s.Annotations = map[string]string{kubermaticv1.AnnotationApprove: "0a/prod"} })},
		{why: "the manager holds a Core set", object: core("s-s"), users: []string{masterManager}, needs: noneButIt,
			do: patch(func(s anySet) { s.Finalizers = []string{kubermaticv1.FinalizerCleanupSet} })},
		{why: "a Core set is deleted", object: confirmed, do: remove, users: coreUsers, needs: whoManages, says: needed},
		{why: "a copy of a Core set is made", do: create(coreCopy), users: people, needs: whoControls, says: says},
		{why: "the status of a Core set is written", object: core("s-v"), do: status, users: people, needs: anybodysTurn},
		{why: "a set is made", do: create(set("s-a", platform, "")), users: people, needs: anybodysTurn},
		{why: "a set is changed", object: set("s-b", platform, ""), do: edit, users: people, needs: anybodysTurn},
		{why: "a set that nobody carried out is deleted", object: set("s-c", platform, ""), do: remove, users: people, needs: anybodysTurn},
		{why: "the status of a set is written", object: set("s-d", platform, ""), do: status, users: people, needs: anybodysTurn},
		{why: "a set becomes a copy", object: set("s-e", platform, ""), users: people, needs: whoControls, says: says,
			do: patch(func(s anySet) { s.Labels = map[string]string{kubermaticv1.LabelRole: kubermaticv1.RoleCopy} })},
		{why: "a copy is made", do: create(copyOf("s-f", seedCatalogues)), users: people, needs: whoControls, says: `"addon-catalogue/s-f"`},
		{why: "a copy is made elsewhere", do: create(copyOf("s-g", place)), users: people, needs: whoControls, says: says},
		{why: "a set without a role is made beside copies", do: create(set("s-h", seedCatalogues, "")), users: people, needs: whoControls, says: says},
		{why: "a copy is changed by hand", object: copyOf("s-i", seedCatalogues), do: edit, users: people, needs: whoControls, says: says},
		{why: "the gate of a copy is opened by hand", object: copyOf("s-j", seedCatalogues), users: people, needs: whoControls, says: says,
			do: patch(func(s anySet) { s.Annotations = map[string]string{kubermaticv1.AnnotationGate: "0a/9"} })},
		{why: "a copy is deleted by hand", object: copyOf("s-k", seedCatalogues), do: remove, users: everybody, needs: whoControls, says: says},
		{why: "the finalizer of a copy is taken off", object: held("s-l"), users: people, needs: whoControls, says: says,
			do: patch(func(s anySet) { s.Finalizers = nil })},
		{why: "a copy becomes a set", object: copyOf("s-m", seedCatalogues), users: people, needs: whoControls, says: says,
			do: patch(func(s anySet) { s.Labels = nil })},
		{why: "the status of a copy is written by hand", object: copyOf("s-n", seedCatalogues), do: status, users: people, needs: whoControls, says: says},
	}
}

// setInstallationRequests are about installations that sets made, or that say so.
func setInstallationRequests() []request {
	on := func(key string) func(anyInstallation) {
		return func(i anyInstallation) { i.Annotations[key] = "other" }
	}
	refused := func(field string, edit func(i anyInstallation)) request {
		return request{why: field + " of a set's installation", object: ofSet("of-set-"+field, nil), do: patch(edit),
			users: people, needs: whoControls, says: fmt.Sprintf("%q belongs to an AddonSet", place+"/of-set-"+field)}
	}
	allowed := func(field string, edit func(i anyInstallation)) request {
		return request{why: field + " of a set's installation", object: ofSet("of-set-"+field, nil), do: patch(edit), users: people, needs: anybodysTurn}
	}
	return []request{
		{why: "an installation with a forged label is made", do: create(free(ofSet("f-a", nil))), users: people, needs: whoControls, says: "leave it out"},
		{why: "an installation gets the label of a set", object: installation("f-b", place, false), users: people, needs: whoControls,
			says: "belongs to an AddonSet, or would", do: patch(func(i anyInstallation) { i.Labels[kubermaticv1.LabelSet] = "monitoring" })},
		{why: "a set's installation is deleted", object: ofSet("f-c", nil), do: remove, users: everybody, needs: whoControls, says: "set deletes it"},
		{why: "the garbage collector lets go of a set's installation", object: ofSet("f-d", nil), users: []string{garbageCollector}, needs: anybodysTurn,
			do: patch(func(i anyInstallation) { i.Finalizers = nil })},
		{why: "the status of a set's installation is written", object: ofSet("f-e", nil), users: people, needs: anybodysTurn,
			do: func(ctx context.Context, as client.Client, object client.Object) error {
				changed := object.DeepCopyObject().(anyInstallation)
				changed.Status.Version = "1.0.0"
				return as.Status().Patch(ctx, changed, client.MergeFrom(object), client.DryRunAll)
			}},
		allowed("values", func(i anyInstallation) { i.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)} }),
		allowed("values-from", func(i anyInstallation) {
			i.Spec.ValuesFrom = []kubermaticv1.ValuesSource{{SecretRef: &kubermaticv1.KeyReference{Name: "values"}}}
		}),
		allowed("pause", func(i anyInstallation) { i.Spec.Paused = true }),
		allowed("reconcile-at", on(kubermaticv1.AnnotationReconcileAt)),
		allowed("prune-approval", on(kubermaticv1.AnnotationPruneApproved)),
		allowed("other-label", func(i anyInstallation) { i.Labels["team"] = "a" }),
		refused("label", func(i anyInstallation) { i.Labels[kubermaticv1.LabelSet] = "other" }),
		refused("no-label", func(i anyInstallation) { delete(i.Labels, kubermaticv1.LabelSet) }),
		refused("managed-by", func(i anyInstallation) { delete(i.Labels, kubermaticv1.LabelManagedBy) }),
		refused("version", func(i anyInstallation) { i.Spec.AddonRef.Version = "1.0.0" }),
		refused("digest-of-content", func(i anyInstallation) {
			i.Spec.AddonRef.Version, i.Spec.AddonRef.Digest = "1.0.0", "sha256:"+strings.Repeat("0a", 32)
		}),
		refused("create-namespace", func(i anyInstallation) { i.Spec.CreateNamespace = true }),
		refused("strategy", func(i anyInstallation) { i.Spec.ReconcileStrategy = kubermaticv1.ReconcileOnce }),
		refused("deletion-policy", func(i anyInstallation) { i.Spec.DeletionPolicy = kubermaticv1.DeletionOrphan }),
		refused("depends-on", func(i anyInstallation) { i.Spec.DependsOn = []kubermaticv1.InstallationName{"other"} }),
		refused("digest", on(kubermaticv1.AnnotationDigest)),
		refused("no-digest", func(i anyInstallation) { delete(i.Annotations, kubermaticv1.AnnotationDigest) }),
		refused("moved", on(kubermaticv1.AnnotationMoved)),
		refused("sick", func(i anyInstallation) { delete(i.Annotations, kubermaticv1.AnnotationSick) }),
		refused("platform-values", on(kubermaticv1.AnnotationPlatformValues)),
		refused("adopt", on(kubermaticv1.AnnotationAdopt)),
		refused("adopt-managers", on(kubermaticv1.AnnotationAdoptManagers)),
		refused("allow-downgrade", on(kubermaticv1.AnnotationAllowDowngrade)),
		refused("allow-prune", on(kubermaticv1.AnnotationAllowPrune)),
	}
}

// TestASetThatWasCarriedOutNeedsConfirmation holds that such a set goes only by its name, whoever asks; the namespace controller asks
// for none. Red without policy "sets".
func TestASetThatWasCarriedOutNeedsConfirmation(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			why, confirmed string
			user           string
			admitted       bool
		}{
			{"unconfirmed", "", tenant, false},
			{"unconfirmed, with control", "", controller, false},
			{"by a wrong name", "other", tenant, false},
			{"by its name", "confirm", tenant, true},
			{"by the namespace controller", "", namespaceController, true},
		} {
			t.Run(test.why, func(t *testing.T) {
				object := set("confirm", platform, "")
				object.Finalizers = []string{kubermaticv1.FinalizerCleanupSet}
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

// TestACopyOnItsWayOutIsHeld holds that what a set made is not left behind: whoever takes the finalizer off has control. Red where
// the policy lets go of objects that are being deleted.
func TestACopyOnItsWayOutIsHeld(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		object := copyOf("held", seedCatalogues)
		object.Finalizers = []string{kubermaticv1.FinalizerCleanupSet}
		w.keep(t, object)
		expect.Delete(t, w.admin, object)
		bare := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		if err := w.as(t, tenant).Patch(t.Context(), clone(object), bare, client.DryRunAll); !isDenied(err) {
			t.Errorf("a tenant takes the finalizer off: %v", err)
		}
		if err := w.as(t, controller).Patch(t.Context(), clone(object), bare, client.DryRunAll); err != nil {
			t.Errorf("a controller can't take the finalizer off: %v", err)
		}
	})
}

// warnings keeps what the API server warns of.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	taken := strings.Join(w.texts, "\n")
	w.texts = nil
	return taken
}

// TestALabelOfAClusterUnderOurPrefixIsReported holds that users learn that facts stand above it, and that what writes Clusters gets on. Red
// without policy "cluster-labels".
func TestALabelOfAClusterUnderOurPrefixIsReported(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		var heard warnings
		config := rest.CopyConfig(w.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: tenant, Groups: []string{"system:authenticated"}}
		config.WarningHandler = &heard
		user, err := client.New(config, client.Options{Scheme: w.scheme})
		expect.NoError(t, err)
		made := &kkpv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "told", Labels: map[string]string{"ring": "0"}}}
		w.keep(t, made)
		send := func(label string) string {
			changed := made.DeepCopy()
			changed.Labels[label] = "north"
			if err := user.Patch(t.Context(), changed, client.MergeFrom(made), client.DryRunAll); err != nil {
				t.Fatalf("label %q is refused: %v", label, err)
			}
			return heard.take()
		}
		expect.Eventually(t, expect.Patience, func() error {
			if said := send(kubermaticv1.FactSeed); !strings.Contains(said, "Choose another prefix") {
				return fmt.Errorf("nobody is told: %q", said)
			}
			return nil
		})
		if said := send("seed"); said != "" {
			t.Errorf("another label is warned of: %s", said)
		}
	})
}
