package endtoend_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/sandbox"
)

var errPrevious = errors.New("it is as before")

// testFollowed: the manager of the master changes and removes what it generated from git and what it wrote to a seed, and tells people who
// write into the wrong namespace. It turns red when it has no right to.
func testFollowed(t *testing.T, box *sandbox.Sandbox) {
	t.Run("git", func(t *testing.T) { testGenerated(t, box) })
	t.Run("a Secret of a source", func(t *testing.T) { testSourceSecret(t, box) })
	t.Run("a catalogue without its owner", func(t *testing.T) { testOwnedAgain(t, box, cluster) })
	t.Run("the wrong namespace", func(t *testing.T) { testWrongNamespace(t, box) })
}

func testGenerated(t *testing.T, box *sandbox.Sandbox) {
	master := box.Client(sandbox.Master)
	addon := func(name, said string) string {
		return fmt.Sprintf("- {name: %s, description: %s, versions: [{version: 1.0.0, template: {method: go-template}, source: {git: {remote: %s/moving.git}}}]}\n",
			name, said, box.Sources.GitURL)
	}
	commit(t, box, "followed", map[string]string{"a.yaml": addon("followed-a", "one")})
	parent := given.InGit(sandbox.Namespace, "followed", box.Sources.GitURL+"/followed.git", sandbox.CASecret)
	parent.Spec.Git.Interval = &metav1.Duration{Duration: 10 * time.Second}
	expect.Ensure(t, master, parent)
	generated := func() map[string]*kubermaticv1.AddonCatalogue {
		list, found := kubermaticv1.AddonCatalogueList{}, map[string]*kubermaticv1.AddonCatalogue{}
		expect.List(t, master, &list, client.MatchingLabels{kubermaticv1.LabelRole: kubermaticv1.RoleGenerated})
		for i := range list.Items {
			found[string(list.Items[i].Spec.Addons[0].Name)] = &list.Items[i]
		}
		return found
	}
	expect.Eventually(t, expect.Patience, func() error {
		if generated()["followed-a"] == nil {
			return errPrevious
		}
		return nil
	})
	testMarkTakenOff(t, master, generated()["followed-a"])
	taken := catalogueOf("another", gitVersion(box, "moving", "v1"))
	taken.Name = generatedName(parent, "followed-b")
	expect.Ensure(t, master, taken)
	commit(t, box, "followed", map[string]string{"a.yaml": addon("followed-a", "one"), "b.yaml": addon("followed-b", "one")})
	expect.HasCondition(t, master, parent.DeepCopy(), expect.Is(kubermaticv1.ConditionFetched, "False", kubermaticv1.ReasonGeneratedNameTaken))
	expect.Delete(t, master, taken)
	expect.Eventually(t, expect.Patience, func() error {
		if generated()["followed-b"] == nil {
			return errPrevious
		}
		return nil
	})
	commit(t, box, "followed", map[string]string{"a.yaml": addon("followed-a", "two")})
	expect.Eventually(t, expect.Patience, func() error {
		found := generated()
		if a := found["followed-a"]; a == nil || a.Spec.Addons[0].Description != "two" || found["followed-b"] != nil {
			return errPrevious
		}
		return nil
	})
	expect.Delete(t, master, parent)
}

// generatedName is the name of the catalogue that is generated for an add-on.
func generatedName(parent *kubermaticv1.AddonCatalogue, addon string) string {
	sum := sha256.Sum256([]byte(string(parent.UID) + "/" + addon))
	return parent.Name + "-" + addon + "-" + hex.EncodeToString(sum[:3])
}

// testMarkTakenOff: what the manager wrote on a generated catalogue is taken off by hand, and is there again.
func testMarkTakenOff(t *testing.T, master client.Client, generated *kubermaticv1.AddonCatalogue) {
	t.Helper()
	bare := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, kubermaticv1.AnnotationDigest)
	expect.Merge(t, master, generated.DeepCopy(), bare)
	expect.Object(t, master, generated.DeepCopy(), func(found *kubermaticv1.AddonCatalogue) error {
		for _, annotation := range []string{kubermaticv1.AnnotationDigest, kubermaticv1.AnnotationGeneration} {
			if found.Annotations[annotation] != generated.Annotations[annotation] {
				return errPrevious
			}
		}
		return nil
	})
}

// testOwnedAgain: an available catalogue that came back without its owner, as a backup may bring it, gets the Cluster as its owner again,
// also where the API server asks who changes an owner for the right to delete. (One with an owner that is gone is deleted by the
// garbage collector, and made anew.) Red when the role of the seed has no such right.
func testOwnedAgain(t *testing.T, box *sandbox.Sandbox, cluster sandbox.UserCluster) {
	seed, available := box.Client(cluster.Seed), sandbox.AvailableIn(cluster)
	expect.Read(t, seed, available)
	previous := []byte(`[{"op":"remove","path":"/metadata/ownerReferences"}]`)
	expect.Patch(t, seed, available.DeepCopy(), client.RawPatch(types.JSONPatchType, previous))
	expect.Object(t, seed, available.DeepCopy(), func(found *kubermaticv1.AddonCatalogue) error {
		if found.UID != available.UID || !slices.Equal(ownersOf(found), ownersOf(available)) {
			return errPrevious
		}
		return nil
	})
}

func ownersOf(object client.Object) []types.UID {
	var owners []types.UID
	for _, owner := range object.GetOwnerReferences() {
		owners = append(owners, owner.UID)
	}
	return owners
}

func testSourceSecret(t *testing.T, box *sandbox.Sandbox) {
	master, seed := box.Client(sandbox.Master), box.Client(cluster.Seed)
	secret := sourceSecret("followed", map[string][]byte{"username": []byte("robot"), "password": []byte("one")})
	secret.Annotations[kubermaticv1.AnnotationUsedBy] = "AddonCatalogue/followed-secret"
	expect.Ensure(t, master, secret)
	version := gitVersion(box, "moving", "v1")
	version.Source.Git.SecretRef = &kubermaticv1.LocalReference{Name: secret.Name}
	catalogue := catalogueOf("followed-secret", version)
	expect.Ensure(t, master, catalogue)
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: sandbox.CatalogueNamespace, Name: secret.Name}}
	expectPassword := func(password string) {
		expect.Object(t, seed, copied.DeepCopy(), func(found *corev1.Secret) error {
			if string(found.Data["password"]) != password {
				return errPrevious
			}
			return nil
		})
	}
	expectPassword("one")
	secret.Data["password"] = []byte("two")
	expect.Update(t, master, secret)
	expectPassword("two")
	expect.Delete(t, master, catalogue)
	expect.Gone(t, seed, copied)
}

func testWrongNamespace(t *testing.T, box *sandbox.Sandbox) {
	master := box.Client(sandbox.Master)
	catalogue := catalogueOf("stray", gitVersion(box, "moving", "v1"))
	catalogue.Namespace = metav1.NamespaceDefault
	expect.Ensure(t, master, catalogue)
	expect.HasCondition(t, master, catalogue, expect.Is(kubermaticv1.ConditionReady, "False", kubermaticv1.ReasonWrongNamespace))
	set := given.Set(metav1.NamespaceDefault, "stray", "stray")
	if err := master.Create(t.Context(), set); err == nil || !strings.Contains(err.Error(), "sets are read in namespace") {
		t.Errorf("a set of another namespace: got %v, want a refusal", err)
	}
	expect.Delete(t, master, catalogue)
	expect.Gone(t, master, catalogue)
}
