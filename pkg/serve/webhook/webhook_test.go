package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	kit "github.com/trellis-addons/trellis/test/world"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "cluster"}) }

// connect gives a client of an API server with our kinds.
func connect(t *testing.T) client.Client {
	t.Helper()
	return kit.Client(t, fleet.Shared().Cluster("cluster").Config)
}

// create makes objects for as long as the test runs.
func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		expect.Create(t, c, object)
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.Delete(context.Background(), object)); err != nil {
				t.Error(err)
			}
		})
	}
}

// question is a request as the API server would make it.
func question(t *testing.T, before, after client.Object) admission.Request {
	t.Helper()
	asked := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update}}
	asked.UserInfo.Username = "somebody"
	for _, side := range []struct {
		object client.Object
		into   *runtime.RawExtension
		alone  admissionv1.Operation
	}{{before, &asked.OldObject, admissionv1.Delete}, {after, &asked.Object, admissionv1.Create}} {
		if side.object == nil {
			continue
		}
		raw, err := json.Marshal(side.object)
		if err != nil {
			t.Fatal(err)
		}
		side.into.Raw, asked.Namespace = raw, side.object.GetNamespace()
		asked.Name, asked.Kind.Kind = side.object.GetName(), kindOf(side.object)
		if before == nil || after == nil {
			asked.Operation = side.alone
		}
	}
	return asked
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *v1.AddonCatalogue:
		return "AddonCatalogue"
	case *v1.AddonSet:
		return "AddonSet"
	}
	return "AddonInstallation"
}

// expectRefused wants a refusal whose message has all the words.
func expectRefused(t *testing.T, answer admission.Response, words ...string) {
	t.Helper()
	if answer.Allowed {
		t.Fatalf("admitted, with warnings %q", answer.Warnings)
	}
	for _, word := range words {
		if !strings.Contains(answer.Result.Message, word) {
			t.Errorf("the refusal does not say %q: %s", word, answer.Result.Message)
		}
	}
}

// expectAdmitted wants these warnings; each is a part of one.
func expectAdmitted(t *testing.T, answer admission.Response, warnings ...string) {
	t.Helper()
	if !answer.Allowed {
		t.Fatalf("refused: %s", answer.Result.Message)
	}
	if len(answer.Warnings) != len(warnings) {
		t.Fatalf("warnings (-want +got):\n%s", cmp.Diff(warnings, answer.Warnings))
	}
	for i, want := range warnings {
		if !strings.Contains(answer.Warnings[i], want) {
			t.Errorf("warning %d does not say %q: %s", i, want, answer.Warnings[i])
		}
		if len(answer.Warnings[i]) > 256 {
			t.Errorf("warning %d has %d bytes; the API server may cut it at 256: %s", i, len(answer.Warnings[i]), answer.Warnings[i])
		}
	}
}

// clusters finds what a test says.
type clusters struct {
	found target.Description
	err   error
}

func (c clusters) Find(_ context.Context, ref target.Ref) (target.Description, error) {
	found := c.found
	found.Namespace = ref.Namespace
	return found, c.err
}

// neighbours are Clusters of Cluster API by whatever name.
type neighbours struct{}

func (neighbours) Find(_ context.Context, ref target.Ref) (target.Description, error) {
	ref.Kind = target.KindClusterAPI
	return target.Description{Ref: ref, KubernetesVersion: "1.36.3"}, nil
}

var errNoCluster = errors.New("no Cluster has the namespace")

func living(version string) clusters {
	return clusters{found: target.Description{Ref: target.Ref{Kind: target.KindKKP, Name: "amber"}, KubernetesVersion: version}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

// unreadable is a reader to which nothing is granted.
type unreadable struct{ client.Reader }

var errForbidden = errors.New("forbidden")

func (unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errForbidden
}
