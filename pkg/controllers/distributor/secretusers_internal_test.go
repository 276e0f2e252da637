package distributor

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// master is one that an earlier release wrote identities of seeds to. It has Secret "login", and refuses writes with an error.
type master struct {
	client.Client
	refuses error
	login   corev1.Secret
	written string
}

func (m *master) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		object.Data = map[string]string{"south": "uid"}
	case *corev1.Secret:
		*object = m.login
	case *metav1.PartialObjectMetadata:
		object.ObjectMeta = m.login.ObjectMeta
	}
	return nil
}

func (m *master) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if m.refuses == nil {
		m.written = object.(*corev1.ConfigMap).Data[v1.PreviousSecretUsers]
	}
	return m.refuses
}

func newMaster() *master {
	made := &master{}
	made.login.Name, made.login.UID, made.login.ResourceVersion = "login", "1", "7"
	made.login.Labels = map[string]string{v1.LabelUse: v1.UseSource}
	return made
}

// Red when a pass ends since the notes can't be written, when it has no former users then, or when they are not written later.
func TestNotesThatCantBeWrittenEndNoReconciliation(t *testing.T) {
	t.Parallel()
	m := newMaster()
	m.refuses = errors.New("too large")
	r := &Reconciler{cached: m, direct: m}
	object := &v1.AddonCatalogue{}
	object.Name, object.UID = "private", "c"
	user := catalogue.CatalogueUser(object)
	reconcile := func() *facts {
		f := &facts{readings: []*reading{{object: object}}, userFacts: userFacts{absent: map[string]bool{}}}
		if err := r.readPrevious(t.Context(), f, []namedSecrets{{user: user, names: []string{"login"}}}); err != nil {
			t.Fatalf("the pass ends: %v", err)
		}
		if _, refusal := r.previous.MayUse(&m.login, user); refusal != nil {
			t.Error(refusal)
		}
		return f
	}
	for range 2 {
		if f := reconcile(); len(f.troubles) != 1 || !strings.Contains(f.troubles[0].Error(), "too large") {
			t.Errorf("troubles %v", f.troubles)
		}
	}
	m.refuses = nil
	if f := reconcile(); len(f.troubles) != 0 || m.written != "Secret/login 1 AddonCatalogue/private c" {
		t.Errorf("troubles %v, written %q", f.troubles, m.written)
	}
}

// Red when the content of another Secret is taken than of that which was judged.
func TestTheEvaluatedSecretIsRead(t *testing.T) {
	t.Parallel()
	m := newMaster()
	r := &Reconciler{direct: m}
	for _, test := range []struct {
		uid, version string
		same         bool
	}{{"1", "7", true}, {"1", "6", false}, {"0", "7", false}} {
		about := &metav1.PartialObjectMetadata{}
		about.Name, about.UID, about.ResourceVersion = "login", types.UID(test.uid), test.version
		if _, err := r.readSecret(t.Context(), about); (err == nil) != test.same {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
