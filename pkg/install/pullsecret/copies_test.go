package pullsecret

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// written is a copy that is in the user cluster.
func written(namespace, name, digest string) Copy {
	key := ownership.Key{Kind: "Secret", Namespace: namespace, Name: name}
	return Copy{Entry: ownership.Entry{Key: key, Version: "v1", UID: types.UID("uid-" + namespace), Content: digest}, Nonce: "n"}
}

// Red when a copy is written that is as it should be, one that others need goes, or one stays that nobody needs.
func TestPlansOfCopies(t *testing.T) {
	uses := map[string]Use{"one": {Namespaces: []string{"a", "shared"}}, "two": {Namespaces: []string{"b", "shared"}}}
	drifted := ownership.Key{Kind: "Secret", Namespace: "a", Name: "pull"}
	for why, test := range map[string]struct {
		installation, digest string
		copies               []Copy
		drifted              []ownership.Key
		write, drop          []string
	}{
		"all is new":             {installation: "one", digest: "x", write: []string{"a", "shared"}},
		"nothing to be done":     {installation: "one", digest: "x", copies: []Copy{written("a", "pull", "x"), written("shared", "pull", "x")}},
		"another content":        {installation: "two", digest: "y", copies: []Copy{written("b", "pull", "x"), written("shared", "pull", "y"), written("a", "pull", "x")}, write: []string{"b"}},
		"no original":            {installation: "one", copies: []Copy{written("a", "pull", "x"), written("b", "pull", "x")}, drop: []string{"a"}},
		"another name":           {installation: "one", digest: "x", copies: []Copy{written("a", "old", "x"), written("shared", "pull", "x")}, write: []string{"a"}, drop: []string{"a"}},
		"nobody needs it":        {installation: "one", digest: "x", copies: []Copy{written("a", "pull", "x"), written("shared", "pull", "x"), written("left", "pull", "x")}, drop: []string{"left"}},
		"somebody changed it":    {installation: "one", digest: "x", copies: []Copy{written("a", "pull", "x"), written("shared", "pull", "x")}, drifted: []ownership.Key{drifted}, write: []string{"a"}},
		"an installation leaves": {installation: "three", digest: "x", copies: []Copy{written("a", "pull", "x"), written("c", "pull", "x")}, drop: []string{"c"}},
	} {
		known := Copies{Uses: uses, All: test.copies}
		plan := known.Plan(test.installation, Original{Name: "pull", Digest: test.digest}, test.drifted)
		var write, drop []string
		for _, at := range plan.Write {
			write = append(write, known.All[at].Namespace)
		}
		for _, one := range plan.Drop {
			drop = append(drop, one.Namespace)
		}
		if diff := cmp.Diff([][]string{test.write, test.drop}, [][]string{write, drop}); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", why, diff)
		}
	}
}

// Red when copies of the revision before go while the next one is applied, stay after it, or are without bounds.
func TestANewRevisionKeepsPreviousCopiesUntilItIsApplied(t *testing.T) {
	known := Copies{}
	known.Need("one", Use{Revision: 1, Namespaces: []string{"a"}})
	rolled := known.Roll("one", Use{Revision: 2, Namespaces: []string{"b"}})
	known.Need("one", rolled)
	again := known.Roll("one", Use{Revision: 2, Namespaces: []string{"b"}})
	if diff := cmp.Diff([]Use{{Revision: 2, Namespaces: []string{"b"}, Previous: []string{"a"}}, rolled}, []Use{rolled, again}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	known.All = []Copy{written("a", "pull", "x"), written("b", "pull", "x")}
	if plan := known.Plan("one", Original{Name: "pull", Digest: "x"}, nil); len(plan.Write)+len(plan.Drop) > 0 {
		t.Errorf("while it is applied: %v", plan)
	}
	known.Need("one", Use{Revision: 2, Namespaces: []string{"b"}})
	if plan := known.Plan("one", Original{Name: "pull", Digest: "x"}, nil); len(plan.Drop) != 1 || plan.Drop[0].Namespace != "a" {
		t.Errorf("once it is applied: %v", plan)
	}
	var many []string
	for i := range 2 * MaxNamespaces {
		many = append(many, fmt.Sprint(i))
	}
	if known.Need("one", Use{Namespaces: many}); len(known.Uses["one"].Namespaces) != MaxNamespaces {
		t.Error("there are more namespaces than may be")
	}
}

// Red when a Secret is given away that nobody marked, that is something else, or too large.
func TestOnlyAMarkedPullSecretIsCopied(t *testing.T) {
	secret := func(use string, kind corev1.SecretType, size int) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUse: use}},
			Type:       kind, Data: map[string][]byte{corev1.DockerConfigJsonKey: make([]byte, size)},
		}
	}
	for why, test := range map[string]struct {
		secret *corev1.Secret
		copied bool
	}{
		"marked":          {secret(v1.UsePull, corev1.SecretTypeDockerConfigJson, MaxBytes), true},
		"too large":       {secret(v1.UsePull, corev1.SecretTypeDockerConfigJson, MaxBytes+1), false},
		"another type":    {secret(v1.UsePull, corev1.SecretTypeOpaque, 10), false},
		"for another use": {secret(v1.UseSource, corev1.SecretTypeDockerConfigJson, 10), false},
	} {
		if digest := digestOf([]byte("key"), contentOf(test.secret)); (digest != "") != test.copied {
			t.Errorf("%s: the digest is %q", why, digest)
		}
	}
}

// Red when the use of an installation that is gone stays, copies that it left are removed, written or forgotten, they stay left where
// they are needed again, or more of them stay than may.
func TestWhatAnInstallationLeaves(t *testing.T) {
	known := Copies{All: []Copy{written("a", "pull", "x"), written("shared", "pull", "x")}}
	known.Need("one", Use{Namespaces: []string{"a", "shared"}})
	known.Need("two", Use{Namespaces: []string{"shared"}})
	if known.Leave("three") || !known.Leave("one") || known.Leave("one") {
		t.Error("what leaves nothing is told as a change, or the other way round")
	}
	if _, has := known.Uses["one"]; has || !known.All[0].Left || known.All[1].Left {
		t.Errorf("after it left: %+v", known)
	}
	changed := Original{Name: "pull", Digest: "y"}
	if plan := known.Plan("two", changed, nil); len(plan.Write) != 1 || plan.Write[0] != 1 || len(plan.Drop) > 0 {
		t.Errorf("for another installation: %v", plan)
	}
	known.Need("again", Use{Namespaces: []string{"a"}})
	if plan := known.Plan("again", changed, nil); len(plan.Write) != 1 || known.All[plan.Write[0]].UID != "uid-a" || known.All[0].Left {
		t.Errorf("where it is needed again: %v of %+v", plan, known.All)
	}
	known.Need("again", Use{})
	if plan := known.Plan("again", changed, nil); len(plan.Drop) != 1 {
		t.Errorf("where it is needed no more: %v", plan)
	}
	known = Copies{}
	for at := range 2 * MaxLeft {
		namespace := fmt.Sprint(at)
		known.All = append(known.All, written(namespace, "pull", "x"))
		known.Need("one", Use{Namespaces: []string{namespace}})
		known.Leave("one")
	}
	if len(known.All) != MaxLeft || known.All[0].Namespace != fmt.Sprint(MaxLeft) {
		t.Errorf("%d copies are left, the first in %q", len(known.All), known.All[0].Namespace)
	}
}
